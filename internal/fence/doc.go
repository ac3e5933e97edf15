// SPDX-License-Identifier: Apache-2.0

// Package fence decides, for one idempotency key, who may call a provider,
// what is true about the call afterwards, and what to tell the app.
//
// It holds decisions only. A Call is a small machine: it is given what just
// happened (an Event) and says what to do next (a Step). Whoever drives it
// runs the statements, sends the request and sleeps; Run does so against a
// Store and a Sender. Nothing here knows SQL or HTTP, and time is an argument.
//
// The row in the database is the only thing that survives a crash. It changes
// through a closed set of statements (Op), each atomic and each with a guard
// (Transition): a statement either applies as a whole or says that it did not.
// Apply is the meaning of a statement; every store is tested against it.
package fence
