// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"sync"
	"time"

	"github.com/queueworker/operator/internal/fence"
)

// censusEvery is the pause between two counts. Each reads only rows that are
// not settled.
const censusEvery = 15 * time.Second

// takeCensus counts the keys of each scope until the returned function is
// called. What could not be counted keeps its last value; store_failures_total
// tells that.
func (m *metrics) takeCensus(ctx context.Context, from fence.Reviewer, scopes []string, clock fence.Clock) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var working sync.WaitGroup
	working.Go(func() {
		for {
			for _, scope := range scopes {
				m.count(ctx, from, scope, clock)
			}
			if clock.Sleep(ctx, censusEvery) != nil {
				return
			}
		}
	})
	return func() {
		cancel()
		working.Wait()
	}
}

func (m *metrics) count(ctx context.Context, from fence.Reviewer, scope string, clock fence.Clock) {
	limit, cancel := context.WithTimeout(ctx, censusEvery/3)
	defer cancel()
	began := clock.Now()
	c, err := from.Census(limit, scope)
	if ctx.Err() != nil {
		return
	}
	m.told("census", clock.Now().Sub(began), err)
	if err != nil {
		return
	}
	for state, n := range map[fence.State]int{fence.Claimed: c.Claimed, fence.Unknown: c.Unknown, fence.NeedsReview: c.NeedsReview} {
		m.keys.WithLabelValues(scope, state.String()).Set(float64(n))
	}
	m.oldest.WithLabelValues(scope, fence.Unknown.String()).Set(c.OldestUnknown.Seconds())
	m.oldest.WithLabelValues(scope, fence.NeedsReview.String()).Set(c.OldestReview.Seconds())
}
