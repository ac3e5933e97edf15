// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// needed are programs and the Debian packages that they come from.
var needed = []struct{ program, pkg string }{
	{"containerd", "containerd"},
	{"ctr", "containerd"},
	{"containerd-shim-runc-v2", "containerd"},
	{"runc", "runc"},
	{pluginFolder + "/bridge", "containernetworking-plugins"},
	{pluginFolder + "/portmap", "containernetworking-plugins"},
	{"iptables", "iptables"},
	{"ip", "iproute2"},
	{"conntrack", "conntrack"},
	{"ethtool", "ethtool"},
	{"socat", "socat"}, // kubectl port-forward
	{"nsenter", "util-linux"},
}

// pluginFolder is where Debian keeps the network plugins.
const pluginFolder = "/usr/lib/cni"

// Requirements says in one line what this machine lacks to run a node; nil when it has everything. More are Debian packages that
// the caller needs besides and has found missing.
func Requirements(more ...string) error {
	missing := slices.Clone(more)
	for _, n := range needed {
		if _, err := exec.LookPath(n.program); err != nil && !slices.Contains(missing, n.pkg) {
			missing = append(missing, n.pkg)
		}
	}
	var lacks []string
	if os.Getuid() != 0 {
		lacks = append(lacks, "root: run it with sudo")
	}
	if _, err := os.Stat("/etc/debian_version"); err != nil {
		lacks = append(lacks, "Debian 12: this is another system")
	} else if len(missing) > 0 {
		lacks = append(lacks, "packages: apt-get install -y --no-install-recommends "+strings.Join(missing, " "))
	}
	if len(lacks) == 0 {
		return nil
	}
	return errors.New("a real node needs " + strings.Join(lacks, "; it needs "))
}
