#!/usr/bin/env bash
# Runs named steps one after the other and prints how long each took; fails at the end if one failed.
# Usage: hack/steps.sh TITLE 'NAME: COMMAND' ...
# A step that calls this script again shows its own steps in the table of the outer one.
set -euo pipefail

title=$1
shift
table=""
passed=0
failed=()
outer_record=${STEPS_RECORD:-/dev/null}
STEPS_RECORD=$(mktemp)
export STEPS_RECORD

report() {
    rm -f "$STEPS_RECORD"
    printf '\n%s\n%s' "$title" "$table"
    if [ ${#failed[@]} -gt 0 ]; then printf 'failed: %s\n' "${failed[*]}"; fi
    printf '%d passed, %d failed\n' "$passed" "${#failed[@]}"
    printf '%s' "$table" | sed 's/^/  /' >>"$outer_record"
}
trap 'rm -f "$STEPS_RECORD"' EXIT
trap 'report; exit 130' INT TERM

for step in "$@"; do
    name=${step%%: *} command=${step#*: }
    printf '\n== %s: %s\n' "$title" "$name"
    start=$SECONDS result=passed
    bash -euo pipefail -c "$command" </dev/null || result=FAILED
    took=$((SECONDS - start))
    if [ "$result" = passed ]; then passed=$((passed + 1)); else failed+=("$name"); fi
    line=$(printf '  %-20s' "$name")
    table+=$(printf '%-26s %3dm%02ds  %s' "$line" $((took / 60)) $((took % 60)) "$result")$'\n'
    if [ -s "$STEPS_RECORD" ]; then
        table+=$(cat "$STEPS_RECORD")$'\n'
        : >"$STEPS_RECORD"
    fi
done
report
[ ${#failed[@]} -eq 0 ]
