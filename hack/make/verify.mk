##@ Check

.PHONY: verify
verify: prerequisites ## Check that generated files are current, go.mod files tidy, code formatted, vetted and lint clean
	@hack/steps.sh "make verify" \
		"generated: hack/verify-generated.sh" \
		"modules: hack/verify-modules.sh" \
		"vet: go vet ./..." \
		"lint: $(GO_TOOL) golangci-lint run ./..."

.PHONY: lint
lint: prerequisites ## Run the linters and formatters; `make lint-fix` repairs what they can
	$(GO_TOOL) golangci-lint run ./...

.PHONY: lint-fix
lint-fix: prerequisites ## Repair what linters and formatters can
	$(GO_TOOL) golangci-lint run --fix ./...
