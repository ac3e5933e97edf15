// SPDX-License-Identifier: Apache-2.0

// Package laravel writes the command lines of Laravel's worker processes. It is
// pure and uses only options that every supported Laravel knows, unless the
// user asked for a newer one.
package laravel
