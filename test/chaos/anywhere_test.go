// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/queueworker/operator/hack/operator"
)

// profile is how much happens.
type profile struct{ workers, steps, kills, outages int }

func chosen() profile {
	if full {
		return profile{workers: 50, steps: 10, kills: 50, outages: 5}
	}
	// No outage of the API server here: the garbage collector puts off what it
	// failed at in one, for minutes at times, and a namesake waits for it.
	return profile{workers: 10, steps: 4, kills: 10}
}

// shortLeases make the other replica take over within seconds.
const shortLeases = `apiVersion: config.queueworker.dev/v1alpha1
kind: ManagerConfig
leaderElection: {leaseDurationSeconds: 3, renewDeadlineSeconds: 2, retryPeriodSeconds: 1}
`

// seed is printed; QW_CHAOS_SEED repeats a run. The short profile plays the same
// script each time, the long one another.
func seed(t *testing.T) uint64 {
	seed := uint64(1)
	if full {
		seed = uint64(time.Now().UnixNano())
	}
	if text := os.Getenv("QW_CHAOS_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("QW_CHAOS_SEED=%d", seed)
	return seed
}

// TestKilledAnywhere plays a script twice: with one manager that nobody
// disturbs, and with two replicas that are killed at random, as the API server
// is. Both must end the same.
func TestKilledAnywhere(t *testing.T) {
	ctx := t.Context()
	t.Cleanup(func() { reportCollector(t) })
	if err := kubectl().Install(ctx, operator.Webhook); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = kubectl().Run(context.Background(), "delete -f config/webhook") })
	seed, p := seed(t), chosen()
	stories := script(seed, p.workers, p.steps)

	calm := newReplica(t, "--leader-elect=false")
	want := playAll(t, stories, nil, calm)
	calm.stop()

	config := filepath.Join(t.TempDir(), "manager.yaml")
	if err := os.WriteFile(config, []byte(shortLeases), 0o600); err != nil {
		t.Fatal(err)
	}
	storm := &storm{profile: p, random: rand.New(rand.NewPCG(seed, 2)), replicas: [2]*replica{
		newReplica(t, "--config="+config), newReplica(t, "--config="+config),
	}}
	got := playAll(t, stories, storm, storm.replicas[:]...)

	for _, s := range stories {
		want, got := want.pictures[s.name], got.pictures[s.name]
		if len(s.scales) > 0 && want != nil && got != nil { // two quick numbers may be passed on as one
			want.Deployment.Generation, got.Deployment.Generation = 0, 0
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s ended in another state (- calm, + killed):\n%s", s.name, diff)
		}
	}
	scales := 0
	for _, s := range stories {
		scales += len(s.scales)
	}
	want.writes["deployments"] += scales // so many may have been passed on as others
	storm.report(t, want.writes, got.writes)
}

// result is what a run of the script left.
type result struct {
	pictures map[string]*picture
	writes   map[string]int // accepted ones of the operator, by kind
}

// playAll plays all stories at once, waits until all is settled and quiet, and
// checks that nothing was lost.
func playAll(t *testing.T, stories []story, storm *storm, replicas ...*replica) result {
	t.Helper()
	began := time.Now()
	namespace := newNamespace(t.Context(), t)
	moves := newMoves(stories)
	wishes := make([]wish, len(stories))
	group, ctx := errgroup.WithContext(t.Context())
	for i := range stories {
		group.Go(func() (err error) {
			defer moves.over(i)
			wishes[i], err = stories[i].play(ctx, namespace, func() { moves.made(i) })
			return err
		})
		group.Go(func() error { return stories[i].autoscale(ctx, namespace, 300*time.Millisecond) })
	}
	if storm != nil {
		group.Go(func() error { return storm.rage(ctx, moves) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	played := time.Since(began)
	for i, s := range stories {
		err := gone
		if !s.ends {
			err = func(ctx context.Context, namespace, name string) error {
				if _, err := settled(ctx, namespace, name, 1); err != nil {
					return err
				}
				return stories[i].fulfilled(ctx, namespace, wishes[i])
			}
		}
		if err := err(t.Context(), namespace, s.name); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range replicas {
		if err := still(t.Context(), r.gateway); err != nil {
			t.Fatal(err)
		}
	}
	got := result{writes: map[string]int{}}
	before := countWrites(replicas)
	time.Sleep(3 * time.Second)
	if after := countWrites(replicas); after != before {
		t.Errorf("%d writes while nothing happens", after-before)
	}
	for _, r := range replicas {
		for _, w := range r.gateway.written() {
			got.writes[w.kind()]++
		}
		if odd := r.odd(); len(odd) > 0 {
			t.Errorf("a manager ended by itself: %q", odd)
		}
	}
	var err error
	if got.pictures, err = takePictures(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d steps of %d QueueWorkers took %s; accepted writes: %v", moves.all, len(stories), played.Round(time.Second), got.writes)
	return got
}

// moves is how far the stories are.
type moves struct {
	all int // steps

	mu   sync.Mutex
	done int
	last []time.Time // of each story's last step; zero when it is over
}

func newMoves(stories []story) *moves {
	m := &moves{last: make([]time.Time, len(stories))}
	for i, s := range stories {
		m.all += len(s.steps)
		m.last[i] = time.Now()
	}
	return m
}

func (m *moves) made(i int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done++
	m.last[i] = time.Now()
}

func (m *moves) over(i int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last[i] = time.Time{}
}

// share is the part of all steps that is made.
func (m *moves) share() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return float64(m.done) / float64(m.all)
}

// longestWait is how long a story has been standing still.
func (m *moves) longestWait() (longest time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, last := range m.last {
		if !last.IsZero() {
			longest = max(longest, time.Since(last))
		}
	}
	return longest
}

func countWrites(replicas []*replica) int {
	n := 0
	for _, r := range replicas {
		n += len(r.gateway.written())
	}
	return n
}

// storm kills replicas of the manager and the API server.
type storm struct {
	profile  profile
	random   *rand.Rand
	replicas [2]*replica
	leaders  int // how many of the killed ones led
}

// rage spreads the kills over the script: it follows its progress, not the
// clock, so that a slow machine is killed as often in the same places. A
// QueueWorker that came off badly in every short reign is waited for.
func (s *storm) rage(ctx context.Context, moves *moves) error {
	for i := range s.profile.kills {
		for moves.share() < float64(i)/float64(s.profile.kills) || moves.longestWait() > 20*time.Second {
			if err := sleep(ctx, poll); err != nil {
				return err
			}
		}
		if err := sleep(ctx, s.upTo(400*time.Millisecond)); err != nil {
			return err
		}
		if s.profile.outages > 0 && (i+1)%(s.profile.kills/s.profile.outages) == 0 {
			if err := s.outage(ctx); err != nil {
				return err
			}
		}
		if err := s.strike(ctx); err != nil {
			return err
		}
	}
	return nil
}

// strike kills the leader, the other one or both, and mostly waits until
// somebody leads again.
func (s *storm) strike(ctx context.Context) error {
	leader, other := s.replicas[0], s.replicas[1]
	if other.gateway.lastLease().After(leader.gateway.lastLease()) {
		leader, other = other, leader
	}
	began := time.Now()
	switch kind := s.random.IntN(10); {
	case kind < 2:
		if leader.kill(s.upTo(time.Second)) {
			s.leaders++
		}
		other.kill(s.upTo(time.Second))
	case kind < 8:
		if !leader.kill(s.upTo(time.Second)) {
			return s.strikeAgain(ctx)
		}
		s.leaders++
	default:
		if !other.kill(s.upTo(time.Second)) {
			return s.strikeAgain(ctx)
		}
		return nil
	}
	if s.random.IntN(5) == 0 {
		return nil
	}
	return eventually(ctx, "somebody leads", func(context.Context) error {
		for _, r := range s.replicas {
			if r.gateway.lastLease().After(began.Add(time.Second)) {
				return nil
			}
		}
		return fmt.Errorf("nobody renewed the lease since the kill")
	})
}

// strikeAgain waits for a victim that is just being started.
func (s *storm) strikeAgain(ctx context.Context) error {
	if err := sleep(ctx, poll); err != nil {
		return err
	}
	return s.strike(ctx)
}

// outage kills the API server and starts it again.
func (s *storm) outage(ctx context.Context) error {
	if err := controlPlane.KillAPIServer(); err != nil {
		return err
	}
	if err := sleep(ctx, s.upTo(3*time.Second)); err != nil {
		return err
	}
	return controlPlane.StartAPIServer(ctx)
}

func (s *storm) upTo(most time.Duration) time.Duration {
	return time.Duration(s.random.Int64N(int64(most)))
}

// report says what happened and holds the number of writes against the calm
// run's. A death repeats no write that arrived.
func (s *storm) report(t *testing.T, calm, killed map[string]int) {
	kills := s.replicas[0].kills + s.replicas[1].kills
	t.Logf("%d kills, %d of them of the leader, %d outages of the API server", kills, s.leaders, s.profile.outages)
	if kills < s.profile.kills || s.leaders == 0 {
		t.Errorf("%d kills, %d of the leader: too few", kills, s.leaders)
	}
	for _, kind := range []string{"deployments", "poddisruptionbudgets"} {
		if killed[kind] > calm[kind]+calm[kind]/10 {
			t.Errorf("%d writes of %s instead of about %d", killed[kind], kind, calm[kind])
		}
	}
	if most := 2*calm["queueworkers/status"] + 10*kills; killed["queueworkers/status"] > most {
		t.Errorf("%d writes of a status, more than %d", killed["queueworkers/status"], most)
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
