##@ Develop

.PHONY: generate
generate: prerequisites ## Write anew what is derived: deep copies, CRD, RBAC, webhook configuration, config/install.yaml, docs
	$(GO_TOOL) controller-gen object:headerFile=hack/boilerplate.go.txt paths=./api/...
	mkdir -p bin
	$(GO_TOOL) controller-gen crd:generateEmbeddedObjectMeta=true paths=./api/... output:crd:stdout > bin/crd.yaml
	go run ./hack/crd -in bin/crd.yaml -out config/crd/queueworker.dev_queueworkers.yaml
	$(GO_TOOL) controller-gen rbac:roleName=queueworker-operator paths='{./cmd/...,./controllers/...,./webhooks/...}' output:rbac:dir=config/rbac
	$(GO_TOOL) controller-gen webhook paths=./webhooks/... output:webhook:dir=config/webhook
	cd hack/chart && go run .
	go run ./hack/ruledocs docs/rules.md
	go run ./hack/preflightdocs docs/preflight.md
