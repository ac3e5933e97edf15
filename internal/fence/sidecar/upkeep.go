// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"sync"
	"time"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/points"
	"github.com/queueworker/operator/internal/fence/proxy"
)

// upkeep settles and forgets for every provider and every kind of claim, until
// the returned function is called.
func (s *Sidecar) upkeep(ctx context.Context, store fence.Store, handler *proxy.Handler) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var working sync.WaitGroup
	run := func(p *fence.Provider, asks fence.Sender) {
		u := s.upkeepOf(p, asks, store)
		working.Go(func() { u.Run(ctx) })
	}
	for _, p := range s.Config.Declared() {
		run(&p.Provider, points.Asker(handler.Asker(p.Scope)))
	}
	for _, c := range s.Config.DeclaredClaims() {
		run(c.Settle(), asksNobody{})
	}
	return func() {
		cancel()
		working.Wait()
	}
}

func (s *Sidecar) upkeepOf(p *fence.Provider, asks fence.Sender, store fence.Store) *fence.Upkeep {
	c := s.Config
	seconds := func(n int) time.Duration { return time.Duration(n) * time.Second }
	return &fence.Upkeep{
		Provider: p, Store: store, Sender: asks, Clock: s.Clock,
		Keep: fence.Keep{
			Done: seconds(c.Retention.DoneSeconds), Body: seconds(c.Retention.BodySeconds), Released: seconds(c.Retention.ReleasedSeconds),
		},
		Every: points.Every(seconds(c.Upkeep.EverySeconds)), Recheck: seconds(c.Upkeep.RecheckSeconds), Batch: c.Upkeep.Batch,
		Failed: func(err error) { s.Log.Error("upkeep", "error", err) },
	}
}

// asksNobody is the sender of claims: only the app knows what became of them.
type asksNobody struct{}

func (asksNobody) Send(context.Context, fence.Step) fence.Event {
	return fence.Event{Kind: fence.EventNotSent, Reason: "upkeep sends nothing"}
}

func (asksNobody) LookUp(context.Context, fence.Step) fence.Lookup { return fence.Lookup{} }
