// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"time"
)

// Reviewer tells people what is not settled.
type Reviewer interface {
	// Unsettled returns rows of which nobody knows the outcome, oldest first:
	// unknown ones, claims past their lease, and those that wait for a person.
	Unsettled(ctx context.Context, which Unsettled) ([]Row, error)

	// Census counts a scope's rows that are not settled.
	Census(ctx context.Context, scope string) (Census, error)
}

// Unsettled tells which rows are wanted.
type Unsettled struct {
	Scope string // "" = all
	Limit int
}

// Census is how many rows are in which state. A claim past its lease counts as
// unknown, written down or not.
type Census struct {
	Claimed, Unknown, NeedsReview int
	OldestUnknown, OldestReview   time.Duration // since the outcome became unknown; 0 where there is none
}
