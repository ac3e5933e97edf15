// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/queueworker/operator/api/v1alpha1"
)

const fenceManual = "docs/fence.md"

// TestFenceManualHasEveryFieldOfAProvider also finds rows about fields that no
// longer exist.
func TestFenceManualHasEveryFieldOfAProvider(t *testing.T) {
	_, table, found := strings.Cut(read(t, fenceManual), "### A provider, field by field\n")
	if !found {
		t.Fatal("no section about the fields of a provider")
	}
	table, _, _ = strings.Cut(table, "\n\nSend window")
	fields := fieldsOf("", reflect.TypeFor[v1alpha1.FenceProvider]())
	expectRows(t, table, fields)
	if rows := strings.Count(table, "\n| `"); rows != len(fields) {
		t.Errorf("%d rows about %d fields", rows, len(fields))
	}
}

func TestFenceManualShowsACleanExample(t *testing.T) {
	for _, f := range findings(t, blockWith(t, fenceManual, "example: clean").text) {
		t.Error(f.Message())
	}
}
