// SPDX-License-Identifier: Apache-2.0

// Package janitor removes what a process leaves on the machine, however that process ends.
package janitor

import (
	"io"
	"os/exec"
	"syscall"
)

// Janitor is a shell that waits for its input to end and then runs a script. Its input ends when we close it, and also when
// we die, however that happens.
type Janitor struct {
	cmd   *exec.Cmd
	input io.Closer
}

const waitForTheEnd = `trap '' HUP INT TERM
cat >/dev/null
`

// Start starts a janitor. The script sees args as $1, $2 and so on.
func Start(script string, args ...string) (*Janitor, error) {
	cmd := exec.Command("/bin/sh", append([]string{"-c", waitForTheEnd + script, "janitor"}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // out of reach of signals to our group or terminal
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &Janitor{cmd: cmd, input: input}, nil
}

// Finish lets the script run and returns when it has ended.
func (j *Janitor) Finish() error {
	_ = j.input.Close()
	return j.cmd.Wait()
}
