##@ Measure

.PHONY: bench-preflight
bench-preflight: prerequisites ## Measure the preflight against the application's own boot, in one run (root and Debian packages; about a minute)
	QW_PREFLIGHT_BENCH=1 go test -count=1 -timeout=10m -run='^TestOverhead$$' -v ./test/preflight
