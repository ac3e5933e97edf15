// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/queueworker/operator/hack/internal/leftovers"
	"github.com/queueworker/operator/hack/node/node"
)

// program is the command under test, built once.
var program string

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "node-test-")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(folder, "node")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		panic(fmt.Sprintf("%v\n%s", err, out))
	}
	_ = os.Chmod(folder, 0o755) // one test runs it as somebody else
	m.Run()
	_ = os.RemoveAll(folder)
}

// foreground starts the command and waits until the node is Ready.
func foreground(t *testing.T) (cmd *exec.Cmd, name, dir string) {
	t.Helper()
	name = uniqueName(t)
	dir, err := kind.Dir(name)
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(program, "up", "--name", name)
	cmd.Stderr = t.Output()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != node.Kubeconfig(dir) {
		t.Fatalf("wanted the path of the kubeconfig, got %q (%v)", line, err)
	}
	return cmd, name, dir
}

func uniqueName(t *testing.T) string {
	return fmt.Sprintf("%s-%d", strings.ReplaceAll(strings.ToLower(t.Name()), "/", "-"), os.Getpid())
}

// members are the processes of a node, by pid.
func members(dir string) map[string]string {
	found := map[string]string{}
	files, _ := filepath.Glob("/proc/[0-9]*/cgroup")
	for _, file := range files {
		if content, err := os.ReadFile(file); err == nil && bytes.Contains(content, []byte(node.CgroupName(dir))) {
			pid := filepath.Base(filepath.Dir(file))
			name, _ := os.ReadFile(filepath.Join("/proc", pid, "comm"))
			found[pid] = strings.TrimSpace(string(name))
		}
	}
	return found
}

// nothingLeft fails the test unless everything of the node disappears: processes, folder, cgroups, and what it would show of
// itself in this machine's mounts, networks and firewall if it were not kept apart.
func nothingLeft(t *testing.T, dir string) {
	t.Helper()
	leftovers.None(t, dir)
	if left := members(dir); len(left) > 0 {
		t.Errorf("processes in its cgroups: %v", left)
	}
	for _, pattern := range []string{"/sys/fs/cgroup/", "/sys/fs/cgroup/*/"} {
		if left, _ := filepath.Glob(pattern + node.CgroupName(dir)); len(left) > 0 {
			t.Errorf("cgroups: %v", left)
		}
	}
	outside(t, dir)
}

// outside asserts that a node, running or not, shows nothing of itself to the machine.
func outside(t *testing.T, dir string) {
	t.Helper()
	for command, signs := range map[string][]string{
		"cat /proc/self/mounts":              {dir, "/run/node", "/run/netns"},
		"ip -o link":                         {"node0", "pods", "veth"},
		"ip netns":                           {"cni-"},
		"iptables-save":                      {"KUBE", "CNI"},
		"ls /var/lib /run /opt /usr/libexec": {"cni", "kubelet", "containerd", "kubernetes"},
	} {
		words := strings.Fields(command)
		out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		for _, sign := range signs {
			if strings.Contains(string(out), sign) {
				t.Errorf("%s shows %q:\n%s", command, sign, out)
			}
		}
	}
}

func TestNothingIsLeft(t *testing.T) {
	for signal, wantExit := range map[syscall.Signal]bool{
		syscall.SIGINT:  true,
		syscall.SIGKILL: false, // nobody can end well then; the kernel and the janitor clean up
	} {
		t.Run(signal.String(), func(t *testing.T) {
			cmd, _, dir := foreground(t)
			parts := fmt.Sprint(members(dir))
			for _, want := range []string{"etcd", "kube-apiserver", "kubelet", "kube-proxy", "containerd"} {
				if !strings.Contains(parts, want) {
					t.Errorf("no %s in the node's cgroups: %s", want, parts)
				}
			}
			startPod(t, dir)
			outside(t, dir)
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); (err == nil) != wantExit {
				t.Errorf("ended with %v", err)
			}
			nothingLeft(t, dir)
		})
	}
}

// startPod leaves a container with mounts, an address and cgroups running.
func startPod(t *testing.T, dir string) {
	t.Helper()
	kubectl(t, dir, "run", "something", "--image=queueworker.invalid/pause:dev", "--image-pull-policy=Never")
	kubectl(t, dir, "wait", "pod/something", "--for=condition=Ready", "--timeout=60s")
}

func kubectl(t *testing.T, dir string, words ...string) {
	t.Helper()
	path, err := exec.Command(program, "build").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, folder, _ := strings.Cut(strings.TrimSpace(string(path)), "All programs are in ")
	cmd := exec.Command(filepath.Join(folder, "kubectl"), append([]string{"--kubeconfig", node.Kubeconfig(dir)}, words...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("kubectl %v: %v\n%s", words, err, out)
	}
}

// The tool and its janitor may die together, as when the machine runs out of memory. Then `down` does the janitor's work.
func TestDownCleansUpAfterACrash(t *testing.T) {
	cmd, name, dir := foreground(t)
	startPod(t, dir)
	for pid, program := range leftovers.Processes(dir) {
		if program == "sh" {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if _, err := os.Stat(dir); err != nil {
		t.Fatalf("somebody else cleaned up: %v", err)
	}
	expect(t, true, "What one that crashed had left is removed", "down", "--name", name)
	nothingLeft(t, dir)
}

func TestComponentDies(t *testing.T) {
	cmd, _, dir := foreground(t)
	for pid, name := range members(dir) {
		if name == "kubelet" {
			if out, err := exec.Command("kill", "-9", pid).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it goes on without its kubelet")
	}
	nothingLeft(t, dir)
}

func TestBackground(t *testing.T) {
	name := uniqueName(t)
	dir, err := kind.Dir(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = exec.Command(program, "down", "--name", name).Run() })
	expect(t, false, "no node is running", "status", "--name", name)
	expect(t, true, node.Kubeconfig(dir), "up", "--background", "--name", name)
	expect(t, true, "export KUBECONFIG="+node.Kubeconfig(dir), "status", "--name", name)
	expect(t, false, "is running already", "up", "--background", "--name", name)
	expect(t, true, "nothing of it is left", "down", "--name", name)
	nothingLeft(t, dir)
	expect(t, true, "No node is running", "down", "--name", name)
}

func TestRequirementsAreNamedAtOnce(t *testing.T) {
	cmd := exec.Command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "PATH=/nonexistent",
		"QW_CACHE_DIR=/nonexistent", program, "up")
	out, err := cmd.CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err == nil || strings.Contains(text, "\n") {
		t.Errorf("wanted one line and a failure, got %v:\n%s", err, text)
	}
	for _, want := range []string{"root", "containerd", "runc", "iptables", "iproute2", "conntrack", "ethtool", "socat"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not named: %s", want, text)
		}
	}
}

func TestBadInput(t *testing.T) {
	expect(t, false, `unknown command "start"`, "start")
	expect(t, false, `takes flags only, not "extra"`, "up", "extra")
	expect(t, false, `--name "../x"`, "down", "--name", "../x")
	expect(t, true, "usage: node", "help")
}

// expect runs the command and looks for a text in all that it prints.
func expect(t *testing.T, success bool, text string, args ...string) {
	t.Helper()
	out, err := exec.Command(program, args...).CombinedOutput()
	if (err == nil) != success || !strings.Contains(string(out), text) {
		t.Errorf("node %s: wanted success %v and %q, got %v and:\n%s", strings.Join(args, " "), success, text, err, out)
	}
}
