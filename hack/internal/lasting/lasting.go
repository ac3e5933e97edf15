// SPDX-License-Identifier: Apache-2.0

// Package lasting starts child processes that end with this process.
package lasting

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

type request struct {
	cmd    *exec.Cmd
	result chan error
}

// thread is one goroutine bound to one thread that never ends. Pdeathsig fires when the *thread* that started a child ends,
// and the runtime may end any other thread.
var thread = sync.OnceValue(func() chan<- request {
	requests := make(chan request)
	go func() {
		runtime.LockOSThread()
		for r := range requests {
			r.result <- r.cmd.Start()
		}
	}()
	return requests
})

// Start starts cmd so that the kernel kills it when this process dies.
func Start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	r := request{cmd: cmd, result: make(chan error)}
	thread() <- r
	return <-r.result
}
