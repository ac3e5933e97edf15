// SPDX-License-Identifier: Apache-2.0

//go:build linux

package supervise

import (
	"os"
	"slices"
	"syscall"
	"unsafe"

	"github.com/queueworker/operator/internal/agent/proc"
)

// realtimeStop is SIGRTMIN+3, by which images of an init system stop.
const realtimeStop = syscall.Signal(37)

// passedOn are pause and resume of queue:work.
var passedOn = []os.Signal{syscall.SIGUSR2, syscall.SIGCONT}

func isPassedOn(sig syscall.Signal) bool { return slices.Contains(passedOn, os.Signal(sig)) }

// stopSignals are those that an image can name as its stop signal. A terminal
// sends SIGWINCH too, when its window changes size.
func stopSignals() []os.Signal {
	signals := []os.Signal{
		syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP,
		syscall.SIGUSR1, syscall.SIGPWR, realtimeStop,
	}
	if !onTerminal() {
		signals = append(signals, syscall.SIGWINCH)
	}
	return signals
}

func onTerminal() bool {
	var settings syscall.Termios
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, os.Stdin.Fd(), syscall.TCGETS,
		uintptr(unsafe.Pointer(&settings))) //nolint:gosec // the kernel fills in a struct of its own size
	return errno == 0
}

func (s *supervisor) passOn(sig syscall.Signal) {
	alive, _ := s.workers()
	for _, state := range alive {
		s.send(proc.Process{PID: state.PID, Start: state.Start}, sig)
	}
	if !s.Tracked || s.Master {
		for _, target := range proc.StopTargets(s.command.pid) {
			s.send(target, sig)
		}
	}
}

func (s *supervisor) send(process proc.Process, sig syscall.Signal) {
	if err := proc.Signal(process, sig); err != nil {
		s.complain(err)
	}
}
