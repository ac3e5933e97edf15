// SPDX-License-Identifier: Apache-2.0

package review

import (
	"context"
	"errors"
	"fmt"

	"github.com/queueworker/operator/internal/fence"
)

// Decision is what a person says of one attempt of a key.
type Decision struct {
	Key        fence.Key
	Token      fence.Token // as it was shown
	Done       bool        // else released
	ProviderID string      // of the effect, where Done
	Who, Why   string
	Force      bool // release although a request may still act
}

// Resolve writes a decision, if the key is still as it was shown. An error says
// what is otherwise and what to do.
func Resolve(ctx context.Context, store fence.Store, d Decision) error {
	row, err := store.Read(ctx, d.Key)
	switch {
	case errors.Is(err, fence.ErrNoRow):
		return fmt.Errorf("there is no key %q of %q: look at `kubectl queueworker fence list`", d.Key.ID, d.Key.Scope)
	case err != nil:
		return err
	}
	if err := fits(row, d); err != nil {
		return err
	}
	s, err := d.statement(row)
	if err != nil {
		return err
	}
	applied, err := store.Apply(ctx, s)
	switch {
	case err != nil:
		return fmt.Errorf("whether it was written is not known: look again with `kubectl queueworker fence show`: %w", err)
	case applied:
		return nil
	}
	return errors.New("the key changed in this moment: look again with `kubectl queueworker fence show`")
}

func (d Decision) statement(row fence.Row) (fence.Statement, error) {
	if d.Done {
		return fence.ResolveDone(row, d.Who, d.Why, fence.Response{ProviderID: d.ProviderID})
	}
	return fence.ResolveReleased(row, d.Who, d.Why, d.Force)
}

// fits compares the row with what the person was shown. The statement's guard
// judges it again.
func fits(row fence.Row, d Decision) error {
	switch {
	case row.State == fence.Done || row.State == fence.Released:
		return fmt.Errorf("the key is %s already, settled by %s %s: nothing is left to decide", row.State, row.SettledBy, row.SettledWho)
	case row.State != fence.NeedsReview:
		return fmt.Errorf("the key is %s: the fence is still at it, and parks it as needs_review when it cannot find out", row.State)
	case row.Token != d.Token:
		return fmt.Errorf("another attempt has had the key since it was shown (its token is %s now): look again with `kubectl queueworker fence show`", row.Token)
	case !d.Done && !d.Force && !row.Quiet():
		return fmt.Errorf("a request of the last attempt may still act until %s: wait, or say --force and accept that the effect may happen twice",
			moment(row.QuietUntil, row.ReadAt))
	}
	return nil
}
