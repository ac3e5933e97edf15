// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"errors"
	"time"
)

// Store keeps the rows. Every method is one statement of its own, committed
// when it returns without an error. After an error the statement may have
// applied, or may still do so later.
type Store interface {
	// Claim runs OpClaim and returns the row that is there afterwards. The
	// claim applied if, and only if, that row carries the statement's token.
	// A row in state NoRow means that the race was lost to a deletion.
	Claim(ctx context.Context, s Statement) (Row, error)

	// Apply runs any other statement and says whether its guard held.
	Apply(ctx context.Context, s Statement) (applied bool, err error)

	// Read returns the row, or ErrNoRow.
	Read(ctx context.Context, key Key) (Row, error)

	// Sweepable returns claims past their lease and quiet unknown rows, those
	// not looked at for longest first.
	Sweepable(ctx context.Context, which Sweepable) ([]Row, error)

	// Trim drops headers and bodies of done rows, leaving tombstones.
	Trim(ctx context.Context, which Trimmable) (Trimmed, error)

	// Forget deletes done and released rows, and no others.
	Forget(ctx context.Context, which Forgettable) (deleted int, err error)
}

// Trimmable tells which bodies are no longer needed.
type Trimmable struct {
	Scope string
	Age   time.Duration // since the row was settled
	After time.Time     // rows settled before this were trimmed already
	Batch int
}

// Trimmed is how far one batch came.
type Trimmed struct {
	Rows int
	Upto time.Time // the next batch's After; zero when nothing was left
}

// Forgettable tells which rows may go.
type Forgettable struct {
	Scope string
	State State         // Done or Released
	Age   time.Duration // since the row was settled
	Batch int
}

// ErrNotForgettable says that rows in such a state are never deleted.
var ErrNotForgettable = errors.New("only done and released rows may be deleted")
