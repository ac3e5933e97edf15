// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinksLeadSomewhere follows every relative link of the documents.
func TestLinksLeadSomewhere(t *testing.T) {
	for _, document := range documents(t) {
		for _, target := range linksOf(read(t, document)) {
			file, anchor, _ := strings.Cut(target, "#")
			if file == "" {
				file = filepath.Base(document)
			}
			path := filepath.Join(filepath.Dir(document), file)
			info, err := os.Stat(filepath.Join(root, path))
			if err != nil {
				t.Errorf("%s links to %s, which does not exist", document, target)
				continue
			}
			if anchor != "" && !info.IsDir() && !slices.Contains(anchorsOf(read(t, path)), anchor) {
				t.Errorf("%s links to %s, which has no such heading", document, target)
			}
		}
	}
}

// documents are all documents for people.
func documents(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/adr/*.md", "hack/*/README.md", "charts/*/README.md"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("no document %s: %v", pattern, err)
		}
		for _, file := range files {
			all = append(all, strings.TrimPrefix(file, root+"/"))
		}
	}
	return all
}

func linksOf(text string) []string {
	var targets []string
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(m[1], "://") {
			targets = append(targets, m[1])
		}
	}
	return targets
}

// anchorsOf are the anchors that a heading gets when it is shown.
func anchorsOf(text string) []string {
	var anchors []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			continue
		}
		title := strings.TrimSpace(strings.TrimLeft(line, "#"))
		anchors = append(anchors, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			default:
				return -1
			}
		}, title))
	}
	return anchors
}
