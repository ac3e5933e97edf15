// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
)

// What the fence is told of the provider, which is the same one under three names: it can be asked, it recognises keys, and it
// offers nothing.
const (
	asked   = "bank"
	keyed   = "stripe"
	neither = "mail"
)

// longCall is what a slow charge takes, in seconds: long enough to kill somebody in the middle of it, and below the fence's own
// limit of 18 - 3.
const longCall = 10

// TestWorkerKilledBetweenChargeAndRecord: the provider has charged and the job, which has the answer, is killed before it could
// record it. The queue hands it out again. Behind the fence it is told the first answer; without, it charges again.
func TestWorkerKilledBetweenChargeAndRecord(t *testing.T) {
	beside(t)
	for name, c := range map[string]struct {
		through string
		charges int
	}{"directly": {"", 2}, "through the fence": {asked, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, onDatabase)
			qw := s.paying(t, c.through)
			s.pays(t, c.through, map[string]any{"hold": 20})
			first := s.noted(t, "answer")[0]
			killPHP(t, first.Host)
			kill := awaitKill(t, qw, first.Host, v1alpha1.KillCrashed)
			paid := s.noted(t, "paid")[0]
			s.leftQueue(t, queueCounts{})
			if first.Status != 200 || paid.Attempt != 2 || paid.time().Before(kill.Time.Time) {
				t.Fatalf("wanted an answer, a kill before the record, and a second run that records: %+v, killed at %s, %+v", first, kill.Time, paid)
			}
			if n := charges(t)[s.job("order")]; n != c.charges {
				t.Errorf("the provider charged %d times, wanted %d", n, c.charges)
			}
			if c.through == "" {
				t.Logf("without a fence: 2 runs, charges %s and %s", first.ID, paid.ID)
				return
			}
			if first.Replayed || !paid.Replayed || paid.ID != first.ID {
				t.Errorf("wanted the first answer told again, got %+v after %+v", paid, first)
			}
			s.agree(t, fenceRow{scope: asked, state: "done", outcome: "effect", attempt: "1", id: first.ID})
		})
	}
}

// TestFenceKilledInACall: the fence is killed while the provider is at work, so nobody hears the answer. The provider charges all
// the same. The next run finds that out by a lookup, or the provider recognises the key, or a person is asked.
func TestFenceKilledInACall(t *testing.T) {
	beside(t)
	for through, want := range map[string]fenceRow{
		asked:   {state: "done", outcome: "effect", attempt: "1"},
		keyed:   {state: "done", outcome: "effect", attempt: "2"},
		neither: {state: "needs_review", attempt: "1"},
	} {
		t.Run(through, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, onDatabase)
			s.paying(t, through)
			s.pays(t, through, map[string]any{"seconds": longCall})
			pod := s.atWork(t)
			killFence(t, pod)
			if r := s.requests(t)[0]; r.ID != "" {
				t.Fatalf("the call was over before the fence was killed, so this shows nothing: %+v", r)
			}
			eventually(t, patience, "the fence was killed and started again", func() bool {
				seen, _ := suite.pods.get(pod)
				end := fenceOf(t, seen).LastTerminationState.Terminated
				return end != nil && end.ExitCode == 137
			})
			want.scope = through
			if through == neither {
				s.leftQueue(t, queueCounts{Failed: 1})
				told := s.noted(t, "answer")
				if last := told[len(told)-1]; last.Problem != "urn:queueworker:fence:needs-review" {
					t.Errorf("wanted a person to be asked, got %+v", last)
				}
				s.agree(t, want)
				return
			}
			paid := s.noted(t, "paid")[0]
			s.leftQueue(t, queueCounts{})
			if want.id = s.requests(t)[0].ID; paid.ID != want.id {
				t.Errorf("wanted the answer of charge %s, got %+v", want.id, paid)
			}
			s.agree(t, want)
		})
	}
}

// TestDrainDuringACharge: a pod is deleted in the middle of a slow charge. The fence outlives the worker, so the charge is on record
// when the pod is gone, also where the worker is killed in the drain and hears no answer.
func TestDrainDuringACharge(t *testing.T) {
	beside(t)
	for name, killed := range map[string]bool{"and the job ends": false, "and the worker is killed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, onDatabase)
			s.paying(t, asked)
			s.pays(t, asked, map[string]any{"seconds": longCall})
			pod := s.atWork(t)
			mustKubectl(t, "delete", "pod", pod, "--wait=false")
			if killed {
				killPHP(t, pod)
			}
			if r := s.requests(t)[0]; r.ID != "" {
				t.Fatalf("the call was over before the pod had to end, so this shows nothing: %+v", r)
			}
			gone := awaitGone(t, pod)
			want := fenceRow{scope: asked, state: "done", outcome: "effect", attempt: "1", id: s.requests(t)[0].ID}
			s.agree(t, want)
			if end := fenceOf(t, gone).State.Terminated; end == nil || end.ExitCode != 0 {
				t.Errorf("the fence did not end well: %+v", fenceOf(t, gone))
			}
			paid := s.noted(t, "paid")[0]
			s.leftQueue(t, queueCounts{})
			if paid.ID != want.id || paid.Replayed != killed {
				t.Errorf("wanted the answer of charge %s, got %+v", want.id, paid)
			}
			if !killed {
				wellEnded(t, gone)
				s.ranOnce(t, "order", longCall)
			}
			s.agree(t, want)
		})
	}
}

// paying is a worker of the shop that is Ready, with a fence unless it calls the provider directly.
func (s *shop) paying(t *testing.T, through string) *v1alpha1.QueueWorker {
	t.Helper()
	qw := s.queueWorker("worker", 1, limits{job: 25, retryAfter: 48})
	qw.Spec.Timeouts.HTTPSeconds = ptr.To[int32](18)
	// The second run comes when a slow charge and the lease of a killed fence are over.
	qw.Spec.Retries = v1alpha1.Retries{Tries: ptr.To[int32](5), BackoffSeconds: []int32{20, 30, 40, 50}}
	if through == "" {
		declared(t, qw)
		return qw
	}
	secret := s.fenceSecret()
	deployed(t, secret)
	qw.Spec.Fence = fenceTo("http://"+providerAddress+":8080", secret.Name)
	declared(t, qw)
	mustKubectl(t, "wait", "qw/"+qw.Name, "--for=condition=FenceReady", "--timeout=120s")
	return qw
}

func (s *shop) fenceSecret() *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: s.name + "-fence", Namespace: namespace},
		StringData: map[string]string{"dsn": "shop@tcp(" + mariaAddress + ":3306)/" + s.name},
	}
}

func fenceTo(url, secret string) v1alpha1.Fence {
	return v1alpha1.Fence{
		Mode:  v1alpha1.FenceModeProxy,
		Store: &v1alpha1.FenceStore{Type: v1alpha1.FenceStoreMySQL, SecretRef: v1alpha1.FenceSecretRef{Name: secret}},
		Providers: []v1alpha1.FenceProvider{
			{Name: asked, URL: url, ProviderID: "body.id", LookupLagSeconds: ptr.To[int32](1), Lookup: &v1alpha1.FenceLookup{
				Path:      "/charges/search?reference={key}",
				Succeeded: "status == 200 && body.data.size() > 0", Absent: "status == 200 && body.data.size() == 0",
				ProviderID: "body.data[0].id", Result: "body.data[0]",
			}},
			{Name: keyed, URL: url + "/keyed", ProviderID: "body.id", KeyTTLSeconds: ptr.To[int32](86400), StoresErrors: true},
			{Name: neither, URL: url},
		},
	}
}

// pays queues the job that charges the shop's one order.
func (s *shop) pays(t *testing.T, through string, facts map[string]any) {
	t.Helper()
	facts["order"], facts["through"] = s.job("order"), through
	s.dispatch(t, "Pays", "order", facts)
}

// noted waits for a note of one kind and returns all of that kind.
func (s *shop) noted(t *testing.T, event string) []note {
	t.Helper()
	var found []note
	eventually(t, patience, fmt.Sprintf("note %q of a job of %s", event, s.name), func() bool {
		found = slices.DeleteFunc(s.notes(t), func(n note) bool { return n.Event != event })
		return len(found) > 0
	})
	return found
}

// leftQueue waits until the queue's tables say this: a job's last note comes a moment before the worker takes it off the queue.
func (s *shop) leftQueue(t *testing.T, want queueCounts) {
	t.Helper()
	eventually(t, patience, fmt.Sprintf("the queue of %s holds %+v", s.name, want), func() bool { return s.counts(t) == want })
}

// atWork waits until the provider is at work for the shop, and returns the pod that called it.
func (s *shop) atWork(t *testing.T) (pod string) {
	t.Helper()
	eventually(t, patience, "the provider is at work for "+s.name, func() bool { return len(s.requests(t)) > 0 })
	return s.runs(t)["order"][0].pod
}

// charging is one request as the provider's log has it.
type charging struct {
	Order, Reference, Key, ID string
	Charged                   bool
}

func (s *shop) requests(t *testing.T) []charging {
	t.Helper()
	var log struct{ Data []charging }
	if text := atProvider(t, "/requests", s.job("")); json.Unmarshal(text, &log) != nil {
		t.Fatalf("the provider's log is %q", text)
	}
	return log.Data
}

// fenceRow is a row of the fence's table, as the database prints it.
type fenceRow struct{ scope, key, state, outcome, attempt, id string }

func (s *shop) fenceRows(t *testing.T) []fenceRow {
	t.Helper()
	out, err := mariaSQL(t.Context(),
		"SELECT CONCAT_WS('|', scope, idem_key, state, outcome, attempt, provider_id) FROM "+s.name+".queueworker_fence ORDER BY 1")
	if err != nil {
		t.Fatal(err)
	}
	var rows []fenceRow
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) != 6 {
			t.Fatalf("a row of the fence's table is %q", line)
		}
		rows = append(rows, fenceRow{f[0], f[1], f[2], f[3], f[4], f[5]})
	}
	return rows
}

// agree asserts that the shop's one order has this row and no other, and that the provider's log says the same: one charge, under
// the row's key and id, and as many requests as the fence has allowed.
func (s *shop) agree(t *testing.T, want fenceRow) {
	t.Helper()
	want.key = s.job("order") + "/charge"
	rows, log := s.fenceRows(t), s.requests(t)
	if len(rows) != 1 || rows[0] != want {
		t.Errorf("the fence's table holds %+v, wanted %+v", rows, want)
	}
	charged := 0
	for _, r := range log {
		if r.Charged {
			charged++
		}
		if r.Reference != want.key || want.state == "done" && r.ID != want.id || (r.Key == want.key) != (want.scope == keyed) {
			t.Errorf("the provider's log has %+v, the fence's table %+v", r, want)
		}
	}
	if charged != 1 || fmt.Sprint(len(log)) != want.attempt {
		t.Errorf("%d charges by %d requests, wanted 1 by %s: %+v", charged, len(log), want.attempt, log)
	}
	t.Logf("fence %+v; provider %+v", rows, log)
}

// killFence kills the sidecar of a pod.
func killFence(t *testing.T, pod string) {
	t.Helper()
	seen, _ := suite.pods.get(pod)
	if err := suite.node.Kill(t.Context(), fenceOf(t, seen).ContainerID); err != nil {
		t.Fatal(err)
	}
}

// fenceOf is what a pod says of its fence.
func fenceOf(t *testing.T, pod seenPod) corev1.ContainerStatus {
	t.Helper()
	for _, status := range pod.Status.InitContainerStatuses {
		if status.Name == v1alpha1.FenceContainer {
			return status
		}
	}
	t.Fatalf("pod %s has no fence", pod.Name)
	return corev1.ContainerStatus{}
}
