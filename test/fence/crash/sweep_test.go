// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/queueworker/operator/internal/fence"
)

// ages are how long a key is left alone: until leases are over, until all is
// quiet, until the provider has forgotten it and nobody wants to look any more.
var ages = []int{5, 400, 100_000}

// sweep is a job that came once: its worker died, or the fence did. The upkeep
// of one sidecar, or that of two while the job is delivered again after all,
// must bring the key to an end. Then somebody retries the failed job.
func (r *run) sweep() error {
	if _, err := r.send(r.sidecars[0]); err != nil {
		return err
	}
	for n, seconds := range ages {
		row, err := r.checkedRow()
		if err != nil {
			return err
		}
		if atRest(row) {
			break
		}
		if n > 0 {
			r.settle()
		}
		if err := r.swept(n, seconds); err != nil {
			return err
		}
	}
	row, err := r.checkedRow()
	if err != nil {
		return err
	}
	if !atRest(row) {
		return fmt.Errorf("I9: the upkeep leaves the key %s: %s", row.State, row.Reason)
	}
	return r.deliver(len(ages))
}

// atRest: a call that got no answer from its database in time has left no row.
func atRest(row fence.Row) bool {
	return row.State == fence.NoRow || row.State == fence.Done || row.State == fence.Released || row.State == fence.NeedsReview
}

// swept lets time pass and waits until the upkeep has done what it can: at first
// the row is nobody's any more, later it is at rest, unless it was looked at or
// is not quiet, since the late delivery has called once more.
func (r *run) swept(n, seconds int) error {
	noted := r.reached(ofUpkeep + "after note")
	if err := r.db.pass(r.id, seconds); err != nil {
		return err
	}
	var delivered sync.WaitGroup
	var failed error
	if r.copies > 1 && n == 1 {
		delivered.Go(func() { _, failed = r.delivery(n) })
	}
	done := eventually(func() bool {
		time.Sleep(20 * time.Millisecond)
		for _, s := range r.sidecars {
			if _, err := s.serve(r.h.binary); err != nil {
				return false
			}
		}
		row, err := r.db.row(r.kind.name, r.id)
		switch {
		case err != nil || row.State == fence.Claimed:
			return false
		case n == 0 || atRest(row):
			return true
		}
		return n == 1 && (!row.Quiet() || r.reached(ofUpkeep+"after note") > noted)
	})
	delivered.Wait()
	r.waitLate()
	if failed != nil || done {
		return failed
	}
	row, err := r.db.row(r.kind.name, r.id)
	return errors.Join(fmt.Errorf("I9: %d s later the key is still %s: %s", seconds, row.State, row.Reason), err)
}

func (r *run) reached(point string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.points[point]
}
