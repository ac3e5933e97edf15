##@ Build

.PHONY: build
build: prerequisites ## Build every program of cmd/ into bin/, with the tags of hack/internal/buildtags
	CGO_ENABLED=0 go build -tags fieldsv1string -o bin/ ./cmd/...

CACHE_DIR := $(or $(QW_CACHE_DIR),.cache)

.PHONY: clean
clean: ## Remove bin/ and the cache (the control plane's programs are then built anew)
	@[ -z "$$(ls -A $(CACHE_DIR)/run 2>/dev/null)" ] || { echo "a control plane or a node is running: make controlplane-down node-down first" >&2; exit 1; }
	rm -rf bin $(CACHE_DIR)
