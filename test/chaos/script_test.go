// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// story is what happens to one QueueWorker.
type story struct {
	name  string
	steps []step
	// scales are the numbers of an autoscaler, written while the steps are
	// made; empty: the steps scale.
	scales []int32
	// ends says that it is deleted at last.
	ends bool
}

// step is one thing that a user does.
type step struct {
	what   string
	change func(*wish)                // nil: it is deleted and made anew
	delete metav1.DeletionPropagation // for that
	keeps  bool                       // needs no other pods
	rush   bool                       // comes before the last one has settled
	pause  time.Duration              // before it
}

// script makes up the stories of so many QueueWorkers; the same seed gives the
// same ones.
func script(seed uint64, workers, steps int) []story {
	random := rand.New(rand.NewPCG(seed, 1))
	stories := make([]story, workers)
	for i := range stories {
		s := &stories[i]
		s.name = fmt.Sprintf("worker-%02d", i)
		s.ends = i%5 == 3
		if i%5 == 1 {
			for range steps {
				s.scales = append(s.scales, random.Int32N(5))
			}
		}
		image, job := 1, int32(30)
		for range steps {
			next := someStep(random, &image, &job, len(s.scales) > 0)
			next.rush = random.IntN(2) == 0
			next.pause = time.Duration(random.IntN(400)) * time.Millisecond
			s.steps = append(s.steps, next)
		}
	}
	return stories
}

// someStep makes up a step. Images and timeouts are always new ones, or the
// first again.
func someStep(random *rand.Rand, image *int, job *int32, autoscaled bool) step {
	switch kind := random.IntN(17); {
	case kind < 4:
		*image++
		to := *image
		return step{what: fmt.Sprint("image ", to), change: func(w *wish) { w.image = to }}
	case kind < 6:
		*job++
		to := *job
		return step{what: fmt.Sprint("job ", to), change: func(w *wish) { w.job = to }}
	case kind == 6:
		return step{what: "roll back", change: func(w *wish) { w.image, w.job = 1, 30 }}
	case kind < 10 && !autoscaled:
		to := random.Int32N(5)
		return step{what: fmt.Sprint("scale ", to), keeps: true, change: func(w *wish) { w.replicas = &to }}
	case kind < 12:
		return step{what: "strategy", keeps: true, change: func(w *wish) { w.recreate = !w.recreate }}
	case kind < 14:
		to := []string{"", "1", "50%"}[random.IntN(3)]
		return step{what: "budget " + to, keeps: true, change: func(w *wish) { w.budget = to }}
	case kind == 14:
		return step{what: "lock", keeps: true, change: func(w *wish) { w.unique++ }}
	case kind == 15 && !autoscaled:
		how := []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground}[random.IntN(2)]
		return step{what: "make anew, " + string(how), delete: how}
	default:
		return step{what: "label", keeps: true, change: func(w *wish) { w.label++ }}
	}
}

// play lets a story happen and returns the last wish. made is called after
// each step that reached the Deployment.
func (s *story) play(ctx context.Context, namespace string, made func()) (wish, error) {
	wanted := firstWish()
	if len(s.scales) > 0 {
		wanted.replicas = nil
	}
	begin := wanted
	templates := map[string]bool{wanted.template(): true}
	write := func(what string) error {
		return insist(ctx, s.name+" "+what, func(ctx context.Context) error {
			_, err := wanted.apply(ctx, namespace, s.name)
			return err
		})
	}
	if err := errors.Join(write("create"), begun(ctx, namespace, s.name, 1)); err != nil {
		return wanted, err
	}
	for _, step := range s.steps {
		time.Sleep(step.pause)
		var before map[types.UID]bool
		var err error
		if !step.rush {
			if before, err = settled(ctx, namespace, s.name, len(templates)); err != nil {
				return wanted, fmt.Errorf("before %s: %w", step.what, err)
			}
		}
		if step.change == nil {
			if err := remove(ctx, namespace, s.name, step.delete); err != nil {
				return wanted, err
			}
			wanted, templates = begin, map[string]bool{}
		} else {
			step.change(&wanted)
		}
		templates[wanted.template()] = true
		if err := errors.Join(write(step.what), begun(ctx, namespace, s.name, len(templates))); err != nil {
			return wanted, err
		}
		if step.keeps && before != nil && len(s.scales) == 0 {
			after, err := settled(ctx, namespace, s.name, len(templates))
			if err = errors.Join(err, kept(before, after)); err != nil {
				return wanted, fmt.Errorf("%s %s: %w", s.name, step.what, err)
			}
		}
		made()
	}
	if s.ends {
		return wanted, remove(ctx, namespace, s.name, metav1.DeletePropagationBackground)
	}
	return wanted, nil
}

// autoscale writes the numbers of replicas.
func (s *story) autoscale(ctx context.Context, namespace string, pause time.Duration) error {
	for _, replicas := range s.scales {
		err := insist(ctx, s.name+" is scaled", func(ctx context.Context) error { return scale(ctx, namespace, s.name, replicas) })
		if err != nil {
			return err
		}
		time.Sleep(pause)
	}
	return nil
}

// remove deletes the QueueWorker and waits until it is gone; what it owned may
// still be there.
func remove(ctx context.Context, namespace, name string, how metav1.DeletionPropagation) error {
	qw := firstWish().object(namespace, name)
	key := client.ObjectKeyFromObject(qw)
	if err := insist(ctx, name+" is read", func(ctx context.Context) error { return k8s.Get(ctx, key, qw) }); err != nil {
		return err
	}
	uid := qw.UID
	return insist(ctx, name+" is deleted", func(ctx context.Context) error {
		err := k8s.Delete(ctx, qw, client.PropagationPolicy(how), client.Preconditions{UID: &uid})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = errors.New("it is not gone yet")
		}
		return err
	})
}

// fulfilled says whether nothing that was written was lost: to write the last
// wish again changes nothing, and the autoscaler's last number holds.
func (s *story) fulfilled(ctx context.Context, namespace string, last wish) error {
	qw := firstWish().object(namespace, s.name)
	if err := k8s.Get(ctx, client.ObjectKeyFromObject(qw), qw); err != nil {
		return err
	}
	again, err := last.apply(ctx, namespace, s.name)
	if err != nil {
		return err
	}
	if again.ResourceVersion != qw.ResourceVersion {
		return fmt.Errorf("%s lost what was written: %+v", s.name, last)
	}
	if n := len(s.scales); n > 0 && *qw.Spec.Replicas != s.scales[n-1] {
		return fmt.Errorf("%s has %d replicas, the autoscaler wanted %d", s.name, *qw.Spec.Replicas, s.scales[n-1])
	}
	return nil
}
