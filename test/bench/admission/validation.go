// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/admission"
	"github.com/queueworker/operator/test/bench/measure"
)

// benchmarkValidation measures the function that the webhook calls, alone.
func benchmarkValidation() testing.BenchmarkResult {
	qw, err := sample("payments")
	return testing.Benchmark(func(b *testing.B) {
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			admission.Validate(qw, admission.Options{})
		}
	})
}

func printValidation(r testing.BenchmarkResult) {
	fmt.Printf("\nThe validation function alone: %.1f µs, %d allocations, %d bytes (%d calls)\n\n",
		microseconds(r), r.AllocsPerOp(), r.AllocedBytesPerOp(), r.N)
}

func judgeValidation(v *measure.Verdicts, r testing.BenchmarkResult) {
	v.AtMost("the validation function takes", microseconds(r), 50, "µs")
	v.AtMost("the validation function allocates", float64(r.AllocsPerOp()), 50, "times")
}

func microseconds(r testing.BenchmarkResult) float64 {
	return float64(r.T) / float64(r.N) / float64(time.Microsecond)
}
