// SPDX-License-Identifier: Apache-2.0

package webhookload

import (
	"testing"
	"time"
)

// With failurePolicy Fail no write gets past the webhook, whoever dies: it is
// judged, or its writer hears that it was not.
func TestNoAnswerIsWrongWhileReplicasDie(t *testing.T) {
	lasting, between, wanted := 15*time.Second, 4*time.Second, 3
	if full {
		lasting, between, wanted = 2*time.Minute, 20*time.Second, 5
	}
	s := newService(t, 2, "Fail")
	eventually(t, "both replicas are ready", s.whole)
	namespace := populated(t)

	stop, done := make(chan struct{}), make(chan *tally)
	go func() { done <- load(t.Context(), namespace, stop) }()
	began, kills := time.Now(), 0
	for kills < wanted || time.Since(began) < lasting {
		time.Sleep(between)
		if time.Since(began) >= lasting && kills >= wanted {
			break
		}
		eventually(t, "both replicas are ready again", s.whole)
		s.kill(kills % 2)
		kills++
	}
	close(stop)
	result := <-done

	t.Logf("%d replicas killed; %s", kills, result)
	for _, fault := range result.faults {
		t.Error(fault)
	}
	if verdicts, all := result.verdicts(); verdicts < all/2 {
		t.Errorf("%d of %d writes were decided: one replica was there all the time", verdicts, all)
	}
	for n, a := range right {
		if result.of(n, a) == 0 {
			t.Errorf("no %s write was %s", n, a)
		}
	}
	if result.of(good, notAsked)+result.of(warned, notAsked)+result.of(broken, notAsked) == 0 {
		t.Log("no write met a dying replica")
	}
	for _, name := range holdsTheTakenQueue(t, namespace) {
		t.Errorf("%s is stored with the queue that no verdict allows", name)
	}
	eventually(t, "both replicas are ready at the end", s.whole)
}

// The same writes with failurePolicy Ignore and nobody to judge: broken ones are
// stored and nobody is warned. It is what Fail is for, and shows that the test
// above would see it.
func TestIgnoreLetsThroughWhatOnlyTheWebhookSees(t *testing.T) {
	s := newService(t, 1, "Ignore")
	eventually(t, "the replica is ready", s.whole)
	namespace := populated(t)
	s.remove(0)

	stop, done := make(chan struct{}), make(chan *tally)
	go func() { done <- load(t.Context(), namespace, stop) }()
	time.Sleep(2 * time.Second)
	close(stop)
	result := <-done

	t.Log(result)
	if n := result.of(broken, admitted); n == 0 {
		t.Error("no broken write was admitted")
	}
	if n := result.of(warned, admitted); n == 0 {
		t.Error("every risky write came with its warning")
	}
	if len(holdsTheTakenQueue(t, namespace)) == 0 {
		t.Error("no broken object is stored")
	}
	if len(result.faults) != result.of(broken, admitted)+result.of(warned, admitted) {
		t.Errorf("%d faults counted", len(result.faults))
	}
}
