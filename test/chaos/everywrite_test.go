// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// change is one thing that a user does. The operator answers it with a fixed
// series of writes.
type change struct {
	name string
	from *wish // nil: nothing is there
	to   *wish // nil: it is deleted
}

func changes() []change {
	edited := func(edit func(*wish)) *wish {
		w := firstWish()
		edit(&w)
		return &w
	}
	first := ptr.To(firstWish())
	protected := edited(func(w *wish) { w.budget = "1" })
	some := []change{
		{"create", nil, protected},
		{"everything", protected, edited(func(w *wish) {
			w.image, w.job, w.replicas, w.recreate, w.budget = 2, 40, ptr.To[int32](3), true, ""
		})},
		{"delete", protected, nil},
	}
	if !full {
		return some
	}
	return append(some, []change{
		{"roll out", first, edited(func(w *wish) { w.image = 2 })},
		{"recreate", edited(func(w *wish) { w.recreate = true }), edited(func(w *wish) { w.recreate, w.job = true, 40 })},
		{"scale", first, edited(func(w *wish) { w.replicas = ptr.To[int32](4) })},
		{"protect", first, protected},
	}...)
}

const (
	name     = "mail"
	revision = "deployment.kubernetes.io/revision"
)

// TestKilledAtEveryWrite kills the manager at each write of each change: before
// it, after it, and while it is under way to arrive late.
func TestKilledAtEveryWrite(t *testing.T) {
	for _, c := range changes() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			calm := c.play(t, nil)
			moments := []moment{before, after, late}
			if !full && c.from == nil {
				moments = moments[:2] // "everything" writes the same, onto more
			}
			for _, when := range moments {
				t.Run(string(when), func(t *testing.T) {
					t.Parallel()
					c.killAtEach(t, calm, when)
				})
			}
		})
	}
}

// killAtEach makes the change as often as it has writes, with a death at another
// one each time.
func (c change) killAtEach(t *testing.T, calm *outcome, when moment) {
	hit, nth := map[string]bool{}, map[string]int{}
	for _, w := range calm.writes {
		nth[w.kind()]++
		got := c.play(t, &point{w.kind(), nth[w.kind()], when})
		if got.sprung == nil { // this time fewer states were reported
			continue
		}
		hit[got.sprung.kind()] = true
		check(t, calm, got, when)
	}
	for kind := range kinds(calm.writes) {
		if !hit[kind] {
			t.Errorf("no manager died %s a write of %s; calm: %v", when, kind, calm.writes)
		}
	}
}

// point is where the manager dies.
type point struct {
	kind string
	n    int // of the writes of this kind
	when moment
}

// outcome is what came of a change.
type outcome struct {
	sprung  *write  // at which the manager died
	creates bool    // it was the creation of the Deployment
	writes  []write // for the change alone
	picture *picture
	// After one more change:
	later        *picture
	before, then map[types.UID]bool // the workers before and after a late write arrived
}

func check(t *testing.T, calm, got *outcome, when moment) {
	t.Helper()
	if when == late {
		if got.creates {
			// Server-side apply cannot ask for an object that must not exist yet:
			// a late creation is not refused but undone.
			got.later.Deployment.Generation = calm.later.Deployment.Generation
			got.later.Deployment.Annotations[revision] = calm.later.Deployment.Annotations[revision]
			got.then = got.before
		}
		if diff := cmp.Diff(calm.later, got.later); diff != "" {
			t.Errorf("the late write %s left another state (- calm, + killed):\n%s", got.sprung, diff)
		}
		if !maps.Equal(got.before, got.then) {
			t.Errorf("the late write %s replaced workers: %v became %v", got.sprung, got.before, got.then)
		}
		return
	}
	if diff := cmp.Diff(calm.picture, got.picture); diff != "" {
		t.Errorf("a death %s %s left another state (- calm, + killed):\n%s", when, got.sprung, diff)
	}
	for _, kind := range []string{"deployments", "poddisruptionbudgets"} {
		if wanted, n := kinds(calm.writes)[kind], kinds(got.writes)[kind]; wanted != n {
			t.Errorf("a death %s %s left %d writes to %s instead of %d: %v", when, got.sprung, n, kind, wanted, got.writes)
		}
	}
}

func kinds(writes []write) map[string]int {
	count := map[string]int{}
	for _, w := range writes {
		count[w.kind()]++
	}
	return count
}

// play makes the change, with a manager that dies at the point, if any.
func (c change) play(t *testing.T, at *point) *outcome {
	t.Helper()
	ctx := t.Context()
	namespace := newNamespace(ctx, t)
	manager := newReplica(t, "--leader-elect=false", "--watch-namespaces="+namespace)
	defer manager.stop()
	fail := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s, death at %+v: %v; writes: %v\n%s", c.name, at, err, manager.gateway.written(), tail(manager.log, 30))
		}
	}
	if c.from != nil {
		fail(reach(ctx, namespace, nil, c.from))
	}
	fail(still(ctx, manager.gateway))
	done := len(manager.gateway.written())

	var set *trap
	if at != nil {
		set = newTrap(at, func() { manager.kill(0) })
		manager.gateway.set(set)
	}
	fail(reach(ctx, namespace, c.from, c.to))
	fail(still(ctx, manager.gateway))
	manager.gateway.set(nil)
	got := &outcome{writes: manager.gateway.written()[done:]}
	var err error
	got.picture, err = pictureOf(ctx, namespace)
	fail(err)
	if set != nil {
		if got.sprung = set.write(); got.sprung == nil {
			return got
		}
		got.creates = c.from == nil && got.sprung.kind() == "deployments"
	}
	if at == nil || at.when == late {
		fail(c.continueTo(ctx, namespace, manager.gateway, set, got))
	}
	if odd := manager.odd(); len(odd) > 0 {
		t.Errorf("the manager ended by itself: %v", odd)
	}
	return got
}

// continueTo makes one more change, lets the late write arrive if there is one,
// and looks again.
func (c change) continueTo(ctx context.Context, namespace string, g *gateway, set *trap, got *outcome) error {
	from, next := c.to, wish{}
	if from == nil { // the name is used again
		next = *c.from
	} else {
		next = *from
		next.image = 7
	}
	err := reach(ctx, namespace, from, &next)
	if err != nil {
		return err
	}
	if got.before, err = running(ctx, namespace, name); err != nil {
		return err
	}
	if set != nil {
		close(set.release)
		<-set.arrived
	}
	if err := still(ctx, g); err != nil {
		return err
	}
	if err := reach(ctx, namespace, &next, &next); err != nil {
		return err
	}
	if got.then, err = running(ctx, namespace, name); err != nil {
		return err
	}
	got.later, err = pictureOf(ctx, namespace)
	return err
}

// reach writes a wish and waits until it is fulfilled.
func reach(ctx context.Context, namespace string, from, to *wish) error {
	if to == nil {
		qw := from.object(namespace, name)
		if err := k8s.Delete(ctx, qw, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
			return err
		}
		return gone(ctx, namespace, name)
	}
	if _, err := to.apply(ctx, namespace, name); err != nil {
		return err
	}
	templates := 1
	if from != nil && from.template() != to.template() {
		templates = 2
	}
	_, err := settled(ctx, namespace, name, templates)
	return err
}

// still waits until nothing has been written for longer than a status is held
// back: events are sent in the background.
func still(ctx context.Context, g *gateway) error {
	seen, since := -1, time.Now()
	return eventually(ctx, "the manager rests", func(context.Context) error {
		if now := len(g.written()); now != seen {
			seen, since = now, time.Now()
		}
		if rest := time.Since(since); rest < 1500*time.Millisecond {
			return fmt.Errorf("the last write was %s ago", rest)
		}
		return nil
	})
}

func pictureOf(ctx context.Context, namespace string) (*picture, error) {
	pictures, err := takePictures(ctx, namespace)
	return pictures[name], err
}
