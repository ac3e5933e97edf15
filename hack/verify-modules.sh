#!/usr/bin/env bash
# Checks every go.mod of the repository: complete, nothing superfluous. Names the file and the command to fix it.
set -euo pipefail
cd "$(dirname "$0")/.."

failed=0
for mod in $(git ls-files --cached --others --exclude-standard '*go.mod' | sort); do
    dir=$(dirname "$mod")
    if ! (cd "$dir" && go mod tidy -diff); then
        echo "$mod is not tidy: (cd $dir && go mod tidy)" >&2
        failed=1
    fi
done
[ "$failed" = 0 ] && echo "all go.mod files are tidy"
exit "$failed"
