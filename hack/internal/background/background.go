// SPDX-License-Identifier: Apache-2.0

// Package background lets a command leave something running that it started, or end with whoever started the command.
package background

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// readyFD is the file descriptor on which the process in the background tells that it is ready, or why not.
const readyFD = 3

const ready = "ready"

// Start starts this program again with args, out of reach of the terminal, and returns when it is ready: with nil, or with what
// it gave to [Tell]. what is the name of the thing that is started.
func Start(ctx context.Context, what string, args []string) error {
	reader, writer, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = reader.Close() }()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, args...)
	cmd.ExtraFiles = []*os.File{writer} // becomes readyFD
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = writer.Close()
	if err != nil {
		return err
	}
	interrupted := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer interrupted()
	message, err := io.ReadAll(reader)
	switch {
	case err != nil:
		return err
	case string(message) == ready:
		return nil
	default:
		_ = cmd.Wait()
		return errors.New(strings.TrimSpace("the " + what + " did not start: " + string(message)))
	}
}

// Telling returns the way in which the process in the background tells once that it is ready (nil) or why not.
func Telling() func(error) {
	syscall.CloseOnExec(readyFD) // else what it starts keeps it open, and the waiting process waits for ever
	report := os.NewFile(readyFD, "ready")
	return func(err error) {
		text := ready
		if err != nil {
			text = err.Error()
		}
		_, _ = fmt.Fprint(report, text)
		_ = report.Close()
	}
}

// EndWithParent returns a context that also ends when whoever started this process dies: a script or a test that was killed
// leaves nothing behind.
func EndWithParent(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	parent := os.Getppid()
	go func() {
		defer cancel()
		for os.Getppid() == parent && ctx.Err() == nil {
			time.Sleep(200 * time.Millisecond)
		}
	}()
	return ctx
}
