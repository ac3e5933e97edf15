// SPDX-License-Identifier: Apache-2.0

// The command node starts and stops a real Kubernetes node on this machine; README.md beside it tells how to use it.
package main

import (
	"github.com/queueworker/operator/hack/internal/instance"
	"github.com/queueworker/operator/hack/node/node"
)

const usage = `usage: node COMMAND [FLAGS]

  up       start a node with its control plane; Ctrl-C stops it (--background returns once it is ready)
  down     stop the one in the background, or clean up after one that crashed
  status   say whether it runs, and where its kubeconfig is
  build    make the missing programs and start nothing
`

var commands = instance.Commands{
	"up": up, "down": kind.Down, "status": kind.Status, "build": build,
}

func main() {
	if node.Inside() {
		return
	}
	instance.Main("node", usage, commands)
}
