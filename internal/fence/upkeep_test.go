// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/queueworker/operator/internal/fence"
)

// silent is a database that takes statements and never answers.
type silent struct{ fence.Store }

func (silent) Sweepable(ctx context.Context, _ fence.Sweepable) ([]fence.Row, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (silent) Trim(ctx context.Context, _ fence.Trimmable) (fence.Trimmed, error) {
	<-ctx.Done()
	return fence.Trimmed{}, ctx.Err()
}

func (silent) Forget(ctx context.Context, _ fence.Forgettable) (int, error) {
	<-ctx.Done()
	return 0, ctx.Err()
}

// TestUpkeepOutlivesASilentDatabase: it gives each statement up, so that the
// next round can ask on another connection.
func TestUpkeepOutlivesASilentDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &fence.Upkeep{Provider: &fence.Provider{Scope: "bank"}, Store: silent{}, Batch: 10}
		began := time.Now()
		err := u.Once(t.Context())
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if took := time.Since(began); took > 10*time.Minute {
			t.Errorf("a round took %s", took)
		}
	})
}
