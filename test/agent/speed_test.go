// SPDX-License-Identifier: Apache-2.0

//go:build linux

package agent

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/agent/entry"
	"github.com/queueworker/operator/internal/agent/proc"
	"github.com/queueworker/operator/internal/agent/workdir"
	"github.com/queueworker/operator/internal/agent/workerstate"
	"github.com/queueworker/operator/internal/monitor"
)

// What the agent may cost.
const (
	mostStart  = 5 * time.Millisecond
	mostBoot   = 5 * time.Millisecond
	mostPerJob = 500 * time.Microsecond
	mostCopy   = 50 * time.Millisecond
	mostIdle   = 0.001 // of a core
	mostMemory = 6 << 20

	mostPerRun       = 20 * time.Microsecond  // with metrics: 1 % of a job at 500 a second
	mostPerLook      = 300 * time.Millisecond // of the monitor: 1 % of a core at 30 s
	mostMonitorBytes = 80 << 20
)

// TestSpeed prints what the agent adds to plain artisan, both measured in turns.
func TestSpeed(t *testing.T) {
	if os.Getenv("QW_AGENT_BENCH") == "" {
		t.Skip("a measurement: make bench-agent")
	}
	t.Run("start", measureStart)
	t.Run("boot", measureBoot)
	t.Run("job", measureJobs)
	t.Run("metrics", measureMetrics)
	t.Run("monitor", measureMonitor)
	t.Run("copy", measureCopy)
	t.Run("idle", measureIdle)
}

// compare prints medians and undisturbed values (the lowest tenth, since others
// may use the machine) of both, and checks the difference of the latter.
func compare(t *testing.T, what string, plain, ours []time.Duration, most time.Duration) {
	t.Helper()
	p, o := undisturbed(plain), undisturbed(ours)
	t.Logf("%s: plain %s, with the agent %s: %+d µs, ratio %.3f (limit %s more; medians %s and %s of %d pairs)",
		what, p, o, (o - p).Microseconds(), float64(o)/float64(p), most, median(plain), median(ours), len(plain))
	if o-p > most {
		t.Errorf("%s: %s more, at most %s are allowed", what, o-p, most)
	}
}

func median(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2]
}

func undisturbed(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/10]
}

// measureStart: from the exec of the agent to the exec of its worker.
func measureStart(t *testing.T) {
	stamp := must[string](t)(build("stamp", "./stamp"))
	a := newApp(t, onSQLite)
	dir := filepath.Join(a.dir, "q")
	_ = os.Mkdir(dir, 0o777)
	worker := []string{stamp, "php", "artisan", "queue:work"}
	wrapped := append([]string{suite.agent, "run", "--dir", dir, "--termination-log", "/nonexistent", "--"}, worker...)
	started := func(words []string) time.Duration {
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Env = append(a.env, a.chain(nil))
		begin := time.Now()
		out, _ := cmd.Output() // the agent takes this worker's end for a crash
		at, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
		if err != nil {
			t.Fatalf("%v printed %q", words, out)
		}
		return time.Unix(0, at).Sub(begin)
	}
	var plain, ours []time.Duration
	for range 100 {
		plain = append(plain, started(worker))
		ours = append(ours, started(wrapped))
	}
	compare(t, "exec to exec", plain, ours, mostStart)
}

// entryCommand runs queue:work through the entry, without the agent around it.
func entryCommand(t *testing.T, a *app, words ...string) (plain, ours *exec.Cmd) {
	t.Helper()
	dir := workdir.Dir(filepath.Join(a.dir, "q"))
	if err := dir.Prepare(); err != nil {
		t.Fatal(err)
	}
	if err := entry.Install(dir, entry.Files()); err != nil {
		t.Fatal(err)
	}
	command := append([]string{"php8.2", "artisan", "queue:work", "--stop-when-empty", "--sleep=0"}, words...)
	wrapped, env, err := entry.Wrap(dir, "Laravel", command, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	plain, ours = exec.Command(command[0], command[1:]...), exec.Command(wrapped[0], wrapped[1:]...)
	plain.Dir, plain.Env = a.dir, a.env
	ours.Dir, ours.Env = a.dir, append(append(slices.Clone(a.env), a.chain(nil)), env...)
	return plain, ours
}

func timed(t *testing.T, cmd *exec.Cmd) time.Duration {
	t.Helper()
	begin := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return time.Since(begin)
}

// worked is the processor time that a command uses, which is the same however
// many others want the processor.
func worked(t *testing.T, cmd *exec.Cmd) time.Duration {
	t.Helper()
	timed(t, cmd)
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

func measureBoot(t *testing.T) {
	a := newApp(t, onSQLite)
	var without, with []time.Duration
	for range 40 {
		plain, ours := entryCommand(t, a)
		without = append(without, worked(t, plain))
		with = append(with, worked(t, ours))
	}
	compare(t, "processor time of a boot to an empty queue and out again", without, with, mostBoot)
}

func measureJobs(t *testing.T) {
	const jobs = 500
	a := newApp(t, onRedis)
	a.env = slices.DeleteFunc(a.env, func(v string) bool { return strings.HasPrefix(v, "JOURNAL_FILE=") })
	var without, with []time.Duration
	for range 7 {
		plain, ours := entryCommand(t, a, "--quiet")
		a.dispatch(t, "Short", facts("s"), fmt.Sprintf("--times=%d", jobs))
		without = append(without, worked(t, plain)/jobs)
		a.dispatch(t, "Short", facts("s"), fmt.Sprintf("--times=%d", jobs))
		with = append(with, worked(t, ours)/jobs)
	}
	compare(t, "processor time per empty job, boot shared out", without, with, mostPerJob)
}

// measureMetrics: what a worker spends on telling its runs, and the agent on
// hearing of them and on being scraped once a second.
func measureMetrics(t *testing.T) {
	const jobs = 2000
	a := newApp(t, onRedis)
	a.env = slices.DeleteFunc(a.env, func(v string) bool { return strings.HasPrefix(v, "JOURNAL_FILE=") })
	var without, with []time.Duration
	for range 15 {
		for _, metrics := range []bool{false, true} {
			_, ours := entryCommand(t, a, "--quiet")
			a.dispatch(t, "Short", facts("s"), fmt.Sprintf("--times=%d", jobs))
			if !metrics {
				without = append(without, worked(t, ours)/jobs)
				continue
			}
			ours.Env = append(ours.Env, "QUEUEWORKER_METRICS=:1")
			with = append(with, worked(t, ours)/jobs)
		}
	}
	compare(t, "processor time per empty job, without and with metrics", without, with, mostPerRun)

	var hearing [2]time.Duration
	for i, metrics := range []bool{false, true} {
		var w *worker
		a.dispatch(t, "Short", facts("s"), "--times=5000")
		if metrics {
			s := a.startScraped(t, plan{work: []string{"--sleep=1", "--quiet"}})
			stop := make(chan struct{})
			defer close(stop)
			go func() {
				for {
					select {
					case <-stop:
						return
					case <-time.After(time.Second):
						s.scrape(t)
					}
				}
			}()
			w = s.worker
		} else {
			w = a.start(t, plan{work: []string{"--sleep=1", "--quiet"}})
		}
		eventually(t, patience, "an empty queue", func() bool { return strings.TrimSpace(a.redis(t, "LLEN", a.prefix+"queues:default")) == "0" })
		hearing[i] = onCPU(t, w.pid) / 5000
		if memory := resident(t, w.pid); memory > mostMemory {
			t.Errorf("the agent holds %d bytes, at most %d are allowed", memory, mostMemory)
		}
		w.drain(t)
		w.stop(t)
	}
	t.Logf("the agent's processor time per job: %s without and %s with metrics", hearing[0], hearing[1])
	if more := hearing[1] - hearing[0]; undisturbed(with)-undisturbed(without)+more > mostPerRun {
		t.Errorf("worker and agent spend %s more per job, at most %s are allowed", undisturbed(with)-undisturbed(without)+more, mostPerRun)
	}
}

// measureMonitor: a pod's processes, over a minute of looks.
func measureMonitor(t *testing.T) {
	const looks = 60
	a := newApp(t, onRedis)
	program := must[string](t)(build("monitor", "../../cmd/monitor"))
	config := monitor.Config{Namespace: "shop", Name: "payments", Runtime: "Laravel", Connection: "redis", IntervalSeconds: 1, StuckAfterSeconds: 270, MetricsAddress: "127.0.0.1:" + must[string](t)(takePort())}
	cmd := exec.Command(program, "run", "--dir", openDir(t), "--service-account=", "--", "php8.2", "artisan", "queue:work", "redis")
	cmd.Dir, cmd.Env = a.dir, append(a.env, monitor.ConfigEnv+"="+config.Encode())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() }()
	var php proc.Process
	eventually(t, patience, "a script", func() bool {
		all := proc.Descendants(cmd.Process.Pid)
		if len(all) > 0 {
			php = all[0]
		}
		return len(all) > 0
	})
	time.Sleep(5 * time.Second) // its boot is over
	before := onCPU(t, cmd.Process.Pid) + onCPU(t, php.PID)
	time.Sleep(looks * time.Second)
	perLook := (onCPU(t, cmd.Process.Pid) + onCPU(t, php.PID) - before) / looks
	memory := resident(t, cmd.Process.Pid) + resident(t, php.PID)
	t.Logf("the monitor: %s a look = %.4f %% of a core at 30 s (limit 1); resident %.1f MiB of program and PHP (limit %d)",
		perLook, 100*perLook.Seconds()/30, float64(memory)/(1<<20), mostMonitorBytes>>20)
	if perLook > mostPerLook || memory > mostMonitorBytes {
		t.Errorf("a look takes %s (at most %s), memory %d (at most %d)", perLook, mostPerLook, memory, mostMonitorBytes)
	}
}

func measureCopy(t *testing.T) {
	var took []time.Duration
	for range 20 {
		took = append(took, timed(t, exec.Command(suite.agent, "copy", "--dir", openDir(t))))
	}
	t.Logf("copy: %s (limit %s; median %s)", undisturbed(took), mostCopy, median(took))
	if undisturbed(took) > mostCopy {
		t.Errorf("copy takes %s, at most %s are allowed", undisturbed(took), mostCopy)
	}
}

func measureIdle(t *testing.T) {
	const span = 60 * time.Second
	a := newApp(t, onRedis)
	w := a.start(t, plan{work: []string{"--sleep=3"}})
	state := w.awaitPhase(t, workerstate.Loop)
	before, php := onCPU(t, w.pid), onCPU(t, state.PID)
	time.Sleep(span)
	used, phpUsed := onCPU(t, w.pid)-before, onCPU(t, state.PID)-php
	memory := resident(t, w.pid)
	t.Logf("idle over %s: agent %s = %.4f %% of a core, its idle worker %s: ratio %.3f (limit %.1f %%); resident %.1f MiB (limit %d)",
		span, used, 100*used.Seconds()/span.Seconds(), phpUsed, used.Seconds()/phpUsed.Seconds(), 100*mostIdle, float64(memory)/(1<<20), mostMemory>>20)
	if used.Seconds() > mostIdle*span.Seconds() {
		t.Errorf("the idle agent used %s of %s", used, span)
	}
	if memory > mostMemory {
		t.Errorf("the agent holds %d bytes, at most %d are allowed", memory, mostMemory)
	}
	w.drain(t)
	if after := resident(t, w.pid); after > mostMemory {
		t.Errorf("after the drain the agent holds %d bytes", after)
	}
	w.stop(t)
}

// onCPU is how long all threads of a process have run.
func onCPU(t *testing.T, pid int) time.Duration {
	t.Helper()
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	var total int64
	for _, file := range files {
		ran, err := strconv.ParseInt(strings.Fields(read(file) + " -")[0], 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		total += ran
	}
	return time.Duration(total)
}

func resident(t *testing.T, pid int) int {
	t.Helper()
	for _, line := range strings.Split(read(fmt.Sprintf("/proc/%d/status", pid)), "\n") {
		if number, found := strings.CutPrefix(line, "VmRSS:"); found {
			kilobytes, _ := strconv.Atoi(strings.Fields(number)[0])
			return kilobytes << 10
		}
	}
	t.Fatalf("process %d has no VmRSS", pid)
	return 0
}
