// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// kubectl runs one command as a person would and returns what it prints, warnings included.
func kubectl(ctx context.Context, stdin string, words ...string) (string, error) {
	cmd := exec.CommandContext(ctx, suite.node.Kubectl(), words...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+suite.node.KubeconfigPath())
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w\n%s", strings.Join(words, " "), err, out)
	}
	return string(out), nil
}

func mustKubectl(t *testing.T, words ...string) string {
	t.Helper()
	out, err := kubectl(t.Context(), "", words...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// apply creates or changes objects.
func apply(ctx context.Context, objects ...any) error {
	for _, object := range objects {
		text, err := json.Marshal(object)
		if err != nil {
			return err
		}
		if _, err := kubectl(ctx, string(text), "apply", "-f", "-"); err != nil {
			return err
		}
	}
	return nil
}

// deployed applies objects and deletes them, without waiting for their pods, when the test ends.
func deployed(t *testing.T, objects ...any) {
	t.Helper()
	if err := apply(t.Context(), objects...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, object := range objects {
			text, _ := json.Marshal(object)
			if _, err := kubectl(context.Background(), string(text), "delete", "--ignore-not-found", "--wait=false", "-f", "-"); err != nil {
				t.Error(err)
			}
		}
	})
}
