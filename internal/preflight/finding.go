// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"

	"github.com/queueworker/operator/internal/timeoutchain"
)

// Unverified is the severity of what could not be seen. It blocks nothing.
const Unverified timeoutchain.Severity = "unverified"

// Finding is one fact that contradicts the declaration, puts it at risk, or
// could not be seen.
type Finding struct {
	Rule     string
	Severity timeoutchain.Severity
	// Subject is the class or supervisor in question; empty where there is none.
	Subject string
	// Link is the declaration in question.
	Link timeoutchain.Link
	// Problem names the values and where each comes from.
	Problem string
	// Consequence is what will happen.
	Consequence string
	// Fix is the smallest change that removes the finding.
	Fix string
}

// Message is the whole text, in one line.
func (f Finding) Message() string {
	text := f.Rule + ": " + f.Text()
	if f.Fix != "" {
		text += "; " + f.Fix
	}
	return text
}

// Text is the problem and what follows from it.
func (f Finding) Text() string {
	if f.Consequence == "" {
		return f.Problem
	}
	return fmt.Sprintf("%s: %s", f.Problem, f.Consequence)
}
