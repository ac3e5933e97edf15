// SPDX-License-Identifier: Apache-2.0

// The command ruledocs writes docs/rules.md from the rule registry and the
// samples: go run ./hack/ruledocs docs/rules.md
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		exit(fmt.Errorf("usage: ruledocs FILE"))
	}
	text, err := render()
	if err != nil {
		exit(err)
	}
	if err := os.WriteFile(os.Args[1], []byte(text), 0o644); err != nil {
		exit(err)
	}
}

func exit(err error) {
	fmt.Fprintln(os.Stderr, "ruledocs:", err)
	os.Exit(1)
}
