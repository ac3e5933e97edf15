##@ Try it

.PHONY: demo
demo: prerequisites ## Run the operator on a real control plane with simulated nodes, then clean up
	@go build -o bin/demo ./hack/demo
	@exec bin/demo

.PHONY: controlplane-up
controlplane-up: bin/controlplane ## Start a control plane in the background and print the path of its kubeconfig
	@exec bin/controlplane up --background

.PHONY: controlplane-down
controlplane-down: bin/controlplane ## Stop it; nothing of it is left
	@exec bin/controlplane down

.PHONY: controlplane-build
controlplane-build: bin/controlplane ## Build its programs ahead of time (once; about 8 minutes and 9 GB)
	@exec bin/controlplane build

.PHONY: bin/controlplane
bin/controlplane: prerequisites
	@go build -o $@ ./hack/controlplane
