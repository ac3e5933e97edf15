// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/queueworker/operator/api/v1alpha1"
)

// oldGrace is what a Deployment has that says nothing.
const oldGrace = corev1.DefaultTerminationGracePeriodSeconds

// A plain Deployment on the Database driver, with its own reservation of 90 s, is replaced while jobs come in, by the steps of
// docs/migrate.md: the commands are the document's.
func TestMigrationByTheDocumentLosesNothingAndRunsNothingTwice(t *testing.T) {
	beside(t)
	operator(t)
	s := newShop(t, onDatabase)
	const workers = 3
	// The old grace is shorter than the jobs, as the default of 30 s is for a job of a minute: only the pause saves them.
	numbers := limits{job: 30, retryAfter: 90, grace: 3}
	old := s.plain("old-worker", workers, numbers)
	qw := s.queueWorker("payments", workers, numbers)
	deployed(t, old)
	mustKubectl(t, "rollout", "status", "deployment/"+old.Name, "--timeout=240s")
	oldPods := names(suite.pods.labelled(shopLabel, s.name))
	jobs, longest := 80, 8
	if full() {
		jobs, longest = 160, 25
	}
	load := func(name string) {
		s.artisan(t, "app:load", s.job(name), fmt.Sprintf("--jobs=%d", jobs), "--from=4", fmt.Sprintf("--to=%d", longest),
			fmt.Sprintf("--seed=%d", suite.seed))
	}
	load("before")
	eventually(t, patience, "the old workers are inside jobs", func() bool { return len(s.inJob(t)) == workers })

	t.Cleanup(func() { // the document's commands make it
		if _, err := kubectl(context.Background(), "", "delete", "qw", qw.Name, "--ignore-not-found", "--wait=false"); err != nil {
			t.Error(err)
		}
	})
	moved := make(chan error, 1)
	go func() { moved <- s.move(t, qw, old.Name) }()
	eventually(t, patience, "a new worker is inside a job", func() bool {
		for pod := range s.inJob(t) {
			if strings.HasPrefix(pod, qw.Name) {
				return true
			}
		}
		return false
	})
	load("meanwhile")
	if err := <-moved; err != nil {
		t.Fatal(err)
	}
	for _, name := range oldPods {
		pod := awaitGone(t, name)
		wellEnded(t, pod)
		t.Logf("old pod %s: gone %.1f s after it was asked to stop, its grace is %d s", name, pod.gone.Sub(pod.asked).Seconds(), numbers.grace)
	}
	eventually(t, 4*patience, "all jobs are done", func() bool { return s.counts(t) == queueCounts{} && len(s.inJob(t)) == 0 })
	s.judgeMove(t, 2*jobs, workers)
}

// move runs the document's commands in the document's order. What they name of somebody's own is another.
func (s *shop) move(t *testing.T, qw *v1alpha1.QueueWorker, old string) error {
	folder := t.TempDir()
	manifest, err := json.Marshal(qw)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "queueworker.yaml"), manifest, 0o600); err != nil {
		return err
	}
	if err := os.Symlink(suite.node.Kubectl(), filepath.Join(folder, "kubectl")); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "migrate.md"))
	if err != nil {
		return err
	}
	_, section, _ := strings.Cut(string(text), "\n## From a Deployment\n")
	_, script, _ := strings.Cut(section, "```sh\n")
	script, _, _ = strings.Cut(script, "```\n")
	for _, pair := range [][2]string{
		{"qw/payments", "qw/" + qw.Name},
		{"app=old-worker", shopLabel + "=" + s.name},
		{"deployment/old-worker", "deployment/" + old},
		{"pkill -USR2 -o php", "sh -c 'kill -USR2 1'"}, // the image has no pkill: the document says what to do then
	} {
		if !strings.Contains(script, pair[0]) {
			return fmt.Errorf("docs/migrate.md does not say %q:\n%s", pair[0], script)
		}
		script = strings.ReplaceAll(script, pair[0], pair[1])
	}
	command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
	command.Dir = folder
	command.Env = append(os.Environ(), "KUBECONFIG="+suite.node.KubeconfigPath(), "PATH="+folder+":"+os.Getenv("PATH"))
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s\n%s", err, script, output)
	}
	return nil
}

// judgeMove asserts that so many jobs ran, each once and whole. Only a sleep() that an old worker was in when it was paused may
// have been cut: any signal does that, and the document says so.
func (s *shop) judgeMove(t *testing.T, jobs, oldWorkers int) {
	t.Helper()
	all, classes := s.runs(t), map[string]string{}
	for _, n := range s.notes(t) {
		classes[strings.TrimPrefix(n.Name, s.job(""))] = n.Class
	}
	if len(all) != jobs {
		t.Errorf("%d jobs ran, %d were queued", len(all), jobs)
	}
	cut, byOld := 0, 0
	for name, runs := range all {
		wanted, err := strconv.ParseFloat(name[strings.LastIndex(name, "-")+1:], 64)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(runs[0].pod, s.name+"-payments") {
			byOld++
		}
		switch fault := notOnce(runs, wanted); {
		case strings.HasPrefix(fault, "was cut") && classes[name] == "Sleeps" && !strings.HasPrefix(runs[0].pod, s.name+"-payments"):
			cut++
		case fault != "":
			t.Errorf("job %s %s: %+v", name, fault, runs)
		}
	}
	if cut > oldWorkers {
		t.Errorf("%d sleeps were cut, %d old workers were paused", cut, oldWorkers)
	}
	if byOld == 0 || byOld == len(all) {
		t.Errorf("%d of %d jobs were run by old workers: it was no move under load", byOld, len(all))
	}
	t.Logf("%d jobs, each run once: %d by old workers, %d by new ones; %d sleeps cut by the pause", len(all), byOld, len(all)-byOld, cut)
	s.nothingLeft(t)
}

// The wrong order: better numbers beside old workers. Those hand out what the new ones still run.
func TestNewNumbersBesideOldWorkersRunJobsTwice(t *testing.T) {
	beside(t)
	old, now, long := limits{job: 12, retryAfter: 15, grace: oldGrace}, limits{job: 45, retryAfter: 60}, 40.0
	if full() {
		old, now, long = limits{job: 60, retryAfter: 90, grace: oldGrace}, limits{job: 300, retryAfter: 400}, 150
	}
	const workers = 2
	s := newShop(t, onDatabase)
	deployment := s.plain("old-worker", workers, old)
	deployed(t, deployment)
	qw := s.queueWorker("payments", workers, now)
	declared(t, qw)
	mustKubectl(t, "rollout", "status", "deployment/"+deployment.Name, "--timeout=240s")

	// The old ones look away while the new ones take the jobs.
	s.signalOld(t, "USR2")
	s.dispatch(t, "Long", "long", seconds(long), fmt.Sprintf("--times=%d", workers))
	for i := range workers {
		s.started(t, fmt.Sprintf("long-%d", i), 1)
	}
	s.signalOld(t, "CONT")
	twice := 0
	for i := range workers {
		runs := s.started(t, fmt.Sprintf("long-%d", i), 2)
		if strings.HasPrefix(runs[0].pod, qw.Name) && strings.HasPrefix(runs[1].pod, deployment.Name) &&
			(runs[0].end.IsZero() || runs[1].start.Before(runs[0].end)) {
			twice++
		}
	}
	t.Logf("%d jobs of %.0f s on new workers with a reservation of %d s, beside old ones with %d s: %d were begun again meanwhile",
		workers, long, now.retryAfter, old.retryAfter, twice)
	if twice != workers {
		t.Errorf("%d of %d jobs ran twice, wanted all: the comparison shows nothing", twice, workers)
	}
}

// signalOld signals the plain workers: USR2 pauses a Laravel worker, CONT lets it go on.
func (s *shop) signalOld(t *testing.T, signal string) {
	t.Helper()
	for _, pod := range suite.pods.labelled(shopLabel, s.name) {
		mustKubectl(t, "exec", pod.Name, "--", "sh", "-c", "kill -"+signal+" 1")
	}
}

// The wrong order: old workers are stopped without a pause. They get their own grace, also where somebody has just raised it.
func TestOldWorkersStoppedWithoutAPauseCutJobs(t *testing.T) {
	beside(t)
	operator(t)
	old, long := limits{job: 20, retryAfter: 25, grace: 3}, 16.0
	if full() {
		old, long = limits{job: 60, retryAfter: 90, grace: oldGrace}, 55
	}
	const workers = 2
	for name, wrong := range map[string]func(t *testing.T, deployment string){
		"scaled to 0": func(t *testing.T, deployment string) {
			mustKubectl(t, "scale", "deployment/"+deployment, "--replicas=0")
		},
		"grace raised, then deleted": func(t *testing.T, deployment string) {
			mustKubectl(t, "patch", "deployment", deployment, "-p", `{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":100}}}}`)
			mustKubectl(t, "delete", "deployment", deployment, "--wait=false")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, onDatabase)
			deployment := s.plain("old-worker", workers, old)
			s.dispatch(t, "Long", "job", seconds(long), fmt.Sprintf("--times=%d", workers))
			deployed(t, deployment)
			for i := range workers {
				s.started(t, fmt.Sprintf("job-%d", i), 1)
			}
			deployed(t, s.queueWorker("payments", workers, old))
			wrong(t, deployment.Name)
			cut := 0
			for i := range workers {
				runs := s.started(t, fmt.Sprintf("job-%d", i), 2)
				if pod := awaitGone(t, runs[0].pod); runs[0].end.IsZero() && len(pod.faults()) > 0 {
					cut++
				}
			}
			t.Logf("%s: %d of %d jobs of %.0f s were killed after the grace of %d s and run again", name, cut, workers, long, old.grace)
			if cut != workers {
				t.Errorf("%d of %d jobs were cut, wanted all: the comparison shows nothing", cut, workers)
			}
		})
	}
}
