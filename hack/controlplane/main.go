// SPDX-License-Identifier: Apache-2.0

// The command controlplane starts and stops a Kubernetes control plane on this machine; README.md beside it tells how to use it.
package main

import (
	"github.com/queueworker/operator/hack/internal/instance"
)

const usage = `usage: controlplane COMMAND [FLAGS]

  up       start a control plane; Ctrl-C stops it (--background returns once it is ready)
  down     stop the one in the background
  status   say whether it runs, and where its kubeconfig is
  build    make the missing programs and start nothing
  bin      print the folder that holds the programs (kubectl among them)
`

var commands = instance.Commands{
	"up": up, "down": kind.Down, "status": kind.Status, "build": build, "bin": bin,
}

func main() {
	instance.Main("controlplane", usage, commands)
}
