// SPDX-License-Identifier: Apache-2.0

// Package points marks the steps between which a fence can die. In a program
// built as usual it does nothing at all. Built with the tag fencepoints, a fence
// asks a test at each of them and goes on when it is answered; until then the
// test may kill it, its client or its connections.
package points
