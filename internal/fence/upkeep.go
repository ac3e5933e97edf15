// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Upkeep is what a sidecar does for one provider besides calls: it settles
// rows that no delivery may touch again, and forgets what nobody may ask for
// any more. Any number of sidecars may do so at once.
type Upkeep struct {
	Provider *Provider
	Store    Store
	Sender   Sender
	Clock    Clock
	Keep     Keep
	Every    time.Duration // pause between rounds, give or take a quarter
	Recheck  time.Duration // pause between two lookups of one row
	Batch    int           // rows of one statement
	Failed   func(error)   // told of every error; a round that failed is tried again

	trimmedUpto time.Time
}

// Keep is how long settled rows stay, from the moment they were settled. Done
// must reach past the last copy of a job that may still ask.
type Keep struct {
	Done     time.Duration
	Body     time.Duration // headers and body; after it a tombstone stays
	Released time.Duration
}

// Run works until ctx ends.
func (u *Upkeep) Run(ctx context.Context) {
	for {
		pause := u.Every*3/4 + rand.N(u.Every/2+1) //nolint:gosec // jitter, not a secret
		if u.Clock.Sleep(ctx, pause) != nil {
			return
		}
		if err := u.Once(ctx); err != nil && ctx.Err() == nil {
			u.Failed(err)
		}
	}
}

// batchLimit ends the wait for a database that is gone without a word. The
// kernel would wait for a quarter of an hour, and no key would be settled until
// then, though a new connection may long be possible.
const batchLimit = time.Minute

// Once does one round.
func (u *Upkeep) Once(ctx context.Context) error {
	return errors.Join(u.sweep(ctx), u.trim(ctx), u.forget(ctx, Done, u.Keep.Done), u.forget(ctx, Released, u.Keep.Released))
}

func (u *Upkeep) sweep(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, batchLimit)
	defer cancel()
	rows, err := u.Store.Sweepable(limit, Sweepable{Scope: u.Provider.Scope, Recheck: u.Recheck, Batch: u.Batch})
	if err != nil {
		return fmt.Errorf("sweep %s: %w", u.Provider.Scope, err)
	}
	for _, row := range rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		RunSweep(ctx, NewSweep(u.Provider, row), u.Store, u.Sender, u.Clock)
	}
	return nil
}

// trim goes on where it ended, so that tombstones are not read over and over.
func (u *Upkeep) trim(ctx context.Context) error {
	for ctx.Err() == nil {
		limit, cancel := context.WithTimeout(ctx, batchLimit)
		done, err := u.Store.Trim(limit, Trimmable{Scope: u.Provider.Scope, Age: u.Keep.Body, After: u.trimmedUpto, Batch: u.Batch})
		cancel()
		if err != nil {
			return fmt.Errorf("trim %s: %w", u.Provider.Scope, err)
		}
		if done.Rows == 0 {
			return nil
		}
		u.trimmedUpto = done.Upto
	}
	return nil
}

func (u *Upkeep) forget(ctx context.Context, state State, age time.Duration) error {
	for ctx.Err() == nil {
		limit, cancel := context.WithTimeout(ctx, batchLimit)
		deleted, err := u.Store.Forget(limit, Forgettable{Scope: u.Provider.Scope, State: state, Age: age, Batch: u.Batch})
		cancel()
		if err != nil {
			return fmt.Errorf("forget %s of %s: %w", state, u.Provider.Scope, err)
		}
		if deleted < u.Batch {
			return nil
		}
	}
	return nil
}
