// SPDX-License-Identifier: Apache-2.0

// Package cgroup reads how often the kernel killed for memory in this
// container.
package cgroup

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// OOMKills is the number of processes killed so far; 0 also where it cannot be
// told. Version 1 keeps it in memory.oom_control, version 2 in memory.events.
func OOMKills() int {
	for _, path := range candidates() {
		if n, ok := counter(path); ok {
			return n
		}
	}
	return 0
}

// candidates are the places of this process's own group. Inside a container the
// mount shows the group as the root, while the path may be the node's.
func candidates() []string {
	const root = "/sys/fs/cgroup"
	var first, second []string
	lines, _ := os.ReadFile("/proc/self/cgroup")
	for _, line := range strings.Split(strings.TrimSpace(string(lines)), "\n") {
		fields := strings.SplitN(line, ":", 3)
		if len(fields) != 3 {
			continue
		}
		switch {
		case fields[1] == "memory":
			first = append(first, filepath.Join(root, "memory", fields[2], "memory.oom_control"))
			second = append(second, filepath.Join(root, "memory/memory.oom_control"))
		case fields[0] == "0" && fields[1] == "":
			first = append(first, filepath.Join(root, fields[2], "memory.events"))
			second = append(second, filepath.Join(root, "memory.events"))
		}
	}
	return append(first, second...)
}

func counter(path string) (int, bool) {
	file, err := os.Open(path)
	if err != nil {
		return 0, false
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if number, found := strings.CutPrefix(lines.Text(), "oom_kill "); found {
			n, err := strconv.Atoi(strings.TrimSpace(number))
			return n, err == nil
		}
	}
	return 0, false
}
