// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const cgroupMount = "/sys/fs/cgroup"

// unified tells whether this machine has cgroup v2 alone.
func unified() bool {
	_, err := os.Stat(filepath.Join(cgroupMount, "cgroup.controllers"))
	return err == nil
}

// hierarchies are the folders in which a node needs a cgroup: one on cgroup v2, one per controller on v1.
func hierarchies() ([]string, error) {
	if unified() {
		return []string{cgroupMount}, nil
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, err
	}
	var found []string
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); fields[2] == "cgroup" && strings.HasPrefix(fields[1], cgroupMount+"/") {
			found = append(found, fields[1])
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no cgroups below %s: mount them", cgroupMount)
	}
	return found, nil
}

// own is the cgroup, below the node's, of the processes that are in no pod.
const own = "system"

// makeCgroups makes the node's cgroups, in which the kubelet makes those of the pods.
func makeCgroups(name string) error {
	folders, err := hierarchies()
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if err := os.MkdirAll(filepath.Join(folder, name, own), 0o755); err != nil {
			return err
		}
		for _, file := range []string{"cpuset.cpus", "cpuset.mems"} { // empty at first on v1, which keeps processes out
			if err := copyDown(folder, name, file); err != nil {
				return err
			}
		}
	}
	if !unified() {
		return nil
	}
	controllers, err := os.ReadFile(filepath.Join(cgroupMount, "cgroup.controllers"))
	if err != nil {
		return err
	}
	enable := "+" + strings.Join(strings.Fields(string(controllers)), " +")
	return os.WriteFile(filepath.Join(cgroupMount, name, "cgroup.subtree_control"), []byte(enable), 0o644)
}

func copyDown(folder, name, file string) error {
	value, err := os.ReadFile(filepath.Join(folder, file))
	if errors.Is(err, os.ErrNotExist) || unified() {
		return nil
	}
	if err != nil {
		return err
	}
	for _, at := range []string{name, filepath.Join(name, own)} {
		if err := os.WriteFile(filepath.Join(folder, at, file), value, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// joinCgroups puts a process, and with it every one that it starts, where [Clean] finds it.
func joinCgroups(name string, pid int) error {
	folders, err := hierarchies()
	if err != nil {
		return err
	}
	for _, folder := range folders {
		file := filepath.Join(folder, name, own, "cgroup.procs")
		if err := os.WriteFile(file, []byte(strconv.Itoa(pid)), 0o644); err != nil {
			return err
		}
	}
	return nil
}
