// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inspect

import (
	"os/exec"
	"syscall"

	"github.com/queueworker/operator/internal/agent/cgroup"
)

// ownGroup lets everything that the process starts be killed with it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

func oomKills() int { return cgroup.OOMKills() }
