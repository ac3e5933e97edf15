// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// stateFolder is the node's folder, seen from inside: a short path, since sockets lie in it.
const stateFolder = "/run/node"

func inside(name string) string { return filepath.Join(stateFolder, name) }

// sysctls are what the kubelet sets for the whole machine unless it finds them set. It is shown files that say so.
var sysctls = map[string]string{
	"vm/overcommit_memory": "1", "vm/panic_on_oom": "0",
	"kernel/panic": "10", "kernel/panic_on_oops": "1",
	"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
}

// isolate gives the namespace its own /proc, /run and /var. What is written to the latter two is gone with the node.
func (s settings) isolate() error {
	state, err := unix.Open(s.Dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening %s: %w", s.Dir, err)
	}
	defer func() { _ = unix.Close(state) }()
	if err := mountAll(
		mount{target: "/", flags: unix.MS_REC | unix.MS_PRIVATE},
		mount{target: "/", flags: unix.MS_REC | unix.MS_SHARED}, // among each other, containers share what they ask for
		mount{source: "proc", target: "/proc", kind: "proc"},
		mount{source: "tmpfs", target: "/run", kind: "tmpfs", data: "mode=755"},
	); err != nil {
		return err
	}
	for _, folder := range []string{stateFolder, "/run/var/written", "/run/var/work", "/run/sysctl"} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	if err := mountAll(
		mount{source: fmt.Sprint("/proc/self/fd/", state), target: stateFolder, flags: unix.MS_BIND},
		mount{source: "overlay", target: "/var", kind: "overlay", data: "lowerdir=/var,upperdir=/run/var/written,workdir=/run/var/work"},
	); err != nil {
		return err
	}
	return pretendSysctls()
}

func pretendSysctls() error {
	for name, value := range sysctls {
		file := filepath.Join("/run/sysctl", strings.ReplaceAll(name, "/", "."))
		if err := os.WriteFile(file, []byte(value), 0o644); err != nil {
			return err
		}
		if err := mountAll(mount{source: file, target: "/proc/sys/" + name, flags: unix.MS_BIND}); err != nil {
			return err
		}
	}
	return nil
}

type mount struct {
	source, target, kind string
	flags                uintptr
	data                 string
}

func mountAll(mounts ...mount) error {
	for _, m := range mounts {
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mounting %s on %s: %w", m.source, m.target, err)
		}
	}
	return nil
}

// nodeAddress is the node's own, at which pods reach the API server. It exists inside only.
const nodeAddress = "172.31.255.1"

// makeNetwork gives the node an address and a default route, which the API server and the kubelet look for. Nothing is at the
// other end: pods reach each other and nobody else.
func makeNetwork() error {
	const script = `ip link set lo up
ip link add node0 type veth peer name node1
ip addr add ` + nodeAddress + `/24 dev node0
ip link set node0 up
ip link set node1 up
ip route add default dev node0`
	for command := range strings.Lines(script) {
		words := strings.Fields(command)
		if output, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.TrimSpace(command), err, output)
		}
	}
	return nil
}
