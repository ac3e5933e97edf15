// SPDX-License-Identifier: Apache-2.0

// Stamp prints when it was started, in nanoseconds: the worker of the
// measurement of how long a worker waits for the agent.
package main

import (
	"fmt"
	"time"
)

func main() { fmt.Println(time.Now().UnixNano()) }
