// SPDX-License-Identifier: Apache-2.0

// Package artisan reads the command by which a container starts a Laravel
// worker. Its words must stand by themselves, since what a shell is told to run
// cannot be seen.
package artisan

import (
	"fmt"
	"slices"

	"github.com/queueworker/operator/internal/timeoutchain"
)

// Command is a worker's command in its parts.
type Command struct {
	PHP     []string // the words before artisan, a wrapper's too
	Artisan string
	Options []string // from `queue:work` or `horizon` on
}

// Read takes the command apart. The error says what is missing; what to do about
// it depends on who asks.
func Read(runtime timeoutchain.Runtime, words []string) (Command, error) {
	name := "queue:work"
	if runtime == timeoutchain.Horizon {
		name = "horizon"
	}
	at := slices.Index(words, name)
	if at < 2 {
		return Command{}, fmt.Errorf("the command %q has no words `php artisan %s`", words, name)
	}
	return Command{PHP: words[:at-1], Artisan: words[at-1], Options: words[at:]}, nil
}
