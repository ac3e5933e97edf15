#!/usr/bin/env bash
# Names what this machine lacks, one line each. Run by make before every target that needs it.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=0
complain() {
    echo "missing: $1" >&2
    missing=1
}

wanted=$(awk '$1 == "go" { print $2 }' go.mod)
if ! command -v go >/dev/null; then
    complain "go $wanted or newer: https://go.dev/dl/"
else
    # A Go that is too old either fetches the right one here or says so itself.
    found=$(go env GOVERSION 2>/dev/null | sed 's/^go//') || found=""
    if [ -z "$found" ] || [ "$(printf '%s\n%s\n' "$wanted" "$found" | sort -V | head -n 1)" != "$wanted" ]; then
        complain "go $wanted or newer (this is $(GOTOOLCHAIN=local go env GOVERSION 2>/dev/null || go version | cut -d' ' -f3)): https://go.dev/dl/"
    fi
fi
command -v git >/dev/null || complain "git: apt-get install git"
exit "$missing"
