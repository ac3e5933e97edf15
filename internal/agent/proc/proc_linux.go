// SPDX-License-Identifier: Apache-2.0

// Package proc reads the process table of Linux and sends signals by it.
package proc

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// Process is one line of the process table.
type Process struct {
	PID, Parent int
	Start       uint64 // clock ticks since boot: tells it from a later process with its number
	Zombie      bool
}

// Read returns one process; false when there is none with this number.
func Read(pid int) (Process, bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Process{}, false
	}
	process, err := parse(pid, stat)
	return process, err == nil
}

// Alive says whether the process with this number still runs and is the one
// that started then; start 0 accepts any.
func Alive(pid int, start uint64) bool {
	process, ok := Read(pid)
	return ok && !process.Zombie && (start == 0 || process.Start == start)
}

// Below says whether a process was started by root or by one that was.
func Below(pid, root int) bool {
	for pid > 1 {
		process, ok := Read(pid)
		if !ok {
			return false
		}
		if pid = process.Parent; pid == root {
			return true
		}
	}
	return false
}

// Descendants returns all processes below root, parents before children,
// zombies left out.
func Descendants(root int) []Process {
	children := map[int][]Process{}
	for _, process := range all() {
		children[process.Parent] = append(children[process.Parent], process)
	}
	var found []Process
	for level := children[root]; len(level) > 0; {
		var next []Process
		for _, process := range level {
			if !process.Zombie {
				found = append(found, process)
			}
			next = append(next, children[process.PID]...)
		}
		level = next
	}
	return found
}

// StopTargets returns whom a stop signal must reach when a command is asked to
// end: the command itself, and where that is a shell, which would die and leave
// its children behind, also the first processes below it that are no shells.
func StopTargets(command int) []Process {
	root, ok := Read(command)
	if !ok {
		return nil
	}
	targets := []Process{root}
	shells := []int{command}
	if !isShell(command) {
		return targets
	}
	processes := all()
	for len(shells) > 0 {
		shell := shells[0]
		shells = shells[1:]
		for _, process := range processes {
			if process.Parent != shell || process.Zombie {
				continue
			}
			targets = append(targets, process)
			if isShell(process.PID) {
				shells = append(shells, process.PID)
			}
		}
	}
	return targets
}

// Signal sends a signal to a process, not to a later one with its number.
func Signal(process Process, signal syscall.Signal) error {
	if !Alive(process.PID, process.Start) {
		return nil
	}
	if err := syscall.Kill(process.PID, signal); err != nil && err != syscall.ESRCH {
		return fmt.Errorf("send %s to process %d: %w", signal, process.PID, err)
	}
	return nil
}

// Clock reads the monotonic clock that all processes of a machine share, in
// nanoseconds. A step of the wall clock does not move it.
func Clock() int64 {
	const monotonic = 1 // CLOCK_MONOTONIC
	var now syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, monotonic,
		uintptr(unsafe.Pointer(&now)), 0) //nolint:gosec // the kernel fills in a struct of its own size
	if errno != 0 {
		return time.Now().UnixNano() // cannot fail on Linux
	}
	return now.Nano()
}

func all() []Process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var processes []Process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if process, ok := Read(pid); ok {
			processes = append(processes, process)
		}
	}
	return processes
}

// parse reads proc(5)'s stat. The name is in parentheses and may hold any byte.
func parse(pid int, stat []byte) (Process, error) {
	const state, parent, start = 0, 1, 19 // counted from behind the name
	end := bytes.LastIndexByte(stat, ')')
	fields := strings.Fields(string(stat[end+1:]))
	if end < 0 || len(fields) <= start {
		return Process{}, fmt.Errorf("stat of process %d has %d fields", pid, len(fields))
	}
	ppid, err := strconv.Atoi(fields[parent])
	if err != nil {
		return Process{}, err
	}
	ticks, err := strconv.ParseUint(fields[start], 10, 64)
	if err != nil {
		return Process{}, err
	}
	dead := fields[state] == "Z" || fields[state] == "X"
	return Process{PID: pid, Parent: ppid, Start: ticks, Zombie: dead}, nil
}

func isShell(pid int) bool {
	dir := "/proc/" + strconv.Itoa(pid)
	program, err := os.Readlink(dir + "/exe")
	if err != nil {
		return false
	}
	name := filepath.Base(program)
	if name == "busybox" { // one program under many names
		line, _ := os.ReadFile(dir + "/cmdline")
		name = filepath.Base(strings.SplitN(string(line), "\x00", 2)[0])
	}
	switch name {
	case "sh", "dash", "bash", "ash", "ksh", "mksh", "zsh":
		return true
	}
	return false
}
