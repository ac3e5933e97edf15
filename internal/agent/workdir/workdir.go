// SPDX-License-Identifier: Apache-2.0

// Package workdir names the files that the processes of one worker container
// share, and is the one place that writes or clears them.
//
//	agent            the program, copied by an init container
//	monitor          the same in a monitor's pod
//	php/             the PHP files of the entry
//	run/             what belongs to one run of the container:
//	    agent.sock   where `run` answers the hook and the probe
//	    gate         exists while no job may be taken; holds the drain's id
//	    w.PID.runs    the last runs of one worker's jobs, where metrics are served
//	    w.PID.state   one worker process's state, touched on each of its loops
package workdir

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Default is where the pod mounts the directory.
const Default = "/queueworker"

// longestSocket is what a unix socket's address can hold, less its final zero.
const longestSocket = 107

// Dir is the shared directory.
type Dir string

// Agent is the program itself.
func (d Dir) Agent() string { return filepath.Join(string(d), "agent") }

// Monitor is the program in a monitor's pod.
func (d Dir) Monitor() string { return filepath.Join(string(d), "monitor") }

// PHP is the directory of the entry's PHP files.
func (d Dir) PHP() string { return filepath.Join(string(d), "php") }

// Run is the directory of one run.
func (d Dir) Run() string { return filepath.Join(string(d), "run") }

// Socket is where `run` listens.
func (d Dir) Socket() string { return filepath.Join(d.Run(), "agent.sock") }

// Gate is the file that keeps workers from taking jobs.
func (d Dir) Gate() string { return filepath.Join(d.Run(), "gate") }

// Prepare leaves an empty run directory. The volume outlives the container: an
// old gate would keep a new worker idle for ever, and an old state would speak
// for a new process with the same number.
func (d Dir) Prepare() error {
	if len(d.Socket()) > longestSocket {
		return fmt.Errorf("directory %s is too long a path: its socket's may have %d bytes", d, longestSocket)
	}
	if err := os.RemoveAll(d.Run()); err != nil {
		return fmt.Errorf("clear the last run's files: %w", err)
	}
	if err := os.MkdirAll(d.Run(), 0o777); err != nil {
		return fmt.Errorf("make the run directory: %w", err)
	}
	// Past the umask: a wrapper may start PHP as another user.
	if err := os.Chmod(d.Run(), 0o777); err != nil {
		return fmt.Errorf("open the run directory to every user: %w", err)
	}
	return nil
}

// CloseGate keeps every worker from taking another job. The id shows that a
// worker has seen this gate and no other; it returns the one in force, which is
// empty where the volume is too full to hold any.
func (d Dir) CloseGate(id string) (string, error) {
	err := WriteFile(d.Gate(), []byte(id), 0o644)
	if err == nil {
		return id, nil
	}
	file, emptyErr := os.OpenFile(d.Gate(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if emptyErr != nil {
		return "", fmt.Errorf("close the gate: %w", err)
	}
	return "", file.Close()
}

// Keep makes sure that a file has this content, and leaves it alone where it
// has.
func Keep(path string, content []byte, mode os.FileMode) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
		return nil
	}
	return WriteFile(path, content, mode)
}

// InstallPHP writes the PHP files to a folder, which it makes.
func InstallPHP(folder string, files fs.FS) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make the directory of the PHP files: %w", err)
	}
	names, err := fs.Glob(files, "*.php")
	if err != nil {
		return err
	}
	for _, name := range names {
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if err := Keep(filepath.Join(folder, name), content, 0o444); err != nil {
			return fmt.Errorf("install the PHP files: %w", err)
		}
	}
	return nil
}

// WriteFile replaces a file so that a reader sees the old or the new content,
// and so does whoever looks after a crash.
func WriteFile(path string, content []byte, mode os.FileMode) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }() // gone already when all went well
	_, err = file.Write(content)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Chmod(file.Name(), mode)
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	return err
}
