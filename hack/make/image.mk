##@ Build

.PHONY: image
image: prerequisites ## Write the operator's image for amd64 and arm64 to bin/operator-image.tar, without Docker; IMAGE=registry.example/operator:1 names it
	@go run ./hack/images $(if $(IMAGE),-name $(IMAGE))
