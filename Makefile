# Every target is described by `make help`; the rules are in hack/make/, one file per purpose.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory

# Tools are pinned in hack/tools/go.mod; Go builds each once, on first use.
GO_TOOL := go tool -modfile=$(CURDIR)/hack/tools/go.mod

include hack/make/*.mk

##@ General

.PHONY: help
help: ## Show this help
	@awk -f hack/make/help.awk $(MAKEFILE_LIST)

# Named in one line, before anything else runs into it.
.PHONY: prerequisites
prerequisites:
	@hack/prerequisites.sh
