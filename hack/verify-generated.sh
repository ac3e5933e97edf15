#!/usr/bin/env bash
# Generates everything anew in a copy of the tree and names the files that differ.
set -euo pipefail
cd "$(dirname "$0")/.."

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

# What git knows or would add, so that local leftovers change nothing.
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
    if [ -e "$file" ]; then printf '%s\0' "$file"; fi
done | tar --null -T - -cf - | tar -xf - -C "$copy"

git -C "$copy" init -q
git -C "$copy" add -A
make -C "$copy" generate >"$copy/.git/log" 2>&1 || {
    cat "$copy/.git/log" >&2
    echo "make generate fails" >&2
    exit 1
}
stale=$(git -C "$copy" add -AN && git -C "$copy" diff --name-only)
if [ -n "$stale" ]; then
    git -C "$copy" --no-pager diff --stat
    printf '%s is stale: run make generate, then commit it\n' $stale >&2
    exit 1
fi
echo "all generated files are current"
