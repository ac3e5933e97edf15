// SPDX-License-Identifier: Apache-2.0

//go:build linux

package watch

import "time"

// Hasty is the script with other limits.
func (s *Script) Hasty(patience, floor time.Duration) { s.patience, s.floor = patience, floor }
