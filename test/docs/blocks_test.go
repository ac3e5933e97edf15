// SPDX-License-Identifier: Apache-2.0

// Package docs_test keeps the written documentation true: its examples are
// judged, its outputs compared with real ones, its lists with the code.
package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// block is a fenced block of a document and the comment that marks it.
type block struct {
	mark string // "example: clean"; empty where the block is not marked
	text string
}

var fenced = regexp.MustCompile("(?ms)(?:^<!-- ([^\n]*?) -->\n)?^```(\\w+)\n(.*?)^```$")

func blocksOf(t *testing.T, document string) []block {
	t.Helper()
	var blocks []block
	for _, m := range fenced.FindAllStringSubmatch(read(t, document), -1) {
		blocks = append(blocks, block{mark: m[1], text: m[3]})
	}
	if len(blocks) == 0 {
		t.Fatalf("%s has no fenced block", document)
	}
	return blocks
}

// blockWith is the one block whose mark starts with prefix.
func blockWith(t *testing.T, document, prefix string) block {
	t.Helper()
	var found []block
	for _, b := range blocksOf(t, document) {
		if strings.HasPrefix(b.mark, prefix) {
			found = append(found, b)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s has %d blocks marked %q, want one", document, len(found), prefix)
	}
	return found[0]
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
