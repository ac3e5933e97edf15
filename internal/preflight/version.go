// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"strconv"
	"strings"
)

// version is a release's three numbers; the zero version is unknown.
type version [3]int

// parseVersion reads "8.83.26", "v5.29.1" or "12.x-dev" as far as it has
// numbers.
func parseVersion(text string) version {
	var v version
	for i, part := range strings.SplitN(strings.TrimPrefix(text, "v"), ".", len(v)) {
		digits := strings.IndexFunc(part+" ", func(r rune) bool { return r < '0' || r > '9' })
		n, err := strconv.Atoi(part[:digits])
		if err != nil {
			break
		}
		v[i] = n
	}
	return v
}

func (v version) known() bool { return v != version{} }

func (v version) below(major, minor, patch int) bool {
	for i, n := range [3]int{major, minor, patch} {
		if v[i] != n {
			return v[i] < n
		}
	}
	return false
}
