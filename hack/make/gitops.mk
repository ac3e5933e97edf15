##@ Check

.PHONY: gitops
gitops: prerequisites node-build ## Try a real Argo CD on a real node, the long profile (root, Debian, redis-server; builds Argo CD once, 5 minutes); `make test SUITES=gitops` is the short one
	QW_GITOPS=full go test -count=1 -timeout=1h -v ./test/gitops/...
