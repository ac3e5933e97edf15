##@ Check

.PHONY: e2e
e2e: prerequisites node-build ## Try workers on a real node, the long profile (root, Debian); `make test SUITES=e2e` is the short one
	QW_E2E=full go test -count=1 -timeout=3h -parallel=16 -v ./test/e2e/...
