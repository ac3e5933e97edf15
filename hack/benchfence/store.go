// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/queueworker/operator/internal/fence"
)

const scope = "bench"

// The same values for the generators, in the order of the store's parameters;
// :k is the fresh key.
var (
	claimValues = []string{
		"'" + scope + "'", ":k", zeros(32), zeros(16), "'pod'", "20000000", "361000000",
	}
	effectValues = []string{
		"201", `'{"Content-Type":"application/json"}'`, `'{"id":"ch_1","status":"succeeded"}'`, zeros(32), "'ch_1'",
		"'attempt'", "'pod'", "'" + scope + "'", ":k",
	}
)

func zeros(bytes int) string { return fmt.Sprintf(`'\x%0*d'`, 2*bytes, 0) }

// pairs claims fresh keys and completes them, and returns how many in a second.
func pairs(ctx context.Context, store fence.Store, connections int, length time.Duration) (float64, error) {
	var done atomic.Int64
	var wg sync.WaitGroup
	failed := make(chan error, connections)
	start := time.Now()
	end := start.Add(length)
	for range connections {
		wg.Go(func() {
			for time.Now().Before(end) {
				if err := pair(ctx, store); err != nil {
					failed <- err
					return
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	select {
	case err := <-failed:
		return 0, err
	default:
		return float64(done.Load()) / time.Since(start).Seconds(), nil
	}
}

// freshKey is the generators' key, so that rows and index entries are as wide.
func freshKey() string {
	return strconv.FormatInt(1+rand.Int64N(1_000_000_000_000_000), 10) //nolint:gosec // no secret
}

func pair(ctx context.Context, store fence.Store) error {
	claim := fence.Statement{
		Op: fence.OpClaim, Key: fence.Key{Scope: scope, ID: freshKey()}, New: fence.NewToken(),
		Owner: "pod", Lease: 20 * time.Second, Quiet: 361 * time.Second,
	}
	row, err := store.Claim(ctx, claim)
	if err != nil {
		return err
	}
	if row.Token != claim.New {
		return errors.New("a fresh key was taken")
	}
	effect := fence.Statement{
		Op: fence.OpEffect, Key: claim.Key, By: fence.ByAttempt, Who: "pod",
		Response: &fence.Response{Status: 201, Headers: []byte(`{"Content-Type":"application/json"}`), Body: []byte(`{"id":"ch_1","status":"succeeded"}`), ProviderID: "ch_1"},
	}
	applied, err := store.Apply(ctx, effect)
	if err == nil && !applied {
		err = fmt.Errorf("the completion of %s did not apply", claim.Key.ID)
	}
	return err
}
