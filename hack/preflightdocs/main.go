// SPDX-License-Identifier: Apache-2.0

// The command preflightdocs writes docs/preflight.md from the preflight's rules:
// go run ./hack/preflightdocs docs/preflight.md
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: preflightdocs FILE")
		os.Exit(1)
	}
	if err := os.WriteFile(os.Args[1], []byte(render()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "preflightdocs:", err)
		os.Exit(1)
	}
}
