// SPDX-License-Identifier: Apache-2.0

package node

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// How a program that starts a node is started again for the inside of it.
const (
	roleEnv     = "QUEUEWORKER_NODE_ROLE"
	settingsEnv = "QUEUEWORKER_NODE_SETTINGS"

	roleInit      = "init"      // the first process: sets the place up, starts the supervisor, reaps
	roleSupervise = "supervise" // starts and watches the node's parts
)

// Inside is what a program that starts nodes calls first. It tells whether this process is one of a node's own, which has done
// its work when Inside returns: the program then ends at once. TestMain is the place in a test.
func Inside() bool {
	role := os.Getenv(roleEnv)
	if role == "" {
		return false
	}
	var s settings
	err := json.Unmarshal([]byte(os.Getenv(settingsEnv)), &s)
	if err == nil && role == roleInit {
		err = s.init()
	} else if err == nil {
		err = s.supervise()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		_ = report(err.Error())
	}
	return true
}

// report tells the outside something. Not by an os.File, which would close the descriptor when it is collected.
func report(text string) error {
	_, err := unix.Write(reportFD, []byte(text+"\n"))
	return err
}

// init is the life of the first process.
func (s settings) init() error {
	if n, err := unix.Read(controlFD, make([]byte, 1)); n != 1 {
		return fmt.Errorf("whoever started this node has ended: %w", err)
	}
	if err := s.isolate(); err != nil {
		return err
	}
	if err := makeNetwork(); err != nil {
		return err
	}
	env := append(os.Environ(), roleEnv+"="+roleSupervise, "TMPDIR="+inside("tmp"))
	files := []uintptr{0, 1, 2, controlFD, reportFD, listenerFD}
	supervisor, err := syscall.ForkExec("/proc/self/exe", os.Args, &syscall.ProcAttr{Env: unique(env), Files: files})
	if err != nil {
		return err
	}
	for _, fd := range files[controlFD:] {
		_ = unix.Close(int(fd)) // the supervisor's from here on
	}
	return reapUntil(supervisor)
}

// unique drops all but the last of variables with one name.
func unique(env []string) []string {
	seen := map[string]int{}
	var result []string
	for _, variable := range env {
		name, _, _ := strings.Cut(variable, "=")
		if at, ok := seen[name]; ok {
			result[at] = variable
			continue
		}
		seen[name] = len(result)
		result = append(result, variable)
	}
	return result
}

// reapUntil buries orphans, among them the shims of containers, until the supervisor has ended.
func reapUntil(supervisor int) error {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case pid == supervisor:
			return nil // it has said why
		case err != nil && err != unix.EINTR:
			return err
		}
	}
}
