// SPDX-License-Identifier: Apache-2.0

// Package sqlfence is the part of a SQL store that is the same for every
// database: it turns the protocol's transitions into statements, so that no
// guard is written twice. A database adds its words (Dialect), its connection
// (Conn) and its schema.
package sqlfence
