// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/test/replay"
)

// How the watched QueueWorkers here are looked at, in seconds.
const (
	lookEvery  = 5
	stuckAfter = 20
)

// late is what the way from a fact to the status may take besides: pods that start or end, a kubelet's probe, a busy machine.
const late = 30 * time.Second

// watched is a QueueWorker whose queue somebody watches, and a test that knows what is true.
type watched struct {
	*shop
	qw     *v1alpha1.QueueWorker
	server server // its own, so that it can be taken away

	told map[v1alpha1.State]map[v1alpha1.State]int // how often each state was told, by what was true
	took map[string]time.Duration
}

// What can happen to a queue and its workers is told as what it is, soon, and nothing else is told meanwhile.
func TestEveryStateIsTold(t *testing.T) {
	beside(t)
	for i, connection := range connections {
		t.Run(connection, func(t *testing.T) {
			t.Parallel()
			w := watch(t, connection, fmt.Sprint("10.0.0.", 64+i))
			w.becomes(t, v1alpha1.StateEmpty, "nothing to do")
			w.loaded(t)
			w.failing(t)
			w.frozen(t)
			w.stuckInACall(t)
			w.scaledToZero(t)
			w.withoutWorkers(t)
			w.maintenance(t)
			w.monitorKilled(t)
			w.serverAway(t)
			w.print(t)
		})
	}
}

// watch declares it, with a server of its own.
func watch(t *testing.T, connection, address string) *watched {
	t.Helper()
	w := &watched{shop: newShop(t, connection), told: map[v1alpha1.State]map[v1alpha1.State]int{}, took: map[string]time.Duration{}}
	kind, variable := "redis", "REDIS_HOST"
	if connection == onDatabase {
		kind, variable = "mariadb", "DB_HOST"
	}
	w.server = servers[slices.IndexFunc(servers, func(s server) bool { return s.name == kind })].at(w.name+"-"+kind, address)
	deployed(t, w.server.objects()...)
	if err := w.server.works(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range w.env {
		if w.env[i].Name == variable {
			w.env[i].Value = address
		}
	}
	w.fill(t)
	w.qw = w.queueWorker("watched", 2, ordinary)
	w.qw.Spec.Retries.Tries = ptr.To[int32](1)
	w.qw.Spec.Monitor = v1alpha1.Monitor{IntervalSeconds: ptr.To[int32](lookEvery), StuckAfterSeconds: ptr.To[int32](stuckAfter)}
	// What `artisan down` writes is seen by the monitor's pod where the folder is shared.
	pod := &w.qw.Spec.Template.Spec
	folder := "/var/lib/" + w.name
	if out, err := suite.node.Command(t.Context(), "mkdir", "--mode=0777", folder).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	pod.Volumes = []corev1.Volume{{Name: "framework", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{
		Path: folder, Type: ptr.To(corev1.HostPathDirectory),
	}}}}
	pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "framework", MountPath: "/app/storage/framework"}}
	declared(t, w.qw)
	return w
}

// fill makes the tables in its own server.
func (w *watched) fill(t *testing.T) {
	t.Helper()
	if w.connection == onDatabase {
		statements := "CREATE USER IF NOT EXISTS shop@'%'; GRANT ALL ON *.* TO shop@'%'; CREATE DATABASE IF NOT EXISTS " + w.name
		if _, err := execIn(t.Context(), w.server.name, "mariadb", "--no-defaults", "-uroot", "-S", mariaSocket, "-e", statements); err != nil {
			t.Fatal(err)
		}
		w.artisan(t, "app:schema")
	}
}

// state is what the QueueWorker says now.
func (w *watched) state(t *testing.T) v1alpha1.State {
	t.Helper()
	return v1alpha1.State(condition(t, w.qw, v1alpha1.ConditionConsuming).Reason)
}

// becomes waits until the true state is told, and notes how long that took.
func (w *watched) becomes(t *testing.T, truth v1alpha1.State, why string) {
	t.Helper()
	start, limit := time.Now(), 2*lookEvery*time.Second+late
	if truth == v1alpha1.StateStuck {
		limit += stuckAfter * time.Second
	}
	if why == "nothing to do" {
		limit = patience // it has just been made
	}
	eventually(t, limit, fmt.Sprintf("%s (%s) is told as %s", w.qw.Name, why, truth), func() bool { return w.state(t) == truth })
	if _, known := w.took[why]; !known {
		w.took[why] = time.Since(start)
	}
}

// stays looks for a while at what is told of a truth that lasts.
func (w *watched) stays(t *testing.T, truth v1alpha1.State, looks int) {
	t.Helper()
	for range looks {
		if w.told[truth] == nil {
			w.told[truth] = map[v1alpha1.State]int{}
		}
		told := w.state(t)
		w.told[truth][told]++
		if told != truth {
			now := current(t, w.qw)
			t.Errorf("%s is told while it is %s: %+v", told, truth, now.Status.QueueState)
		}
		time.Sleep(time.Second)
	}
}

// empties waits until the work is done and that is told.
func (w *watched) empties(t *testing.T) {
	t.Helper()
	eventually(t, patience, "the queue of "+w.qw.Name+" is empty", func() bool {
		c := w.counts(t)
		return c.Waiting+c.Reserved == 0
	})
	w.becomes(t, v1alpha1.StateEmpty, "all is done")
	w.stays(t, v1alpha1.StateEmpty, 5)
}

func (w *watched) loaded(t *testing.T) {
	t.Helper()
	w.dispatch(t, "Long", "load", seconds(2), "--times=600")
	w.becomes(t, v1alpha1.StateBusy, "jobs are worked on")
	w.stays(t, v1alpha1.StateBusy, 2*lookEvery)
	w.clear(t)
	w.empties(t)
}

// failing lets one class fail among healthy ones. It is named and counted, and what its exception says is nowhere.
func (w *watched) failing(t *testing.T) {
	t.Helper()
	const jobs, saying = 2000, "this job always fails"
	recorded := w.recorded(t)
	w.dispatch(t, "Fails", "bad", nil, fmt.Sprint("--times=", jobs))
	w.dispatch(t, "Short", "good", nil, "--times=100")
	w.empties(t)
	if failed := w.counts(t).Failed; failed != jobs {
		t.Fatalf("%d jobs failed, wanted %d", failed, jobs)
	}
	eventually(t, 2*lookEvery*time.Second+late, "all failures are counted", func() bool {
		now := current(t, w.qw).Status.QueueState
		return now != nil && now.Failed != nil && *now.Failed == jobs
	})
	now := current(t, w.qw).Status.QueueState
	if f := now.Failing; len(f) != 1 || f[0].Class != `App\Jobs\Fails` || f[0].Error != "RuntimeException" || f[0].Count != jobs || f[0].LastTime.Before(f[0].FirstTime) {
		t.Errorf("failing is %+v", f)
	}
	pod, metrics, err := w.scrape(t)
	if err != nil {
		t.Fatal(err)
	}
	if wanted := fmt.Sprintf(`class="App\\Jobs\\Fails",error="RuntimeException"} %d`, jobs); !strings.Contains(string(metrics), wanted) {
		t.Errorf("the metrics do not say %s:\n%s", wanted, metrics)
	}
	for what, text := range map[string]string{
		"the metrics": string(metrics), "the QueueWorker": mustKubectl(t, "get", "qw", w.qw.Name, "-o", "yaml"),
		"the monitor's log": mustKubectl(t, "logs", pod), "the events": mustKubectl(t, "get", "events", "-o", "yaml"),
	} {
		if strings.Contains(text, saying) {
			t.Errorf("%s shows what an exception says", what)
		}
	}
	if err := recorded().Evaluate(t.Context(), "../monitoring"); err != nil {
		t.Errorf("2,000 failures are to be one alert: %v", err)
	}
}

// scrape is what the monitor's pod tells.
func (w *watched) scrape(t *testing.T) (pod string, metrics []byte, err error) {
	t.Helper()
	pods := suite.pods.labelled(v1alpha1.LabelMonitor, w.qw.Name)
	at := slices.IndexFunc(pods, seenPod.live)
	if at < 0 {
		return "", nil, fmt.Errorf("%s has no monitor", w.qw.Name)
	}
	pod = pods[at].Name
	metrics, err = suite.client.CoreV1().Pods(namespace).ProxyGet("http", pod, "9464", "/metrics", nil).DoRaw(t.Context())
	return pod, metrics, err
}

// recorded scrapes the monitor as Prometheus would, until the recording is asked for.
func (w *watched) recorded(t *testing.T) func() *replay.Recording {
	t.Helper()
	recording := &replay.Recording{
		Labels: map[string]string{"namespace": namespace, "pod": "monitor", "job": "monitors"},
		Alert:  "QueueWorkerJobsFailing",
		Fires:  map[string]string{"severity": "warning", "namespace": namespace, "queueworker": w.qw.Name, "class": `App\Jobs\Fails`, "error": "RuntimeException"},
	}
	scrape := func() {
		if _, metrics, err := w.scrape(t); err == nil {
			recording.Add(metrics)
		}
	}
	scrape()
	over, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-over:
				return
			case <-t.Context().Done():
				return
			case <-time.After(lookEvery * time.Second):
				scrape()
			}
		}
	}()
	return func() *replay.Recording {
		close(over)
		<-stopped
		scrape()
		return recording
	}
}

// frozen stops the workers' processes where they are.
func (w *watched) frozen(t *testing.T) {
	t.Helper()
	w.signal(t, "STOP")
	w.dispatch(t, "Short", "frozen", nil, "--times=5")
	w.becomes(t, v1alpha1.StateStuck, "worker processes are frozen")
	w.stays(t, v1alpha1.StateStuck, 2*lookEvery)
	w.signal(t, "CONT")
	w.empties(t)
}

// signal sends one to every worker's PHP.
func (w *watched) signal(t *testing.T, name string) {
	t.Helper()
	for _, pod := range workers(w.qw) {
		mustKubectl(t, "exec", pod.Name, "-c", v1alpha1.WorkerContainer, "--", "sh", "-c",
			`for file in /queueworker/run/w.*.state; do pid=${file##*/w.}; kill -`+name+` "${pid%.state}"; done`)
	}
}

func (w *watched) stuckInACall(t *testing.T) {
	t.Helper()
	w.dispatch(t, "ReadsSocket", "call", map[string]any{"address": "tcp://" + providerAddress + ":8081"}, "--times=2")
	w.started(t, "call-0", 1)
	w.started(t, "call-1", 1)
	w.dispatch(t, "Short", "behind", nil, "--times=5")
	w.becomes(t, v1alpha1.StateStuck, "every worker is stuck in a call")
	w.stays(t, v1alpha1.StateStuck, 5)
	// The watchdog ends the calls; the jobs would come again.
	eventually(t, patience, "the watchdog ends the calls", func() bool { return current(t, w.qw).Status.LastKill != nil })
	mustKubectl(t, "scale", "qw", w.qw.Name, "--replicas=0")
	w.clear(t)
	mustKubectl(t, "scale", "qw", w.qw.Name, "--replicas=2")
	mustKubectl(t, "wait", "qw/"+w.qw.Name, "--for=condition=Ready", "--timeout=240s")
	w.empties(t)
}

// clear takes away all jobs, those that are being worked on too.
func (w *watched) clear(t *testing.T) {
	t.Helper()
	w.artisan(t, "queue:clear", w.connection, "--force")
}

func (w *watched) scaledToZero(t *testing.T) {
	t.Helper()
	mustKubectl(t, "scale", "qw", w.qw.Name, "--replicas=0")
	w.dispatch(t, "Short", "later", nil, "--times=5")
	w.becomes(t, v1alpha1.StatePaused, "scaled to 0, and jobs wait")
	w.stays(t, v1alpha1.StatePaused, lookEvery)
	mustKubectl(t, "scale", "qw", w.qw.Name, "--replicas=2")
	w.empties(t)
}

// withoutWorkers asks for a node that does not exist.
func (w *watched) withoutWorkers(t *testing.T) {
	t.Helper()
	patched(t, w.qw, `{"spec":{"strategy":{"type":"Recreate"},"template":{"spec":{"nodeSelector":{"a":"node-that-is-not-there"}}}}}`)
	eventually(t, patience, "the old workers are gone", func() bool { return current(t, w.qw).Status.ReadyReplicas == 0 })
	w.dispatch(t, "Short", "orphan", nil, "--times=5")
	w.becomes(t, v1alpha1.StateStopped, "no worker, and jobs wait")
	w.stays(t, v1alpha1.StateStopped, 2*lookEvery)
	patched(t, w.qw, `{"spec":{"template":{"spec":{"nodeSelector":null}}}}`)
	mustKubectl(t, "wait", "qw/"+w.qw.Name, "--for=condition=Ready", "--timeout=240s")
	w.empties(t)
}

func (w *watched) maintenance(t *testing.T) {
	t.Helper()
	pod := workers(w.qw)[0].Name
	artisan := func(word string) {
		mustKubectl(t, "exec", pod, "-c", v1alpha1.WorkerContainer, "--", "php", "artisan", word)
	}
	artisan("down")
	w.dispatch(t, "Short", "kept", nil, "--times=5")
	w.becomes(t, v1alpha1.StatePaused, "maintenance mode")
	w.stays(t, v1alpha1.StatePaused, lookEvery)
	artisan("up")
	w.empties(t)
}

// monitorKilled kills the monitor in the middle of work: another goes on where it was.
func (w *watched) monitorKilled(t *testing.T) {
	t.Helper()
	w.dispatch(t, "Long", "unseen", seconds(2), "--times=600")
	w.becomes(t, v1alpha1.StateBusy, "jobs are worked on, and the monitor will be killed")
	mustKubectl(t, "delete", "pod", "-l", v1alpha1.LabelMonitor+"="+w.qw.Name, "--grace-period=0", "--force")
	w.stays(t, v1alpha1.StateBusy, 4*lookEvery)
	w.clear(t)
	w.empties(t)
}

func (w *watched) serverAway(t *testing.T) {
	t.Helper()
	mustKubectl(t, "patch", "daemonset", w.server.name, "--type=merge", "-p", `{"spec":{"template":{"spec":{"nodeSelector":{"no":"node"}}}}}`)
	w.becomes(t, v1alpha1.StateUnknown, "its server is away")
	w.stays(t, v1alpha1.StateUnknown, 2*lookEvery)
	if now := current(t, w.qw).Status.QueueState; now == nil || now.Depth != nil || now.Ready != nil || now.Since == nil || now.Message == "" {
		t.Errorf("wanted no number, a time and a reason, got %+v", now)
	}
	mustKubectl(t, "patch", "daemonset", w.server.name, "--type=merge", "-p", `{"spec":{"template":{"spec":{"nodeSelector":null}}}}`)
	if err := w.server.works(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.fill(t)
	w.becomes(t, v1alpha1.StateEmpty, "its server is back, and empty")
}

// print shows what was told of each truth, and how soon.
func (w *watched) print(t *testing.T) {
	t.Helper()
	var lines strings.Builder
	fmt.Fprintf(&lines, "%s, one look a second; rows are true, columns told\n%-10s", w.connection, "")
	for _, told := range v1alpha1.States() {
		fmt.Fprintf(&lines, "%9s", told)
	}
	for _, truth := range v1alpha1.States() {
		fmt.Fprintf(&lines, "\n%-10s", truth)
		for _, told := range v1alpha1.States() {
			fmt.Fprintf(&lines, "%9d", w.told[truth][told])
		}
	}
	for why, took := range w.took {
		fmt.Fprintf(&lines, "\n%5.1f s until told: %s", took.Seconds(), why)
	}
	t.Log(lines.String())
}
