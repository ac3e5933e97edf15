// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/queueworker/operator/internal/fence"
)

// finisher writes down outcomes that the database did not take while their
// call was answered. The statement is the same one, so it may land late; what
// is never written leaves a key that counts as unknown.
type finisher struct {
	clock fence.Clock
	log   *slog.Logger

	ctx     context.Context
	stop    context.CancelFunc
	working sync.WaitGroup
	mu      sync.Mutex
	keys    map[fence.Key]int
}

const (
	maxUnsaved    = 256 // outcomes that are kept, each with a body of up to MaxStored bytes
	leastPause    = 100 * time.Millisecond
	mostPause     = 5 * time.Second
	finishTimeout = 5 * time.Second // of one try
)

func newFinisher(clock fence.Clock, log *slog.Logger) *finisher {
	ctx, stop := context.WithCancel(context.Background())
	return &finisher{clock: clock, log: log, ctx: ctx, stop: stop, keys: map[fence.Key]int{}}
}

// later tries until the statement was taken or the fence stops.
func (f *finisher) later(store fence.Store, s fence.Statement) {
	if !f.begin(s.Key) {
		f.log.Error("an outcome could not be saved, and there are too many: its key counts as unknown", "provider", s.Key.Scope, "key", s.Key.ID)
		return
	}
	f.log.Warn("an outcome could not be saved yet", "provider", s.Key.Scope, "key", s.Key.ID, "statement", s.Op.String())
	f.working.Go(func() {
		for pause := leastPause; ; pause = min(2*pause, mostPause) {
			if f.clock.Sleep(f.ctx, pause) != nil {
				return // the key stays listed
			}
			if f.try(store, s) {
				f.end(s.Key)
				return
			}
		}
	})
}

func (f *finisher) try(store fence.Store, s fence.Statement) bool {
	limit, cancel := context.WithTimeout(f.ctx, finishTimeout)
	defer cancel()
	applied, err := store.Apply(limit, s)
	if err == nil {
		f.log.Info("an outcome was saved late", "provider", s.Key.Scope, "key", s.Key.ID, "statement", s.Op.String(), "applied", applied)
	}
	return err == nil
}

func (f *finisher) begin(key fence.Key) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.keys) >= maxUnsaved {
		return false
	}
	f.keys[key]++
	return true
}

func (f *finisher) end(key fence.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keys[key]--; f.keys[key] == 0 {
		delete(f.keys, key)
	}
}

// finish waits until all is written or ctx ends, and returns the keys whose
// outcome stays unsaved.
func (f *finisher) finish(ctx context.Context) []fence.Key {
	done := make(chan struct{})
	go func() { f.working.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
	f.stop()
	<-done
	f.mu.Lock()
	defer f.mu.Unlock()
	var left []fence.Key
	for key := range f.keys {
		left = append(left, key)
	}
	return left
}
