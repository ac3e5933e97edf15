// SPDX-License-Identifier: Apache-2.0

//go:build linux

package watch

import "time"

// Looked makes the last look one of then, and the last that was answered.
func (w *Watcher) Looked(ended, answered time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told.ended, w.told.lastLook = ended, answered
}

// Hasty is the script with other limits.
func (s *Script) Hasty(patience, floor time.Duration) { s.patience, s.floor = patience, floor }

// Pressed is the script with another limit for each look after the first.
func (s *Script) Pressed(answers time.Duration) { s.answers = answers }
