// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/queueworker/operator/internal/fence/fenceconfig"
)

// The configuration that the manual shows is one that the fence takes.
func TestConfigurationInTheManual(t *testing.T) {
	text, err := os.ReadFile("../../docs/fence.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	example, _, found := strings.Cut(rest, "```")
	if !found || !strings.Contains(example, "kind: FenceConfig") {
		t.Fatal("the manual shows no configuration")
	}
	if _, err := fenceconfig.Decode([]byte(example)); err != nil {
		t.Error(err)
	}
}
