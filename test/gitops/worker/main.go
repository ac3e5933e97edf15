// SPDX-License-Identifier: Apache-2.0

// The worker of the tests with Argo CD: asked to stop, it goes on with its job
// until somebody runs `/worker finish` beside it.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const finished = "/tmp/finished"

func main() {
	if len(os.Args) > 1 && os.Args[1] == "finish" {
		if err := os.WriteFile(finished, nil, 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	fmt.Println("working")
	<-stop
	fmt.Println("asked to stop; the job goes on")
	for {
		if _, err := os.Stat(finished); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}
