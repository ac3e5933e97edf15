// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestParseToleratesAnyName(t *testing.T) {
	tail := " S 7 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0"
	for _, name := range []string{"php", "a b", "x) S 1 (y", ")))", "\n"} {
		p, err := parse(42, []byte("42 ("+name+")"+tail))
		if err != nil || p.PID != 42 || p.Parent != 7 || p.Start != 4711 || p.Zombie {
			t.Errorf("name %q: %+v, %v", name, p, err)
		}
	}
	for _, text := range []string{"", "42", "42 (php", "42 (php) S 7", "42 (php) S x 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711"} {
		if p, err := parse(42, []byte(text)); err == nil {
			t.Errorf("%q was read as %+v", text, p)
		}
	}
}

func TestAliveTellsALaterProcessApart(t *testing.T) {
	self, ok := Read(os.Getpid())
	if !ok || !Alive(self.PID, self.Start) || !Alive(self.PID, 0) {
		t.Fatal("this process is not alive")
	}
	if Alive(self.PID, self.Start+1) {
		t.Error("another process with this number is alive")
	}
}

func TestBelow(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sleep 60; true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	self := os.Getpid()
	var below []Process
	for end := time.Now().Add(30 * time.Second); len(below) < 2 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		below = Descendants(self)
	}
	if len(below) != 2 {
		t.Fatalf("descendants %+v", below)
	}
	for _, process := range below {
		defer func() { _ = Signal(process, syscall.SIGKILL) }()
		if !Below(process.PID, self) {
			t.Errorf("%+v is not below", process)
		}
	}
	for _, pid := range []int{0, 1, self, os.Getppid(), 1 << 22} {
		if Below(pid, self) {
			t.Errorf("process %d is below", pid)
		}
	}
}

// A tree of shells and others, seen as those who ask it to stop.
func TestStopTargets(t *testing.T) {
	for name, c := range map[string]struct {
		command []string
		want    string
	}{
		"no shell":          {[]string{"sleep", "60"}, "sleep"},
		"shell":             {[]string{"sh", "-c", "sleep 60; true"}, "dash sleep"},
		"shell in a shell":  {[]string{"sh", "-c", "bash -c 'sleep 60; true'; true"}, "bash dash sleep"},
		"two children":      {[]string{"sh", "-c", "sleep 60 & timeout 60 sleep 60 & wait"}, "dash sleep timeout"},
		"not below a child": {[]string{"sh", "-c", "env setsid -f sleep 0; timeout 60 sleep 60; true"}, "dash timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(c.command[0], c.command[1:]...)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); _ = cmd.Wait() }()
			var got string
			for end := time.Now().Add(30 * time.Second); got != c.want && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				got = programs(StopTargets(cmd.Process.Pid))
			}
			if got != c.want {
				t.Errorf("targets %q, wanted %q", got, c.want)
			}
		})
	}
	if targets := StopTargets(1 << 22); targets != nil {
		t.Errorf("of no process: %v", targets)
	}
}

func programs(targets []Process) string {
	var names []string
	for _, target := range targets {
		program, _ := os.Readlink("/proc/" + strconv.Itoa(target.PID) + "/exe")
		names = append(names, filepath.Base(program))
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}
