#!/usr/bin/env bash
# Runs the suites of hack/suites.txt, or those named as arguments.
set -euo pipefail
cd "$(dirname "$0")/.."

steps=()
elsewhere=()
add() { # name, packages, flags
    if [ ${#wanted[@]} -eq 0 ] || [[ " ${wanted[*]} " == *" $1 "* ]]; then
        if [[ " ${*:3} " == *" root "* ]] && [ ${#wanted[@]} -eq 0 ] && [ "$(id -u)" -ne 0 ]; then
            echo "left out, needs root: suite $1 (sudo make test SUITES=$1)" >&2
            return
        fi
        if [[ " ${*:3} " == *" named "* ]] && [ ${#wanted[@]} -eq 0 ]; then
            echo "left out, runs by name: suite $1 (make test SUITES=$1)" >&2
            return
        fi
        local flags=" ${*:3} " packages=$2 folder=""
        if [[ $flags == *" module "* ]]; then folder="cd $2 && " packages=./...; fi
        flags=${flags/ named / } flags=${flags/ module / }
        steps+=("$1: ${folder}go test -timeout=45m ${flags/ root / } $packages")
    fi
}

wanted=("$@")
known=(unit)
while read -r name packages flags; do
    case $name in '' | '#'*) continue ;; esac
    if [[ " $flags " == *" module "* ]]; then
        known+=("$name")
        add "$name" "$packages" "$flags"
        continue
    fi
    list=$(go list "$packages")
    [ -n "$list" ] || { echo "hack/suites.txt: suite $name: no package $packages" >&2; exit 1; }
    mapfile -t -O "${#elsewhere[@]}" elsewhere <<<"$list"
    known+=("$name")
    add "$name" "$packages" "$flags"
done <hack/suites.txt

for name in "${wanted[@]}"; do
    [[ " ${known[*]} " == *" $name "* ]] || { echo "no suite $name: choose from ${known[*]}" >&2; exit 1; }
done

rest=$(go list ./... | grep -vxF -f <(printf '%s\n' "${elsewhere[@]}"))
suites=("${steps[@]}")
steps=()
add unit "$(tr '\n' ' ' <<<"$rest")"
hack/steps.sh "make test" "${steps[@]}" "${suites[@]}"
