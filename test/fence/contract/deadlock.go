// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"testing"
	"time"

	"github.com/queueworker/operator/internal/fence"
)

// Deadlock expects cross to bring the statement it is given into a deadlock,
// and the statement to apply all the same.
func Deadlock(t *testing.T, o Opened, cross func(key fence.Key, statement func())) {
	t.Helper()
	key := fence.Key{Scope: scope, ID: "deadlock"}
	o.put(t, situation{state: fence.Claimed, mine: true}.row(key, time.Now().UTC()))
	type result struct {
		applied bool
		err     error
	}
	ended := make(chan result, 1)
	cross(key, func() {
		applied, err := o.Store.Apply(background(t), statementOf(fence.OpUnknown, key))
		ended <- result{applied, err}
	})
	if r := <-ended; !r.applied || r.err != nil {
		t.Errorf("after a deadlock: applied %t, %v", r.applied, r.err)
	}
}
