// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/queueworker/operator/hack/internal/leftovers"
)

// program is the command under test, built once.
var program string

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "controlplane-test-")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(folder, "controlplane")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		panic(fmt.Sprintf("%v\n%s", err, out))
	}
	m.Run()
	_ = os.RemoveAll(folder)
}

// foreground starts the command and waits until it is up.
func foreground(t *testing.T, name string) (cmd *exec.Cmd, dir string, stderr *bytes.Buffer) {
	t.Helper()
	dir, err := kind.Dir(name)
	if err != nil {
		t.Fatal(err)
	}
	stderr = &bytes.Buffer{}
	cmd = exec.Command(program, "up", "--name", name)
	cmd.Stderr = stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != filepath.Join(dir, "kubeconfig") {
		t.Fatalf("wanted the path of the kubeconfig, got %q (%v): %s", line, err, stderr)
	}
	return cmd, dir, stderr
}

func uniqueName(t *testing.T) string {
	return fmt.Sprintf("%s-%d", strings.ReplaceAll(strings.ToLower(t.Name()), "/", "-"), os.Getpid())
}

func TestNothingIsLeft(t *testing.T) {
	for signal, wantExit := range map[syscall.Signal]bool{
		syscall.SIGINT:  true,
		syscall.SIGTERM: true,
		syscall.SIGKILL: false, // nobody can end well then; the kernel and the janitor clean up
	} {
		t.Run(signal.String(), func(t *testing.T) {
			cmd, dir, stderr := foreground(t, uniqueName(t))
			if n := len(leftovers.Processes(dir)); n != 6 {
				t.Errorf("wanted five components and the janitor, got %v", leftovers.Processes(dir))
			}
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); (err == nil) != wantExit {
				t.Errorf("ended with %v: %s", err, stderr)
			}
			leftovers.None(t, dir)
		})
	}
}

func TestForegroundEndsWithItsParent(t *testing.T) {
	name := uniqueName(t)
	dir, err := kind.Dir(name)
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command("/bin/sh", "-c", program+" up --nodes 0 --name "+name+"; true")
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Errorf("got %q, %v", line, err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	leftovers.None(t, dir)
}

func TestComponentDies(t *testing.T) {
	cmd, dir, stderr := foreground(t, uniqueName(t))
	for pid, name := range leftovers.Processes(dir) {
		if name == "kube-controller-manager" {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	err := cmd.Wait()
	if err == nil || !strings.Contains(stderr.String(), "kube-controller-manager ended by itself") {
		t.Errorf("wanted it to end and name the component, got %v: %s", err, stderr)
	}
	leftovers.None(t, dir)
}

func TestBackground(t *testing.T) {
	name := uniqueName(t)
	dir, err := kind.Dir(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = exec.Command(program, "down", "--name", name).Run() })
	expect(t, false, "no control plane is running", "status", "--name", name)
	expect(t, true, filepath.Join(dir, "kubeconfig"), "up", "--background", "--nodes", "0", "--name", name)
	expect(t, true, "export KUBECONFIG="+filepath.Join(dir, "kubeconfig"), "status", "--name", name)
	expect(t, false, "is running already", "up", "--background", "--name", name)
	expect(t, true, "nothing of it is left", "down", "--name", name)
	leftovers.None(t, dir)
	expect(t, true, "No control plane is running", "down", "--name", name)
}

func TestBackgroundTellsWhyNot(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	port := listener.Addr().(*net.TCPAddr).Port
	name := uniqueName(t)
	expect(t, false, fmt.Sprintf("port %d is in use", port), "up", "--background", "--name", name, "--port", fmt.Sprint(port))
	dir, err := kind.Dir(name)
	if err != nil {
		t.Fatal(err)
	}
	leftovers.None(t, dir)
}

func TestStateOfTheDeadIsCleared(t *testing.T) {
	name := uniqueName(t)
	dir, err := kind.Dir(name)
	if err != nil {
		t.Fatal(err)
	}
	// As after a power cut: the folder with its owner, and nobody who holds it.
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "owner.pid"), []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, false, "no control plane is running", "status", "--name", name)
	expect(t, true, "kubeconfig", "up", "--background", "--nodes", "0", "--name", name)
	expect(t, true, "nothing of it is left", "down", "--name", name)
}

func TestBadInput(t *testing.T) {
	expect(t, false, `unknown command "start"`, "start")
	expect(t, false, `takes flags only, not "extra"`, "up", "extra")
	expect(t, false, `--name "../x"`, "down", "--name", "../x")
	expect(t, true, "usage: controlplane", "help")
}

// expect runs the command and looks for a text in all that it prints.
func expect(t *testing.T, success bool, text string, args ...string) {
	t.Helper()
	out, err := exec.Command(program, args...).CombinedOutput()
	if (err == nil) != success || !strings.Contains(string(out), text) {
		t.Errorf("controlplane %s: wanted success %v and %q, got %v and:\n%s", strings.Join(args, " "), success, text, err, out)
	}
}
