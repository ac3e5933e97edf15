// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/agent/termination"
)

const (
	exitKilled = 128 + 9 // SIGKILL
	// reasonOOM is the kubelet's reason for a container in which the kernel
	// killed a process for memory, whenever that was.
	reasonOOM = "OOMKilled"
	// reasonEvicted is the reason of a pod that its node evicted.
	reasonEvicted = "Evicted"

	// clockSkew is how much earlier than the promise a kill at the end of the
	// whole grace may seem: the request has the API server's time, the end the
	// node's, and both are whole seconds.
	clockSkew = 5 * time.Second
)

// stopSignals are the exit codes of a process that one of the usual stop
// signals ended: INT, QUIT, TERM.
var stopSignals = map[int32]bool{128 + 2: true, 128 + 3: true, 128 + 15: true}

// Judge says how a run of the pod's worker ended. The grace is the one that the
// pod was stopped with, as it was before the worker had ended.
func Judge(pod *corev1.Pod, run Run, grace Grace) Ending {
	e := newEnding(pod, run, grace)
	message, err := termination.Decode(run.State.Message)
	byAgent := err == nil
	if byAgent {
		if e.Job = message.Job; message.Outcome == termination.Drained {
			e.Job = message.WaitedFor
		}
		e.readTimes(&message)
	}
	code := run.State.ExitCode
	switch {
	case run.State.Reason == unknownStatus:
		e.Kind = Unobserved
	case byAgent && message.Outcome == termination.Drained:
		e.Kind = Drained
	case code == 0 && !e.Asked: // a program that ends by itself and says that all is well
		e.Kind = None
	case code == 0:
		e.Kind = Drained
	case byAgent && !message.Provisional:
		e.kill(reasonOf(&message, run.State.Reason), message.Reason)
	case code == exitKilled:
		e.killedFromOutside(pod, run)
	case !byAgent && e.Asked && stopSignals[code]:
		e.Kind = Drained
	default:
		e.kill(v1alpha1.KillCrashed, fmt.Sprintf("exit code %d", code))
	}
	return e
}

func newEnding(pod *corev1.Pod, run Run, grace Grace) Ending {
	e := Ending{Pod: pod.Name, UID: pod.UID, At: run.State.FinishedAt.Time, Grace: grace}
	// A run that was over before anybody asked for the stop was not stopped.
	if grace.Stopping && !e.At.Before(grace.Asked.Add(-clockSkew)) {
		e.Asked, e.Had = true, max(0, e.At.Sub(grace.Asked))
	}
	return e
}

// readTimes takes the agent's own measure of a drain, which is finer than the
// times of the API, and knows of stops that are no deletion of the pod.
func (e *Ending) readTimes(message *termination.Message) {
	asked, err := time.Parse(time.RFC3339, message.DrainAt)
	if err != nil {
		return
	}
	if !e.Asked {
		e.Asked, e.Had = true, max(0, e.At.Sub(asked))
	}
	if !message.Provisional {
		e.Had = time.Duration(message.DrainSeconds * float64(time.Second))
	}
}

func (e *Ending) kill(reason v1alpha1.KillReason, detail string) {
	e.Kind, e.Reason, e.Detail = Killed, reason, detail
}

// reasonOf translates the agent's last word. A kill that it could not explain
// was for memory where the runtime says so.
func reasonOf(message *termination.Message, runtime string) v1alpha1.KillReason {
	switch message.Outcome {
	case termination.Overran:
		return v1alpha1.KillOverran
	case termination.OOMKilled:
		return v1alpha1.KillOOMKilled
	case termination.Killed:
		if runtime == reasonOOM {
			return v1alpha1.KillOOMKilled
		}
	}
	return v1alpha1.KillCrashed
}

// killedFromOutside judges a container that got SIGKILL and could not say why.
func (e *Ending) killedFromOutside(pod *corev1.Pod, run Run) {
	evictor, evicted := Eviction(pod)
	switch {
	case e.Asked && e.hadAll(): // whatever else is true, it had what it was promised
		e.kill(v1alpha1.KillGraceEnded, "")
	case pod.Status.Reason == reasonEvicted: // a node under pressure, which may give no grace
		e.kill(v1alpha1.KillEvicted, evictor)
	case run.State.Reason == reasonOOM && !e.graceIsOver():
		e.kill(v1alpha1.KillOOMKilled, "")
	case evicted:
		e.kill(v1alpha1.KillEvicted, evictor)
	case e.Asked && e.Grace.Stopping:
		e.kill(v1alpha1.KillGraceCut, "")
	case e.Asked: // by the kubelet, which restarts the container
		e.kill(v1alpha1.KillGraceEnded, "only the container was stopped, as after a failed liveness probe")
	default:
		e.kill(v1alpha1.KillCrashed, "something outside the container killed it")
	}
}

// hadAll says that a worker had all the time that it was promised. Where the
// promise is not known, the pod's own grace stands for it.
func (e *Ending) hadAll() bool {
	promised := e.Grace.Promised
	if promised == 0 {
		promised = e.Grace.Admitted
	}
	tolerance := min(clockSkew, seconds(promised)/4)
	return e.Grace.Stopping && e.Grace.Granted >= promised && e.Had >= seconds(promised)-tolerance
}

// graceIsOver says that the granted grace, long or short, had passed: then a
// runtime's OOMKilled may be about an earlier process.
func (e *Ending) graceIsOver() bool {
	return e.Asked && e.Grace.Stopping && e.Had >= seconds(e.Grace.Granted)
}

// Eviction says who took the pod off its node against its will.
func Eviction(pod *corev1.Pod) (by string, evicted bool) {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue {
			return condition.Reason, true
		}
	}
	return pod.Status.Reason, pod.Status.Reason == reasonEvicted
}

// Vanished is the ending of a worker whose pod is gone although it was last seen
// running: deleted by force, or gone while nobody watched.
func Vanished(pod *corev1.Pod, grace Grace) Ending {
	return Ending{Pod: pod.Name, UID: pod.UID, Kind: Unobserved, Grace: grace}
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }
