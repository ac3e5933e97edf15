// SPDX-License-Identifier: Apache-2.0

package postgres

// What the tests look at from outside.
var (
	Direct = direct
	Decode = decode
	Encode = encode
)
