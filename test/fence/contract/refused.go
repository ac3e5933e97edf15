// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/queueworker/operator/internal/fence/store/sqlfence"
)

var standIn = regexp.MustCompile(`\bT(_|\b)`)

// OfTable writes a table's name where a text about any table says T.
func OfTable(text, table string) string { return standIn.ReplaceAllString(text, table+"$1") }

// CheckOpen judges how a store takes somebody else's table: with an error about
// the table that holds want, or with none where want is empty.
func CheckOpen(t *testing.T, err error, want string) {
	t.Helper()
	var unfit *sqlfence.Unfit
	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v", err)
	case want != "" && !errors.As(err, &unfit):
		t.Errorf("not refused: %v", err)
	case want != "" && !strings.Contains(err.Error(), want):
		t.Errorf("error %q\ndoes not hold %q", err, want)
	}
}
