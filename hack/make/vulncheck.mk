##@ Check

# No part of `make verify`: it asks the Go vulnerability database, which is out of reach in many build networks.
.PHONY: vulncheck
vulncheck: prerequisites ## Compare what is called of the dependencies with the Go vulnerability database (needs to reach it)
	@$(call EACH_MODULE,$(GO_TOOL) govulncheck ./...)
