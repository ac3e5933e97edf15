// SPDX-License-Identifier: Apache-2.0

// Package install tries the chart as those who operate it use it: with the helm command, from the archive that `make image`
// writes, on a real node whose API server enforces the restricted Pod Security Standard and the right to hold up owners.
package install
