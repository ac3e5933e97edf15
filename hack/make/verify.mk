##@ Check

# Ours that hold code. The chart's and the alerts' tests need Helm and Prometheus, which are no dependencies of the product.
CODE_MODULES := . hack/chart test/monitoring

EACH_MODULE = for module in $(CODE_MODULES); do (cd "$$module" && $(1)); done

.PHONY: verify
verify: prerequisites ## Check that generated files are current, go.mod files tidy, code formatted, vetted and lint clean
	@hack/steps.sh "make verify" \
		"generated: hack/verify-generated.sh" \
		"modules: hack/verify-modules.sh" \
		'vet: $(call EACH_MODULE,go vet ./...)' \
		'lint: $(call EACH_MODULE,$(GO_TOOL) golangci-lint run ./...)'

.PHONY: lint
lint: prerequisites ## Run the linters and formatters; `make lint-fix` repairs what they can
	@$(call EACH_MODULE,$(GO_TOOL) golangci-lint run ./...)

.PHONY: lint-fix
lint-fix: prerequisites ## Repair what linters and formatters can
	@$(call EACH_MODULE,$(GO_TOOL) golangci-lint run --fix ./...)
