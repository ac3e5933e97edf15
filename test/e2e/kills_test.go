// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
)

// A job that was killed is handed out again when its reservation is over. The operator says who was killed, when, and in which
// job.
func TestKilledInMidJobIsNamed(t *testing.T) {
	beside(t)
	short := limits{job: 20, retryAfter: 30}
	for name, c := range map[string]struct {
		kill   func(t *testing.T, pod string)
		reason v1alpha1.KillReason
	}{
		"SIGKILL to php": {killPHP, v1alpha1.KillCrashed},
		"a deletion that leaves it 3 s": {func(t *testing.T, pod string) {
			mustKubectl(t, "delete", "pod", pod, "--grace-period=3", "--wait=false")
		}, v1alpha1.KillGraceCut},
	} {
		for _, connection := range connections {
			t.Run(name+", "+connection, func(t *testing.T) {
				t.Parallel()
				s := newShop(t, connection)
				qw := s.queueWorker("worker", 2, short)
				qw.Spec.Timeouts.HTTPSeconds = ptr.To[int32](2)
				declared(t, qw)
				s.dispatch(t, "Long", "job", seconds(15))
				first := s.started(t, "job", 1)[0]
				uuid := jobOf(t, first.pod).UUID
				c.kill(t, first.pod)
				kill := awaitKill(t, qw, first.pod, c.reason)
				if wanted := `App\Jobs\Long ` + uuid; kill.Job != wanted {
					t.Errorf("it names the job %q, wanted %q", kill.Job, wanted)
				}
				if c.reason == v1alpha1.KillGraceCut && len(told(t, qw, v1alpha1.ReasonMayBeCut)) == 0 {
					t.Error("no event warned that the job may be cut")
				}
				second := s.started(t, "job", 2)[1]
				if !first.end.IsZero() || second.start.Before(kill.Time.Time) {
					t.Errorf("killed at %s, but the runs are %+v", kill.Time, s.runs(t)["job"])
				}
				t.Logf("2 starts, the second %.1f s after the first; %s", second.start.Sub(first.start).Seconds(), kill.Message)
			})
		}
	}
}

// killPHP kills the worker behind the agent's back.
func killPHP(t *testing.T, pod string) {
	t.Helper()
	mustKubectl(t, "exec", pod, "-c", v1alpha1.WorkerContainer, "--", "sh", "-c",
		`for file in /queueworker/run/w.*.state; do pid=${file##*/w.}; kill -9 "${pid%.state}"; done`)
}

// runningJob is the part of the worker's state that the tests need.
type runningJob struct{ UUID, Class string }

// jobOf asks the worker's state for its job.
func jobOf(t *testing.T, pod string) runningJob {
	t.Helper()
	text := mustKubectl(t, "exec", pod, "-c", v1alpha1.WorkerContainer, "--", "php", "-r",
		`echo implode(array_map("file_get_contents", glob("/queueworker/run/w.*.state")));`)
	var state struct{ Job runningJob }
	at := strings.Index(text, "{") // the checksum is before it
	if at < 0 || json.NewDecoder(strings.NewReader(text[at:])).Decode(&state) != nil || state.Job.UUID == "" {
		t.Fatalf("pod %s: no job in its state %q", pod, text)
	}
	return state.Job
}

// A call without a limit outlives PHP's own limit, and without pcntl there is none. The watchdog ends it before the queue hands
// the job out again, in a drain too.
func TestStuckJobIsEndedAndNamed(t *testing.T) {
	beside(t)
	const withoutPcntl = "pcntl_sigprocmask,pcntl_async_signals,pcntl_signal,pcntl_alarm"
	for name, c := range map[string]struct {
		class string
		pcntl bool
		drain bool
	}{
		"curl":                       {"Curls", true, false},
		"curl, no pcntl, in a drain": {"Curls", false, true},
		"socket, no pcntl":           {"ReadsSocket", false, false},
		"socket, in a drain":         {"ReadsSocket", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, onRedis)
			qw := s.queueWorker("worker", 2, limits{job: 5, retryAfter: 20}) // the watchdog bites at 5 + 2 + 5
			qw.Spec.Timeouts.HTTPSeconds = ptr.To[int32](2)
			if !c.pcntl {
				wrapped("/bin/sh", "-c", `shift; exec php -d disable_functions=`+withoutPcntl+` "$@"`, "sh")(qw)
				worker := &qw.Spec.Template.Spec.Containers[0]
				worker.Env = append(worker.Env, corev1.EnvVar{Name: "APP_NO_PCNTL", Value: "1"})
			}
			declared(t, qw)
			s.dispatch(t, c.class, "stuck", map[string]any{
				"url": "http://" + providerAddress + ":8080/hang", "address": "tcp://" + providerAddress + ":8081",
			})
			first := s.started(t, "stuck", 1)[0]
			uuid := jobOf(t, first.pod).UUID
			if c.drain {
				mustKubectl(t, "delete", "pod", first.pod, "--wait=false")
			}
			kill := awaitKill(t, qw, first.pod, v1alpha1.KillOverran)
			if wanted := `App\Jobs\` + c.class + " " + uuid; kill.Job != wanted {
				t.Errorf("it names the job %q, wanted %q", kill.Job, wanted)
			}
			second := s.started(t, "stuck", 2)[1]
			t.Logf("killed %.0f s after its start, started again %.1f s after it",
				kill.Time.Sub(first.start).Seconds(), second.start.Sub(first.start).Seconds())
			if second.start.Before(kill.Time.Time) {
				t.Errorf("the second run began at %s, the first was killed at %s", second.start, kill.Time)
			}
		})
	}
}
