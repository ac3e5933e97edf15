##@ Measure

.PHONY: bench-agent
bench-agent: prerequisites ## Measure the agent against plain artisan, in one run (root and Debian packages; about four minutes)
	QW_AGENT_BENCH=1 go test -count=1 -timeout=20m -run='^TestSpeed$$' -v ./test/agent
