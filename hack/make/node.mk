##@ Try it

.PHONY: node-up
node-up: bin/node ## Start a real node (containerd, kubelet) in the background and print the path of its kubeconfig (root, Debian)
	@exec bin/node up --background --images

.PHONY: node-down
node-down: bin/node ## Stop it; nothing of it is left, also after a crash
	@exec bin/node down

.PHONY: node-status
node-status: bin/node ## Say whether it runs, and where its kubeconfig is
	@exec bin/node status

.PHONY: bin/node
bin/node: prerequisites
	@go build -o $@ ./hack/node

.PHONY: node-build
node-build: bin/node ## Build the programs of a node ahead of time (once; kubelet and kube-proxy beside the control plane's)
	@exec bin/node build
