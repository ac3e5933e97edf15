// SPDX-License-Identifier: Apache-2.0

// The command pause holds a pod's network while its containers come and go. It does nothing until it is asked to stop.
package main

import (
	"context"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	<-ctx.Done()
}
