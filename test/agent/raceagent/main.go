// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Raceagent is the agent held up between reading a worker's state and signalling
// it, as a throttled container is. With --held-up it is held up for the first
// time until a worker has a job, and makes a file when that begins. With --naive
// the worker does not look at the gate a second time: the protocol without the
// half that makes it safe.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"testing/fstest"
	"time"

	"github.com/queueworker/operator/internal/agent/entry"
	"github.com/queueworker/operator/internal/agent/supervise"
	"github.com/queueworker/operator/internal/agent/workdir"
	"github.com/queueworker/operator/internal/agent/workerstate"
	"github.com/queueworker/operator/internal/timeoutchain"
)

func main() {
	flags := flag.NewFlagSet("raceagent", flag.ExitOnError)
	dir := flags.String("dir", "", "the shared directory")
	log := flags.String("termination-log", "", "the termination message")
	stall := flags.Duration("stall", 0, "how long to be held up")
	heldUp := flags.String("held-up", "", "the file to make when held up until a worker has a job")
	naive := flags.Bool("naive", false, "leave out the second look at the gate")
	_ = flags.Parse(os.Args[2:]) // past "run"
	config := supervise.Config{
		Dir: workdir.Dir(*dir), Command: flags.Args(), Tracked: true, TerminationLog: *log, Log: os.Stderr,
		BeforeSignal: func() { time.Sleep(*stall) },
	}
	if *heldUp != "" {
		untilJob := sync.OnceFunc(func() { awaitJob(config.Dir, *heldUp) })
		config.BeforeSignal = func() { untilJob(); time.Sleep(*stall) }
	}
	if err := bringPHP(&config, *naive); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:forbidigo // a program of the tests
	}
	os.Exit(supervise.Run(config)) //nolint:forbidigo // a program of the tests
}

// awaitJob makes the file and returns when a worker says that it runs a job.
func awaitJob(dir workdir.Dir, file string) {
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	inJob := func(s workerstate.State) bool { return s.Phase == workerstate.Job }
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if states, _ := workerstate.ReadAll(dir.Run()); slices.ContainsFunc(states, inJob) {
			return
		}
	}
}

func bringPHP(config *supervise.Config, naive bool) error {
	var err error
	if config.Wire, err = timeoutchain.DecodeWire(os.Getenv(timeoutchain.WireEnv)); err != nil {
		return err
	}
	files := entry.Files()
	if naive {
		if files, err = withoutSecondLook(files); err != nil {
			return err
		}
	}
	if err := entry.Install(config.Dir, files); err != nil {
		return err
	}
	words, env, err := entry.Wrap(config.Dir, config.Wire.Runtime, config.Command, os.Getenv)
	config.Command, config.Env = words, append(os.Environ(), env...)
	return err
}

func withoutSecondLook(files fs.FS) (fs.FS, error) {
	const look = "if (!$interruptible && (!$written || $this->gate() !== null))"
	changed := fstest.MapFS{}
	names, err := fs.Glob(files, "*.php")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		if name == "worker.php" && !bytes.Contains(text, []byte(look)) {
			return nil, fmt.Errorf("the entry has no line %q any more", look)
		}
		changed[name] = &fstest.MapFile{Data: bytes.ReplaceAll(text, []byte(look), []byte("if (false)"))}
	}
	return changed, nil
}
