// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/queueworker/operator/internal/chainsource"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// essential keeps of a sample what a rule with these sections reads: those
// fields of the spec and, where there are several documents, their names.
func essential(text string, read timeoutchain.Section) string {
	documents := strings.Split(text, "---\n")
	var kept []string
	for _, document := range documents {
		kept = append(kept, essentialLines(document, read, len(documents) > 1))
	}
	return strings.Join(kept, "---\n")
}

func essentialLines(document string, read timeoutchain.Section, named bool) string {
	var b strings.Builder
	keep, inSpec := false, false
	for line := range strings.Lines(document) {
		switch indent := len(line) - len(strings.TrimLeft(line, " ")); {
		case indent == 0:
			inSpec = line == "spec:\n"
			keep = inSpec || named && (line == "metadata:\n")
		case indent == 2 && inSpec:
			name, _, _ := strings.Cut(strings.TrimSpace(line), ":")
			keep = sectionOf(name)&read != 0
		}
		if keep {
			b.WriteString(line)
		}
	}
	return b.String()
}

// sectionOf is what a field of the spec belongs to; 0 where no rule reads it.
func sectionOf(field string) timeoutchain.Section {
	for _, s := range chainsource.Sections {
		if s.Field == field {
			return s.Section
		}
	}
	return 0
}
