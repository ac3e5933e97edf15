// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"testing"
)

func kubectl(ctx context.Context, stdin string, words ...string) (string, error) {
	return suite.node.RunKubectl(ctx, "", stdin, words...)
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
