// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTerminal runs the program on a real terminal of 60 columns.
func TestTerminal(t *testing.T) {
	dir := folder(t)
	for _, tc := range []struct {
		name   string
		env    []string
		colour bool
	}{
		{"colour", nil, true},
		{"NO_COLOR", []string{"NO_COLOR=1"}, false},
		{"an empty NO_COLOR", []string{"NO_COLOR="}, true},
		{"a dumb terminal", []string{"TERM=dumb"}, false},
	} {
		for _, args := range [][]string{{"lint", "refused.yaml"}, {"timeline", "refused.yaml"}} {
			t.Run(tc.name+" "+args[0], func(t *testing.T) {
				out := onTerminal(t, dir, tc.env, args...)
				if got := strings.Contains(out, "\x1b["); got != tc.colour {
					t.Errorf("colour is %v, want %v:\n%q", got, tc.colour, out)
				}
				if !strings.Contains(out, "job-not-below-retry-after") {
					t.Errorf("the finding is not there:\n%s", out)
				}
				for _, line := range strings.Split(out, "\n") {
					if strings.Contains(line, "second worker runs the same job while") && len(line) > 75 {
						t.Errorf("a line does not fit into 60 columns: %q", line)
					}
				}
			})
		}
	}
}

func onTerminal(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	master, slave := openTerminal(t)
	defer master.Close()
	command := exec.Command(binary, args...)
	command.Dir, command.Stdout, command.Stderr = dir, slave, slave
	command.Env = append([]string{"TERM=xterm"}, env...)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	var out bytes.Buffer
	_, _ = out.ReadFrom(master) // ends with EIO when the program has ended
	if err := command.Wait(); command.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String()
}

func openTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 60})
	}
	if err == nil {
		slave, err = os.OpenFile(filepath.Join("/dev/pts", fmt.Sprint(number)), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}
