// SPDX-License-Identifier: Apache-2.0

package timeoutchain

import "math"

// MaxSeconds is the largest number of seconds that a field may hold: one year.
// Sums and products of a few such numbers fit in 64 bits, here and in CEL.
const MaxSeconds = 31_536_000

// Value is an optional whole number, in seconds unless the field says
// otherwise. The zero Value means "not declared".
type Value struct {
	n   int64
	set bool
}

// Of declares a number.
func Of(n int64) Value { return Value{n: n, set: true} }

// Declared says whether a number was given at all, be it zero.
func (v Value) Declared() bool { return v.set }

// N is the number, 0 where none was declared.
func (v Value) N() int64 { return v.n }

// Or returns the number, or the fallback where none was declared.
func (v Value) Or(fallback int64) int64 {
	if v.set {
		return v.n
	}
	return fallback
}

// Positive says whether a number above zero was declared.
func (v Value) Positive() bool { return v.set && v.n > 0 }

// Zero says whether zero (or less) was declared on purpose.
func (v Value) Zero() bool { return v.set && v.n <= 0 }

// add returns a + b, clamped to the range of int64.
func add(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64
	default:
		return a + b
	}
}

// sum adds any number of terms, clamped at each step.
func sum(terms ...int64) int64 {
	var total int64
	for _, t := range terms {
		total = add(total, t)
	}
	return total
}

// mul returns a * b, clamped to the range of int64.
func mul(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	product := a * b
	if product/b == a && !(b == -1 && a == math.MinInt64) { // this one overflow divides back
		return product
	}
	if (a < 0) == (b < 0) {
		return math.MaxInt64
	}
	return math.MinInt64
}
