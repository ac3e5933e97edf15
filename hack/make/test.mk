##@ Check

# Built first, since go test would hide the progress.
BUILT_FIRST := $(if $(filter node e2e gitops,$(SUITES)),node-build,controlplane-build)

.PHONY: test
test: prerequisites $(BUILT_FIRST) ## Run every test suite, without root; SUITES="unit parity" runs some (they are listed in hack/suites.txt)
	@hack/test.sh $(SUITES)
