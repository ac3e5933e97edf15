##@ Check

# Built first, since go test would hide the progress.
# As root everything runs, the node's suites too.
NODE_SUITES := node e2e install gitops
BUILT_FIRST := $(if $(filter $(NODE_SUITES),$(or $(SUITES),$(if $(filter 0,$(shell id -u)),e2e))),node-build,controlplane-build)

.PHONY: test
test: prerequisites $(BUILT_FIRST) ## Run every test suite, without root; SUITES="unit parity" runs some (they are listed in hack/suites.txt)
	@hack/test.sh $(SUITES)
