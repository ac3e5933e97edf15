// SPDX-License-Identifier: Apache-2.0

package timelineview

import (
	"math"

	"github.com/queueworker/operator/internal/timeoutchain"
)

// logarithmicFrom is the ratio of the longest to the shortest bar above which a
// linear scale would show the short ones as nothing.
const logarithmicFrom = 40

// scale maps seconds to a fraction of the drawing's width.
type scale struct {
	length      int64 // seconds at the right edge, at least 1
	logarithmic bool
}

func scaleOf(t timeoutchain.Timeline) scale {
	s := scale{length: max(t.Length(), 1)}
	for _, b := range t.Bars {
		if b.End > 0 && s.length/b.End >= logarithmicFrom {
			s.logarithmic = true
		}
	}
	return s
}

// at is the place of a moment, from 0 to 1.
func (s scale) at(seconds int64) float64 {
	seconds = min(max(seconds, 0), s.length)
	if s.logarithmic {
		return math.Log1p(float64(seconds)) / math.Log1p(float64(s.length))
	}
	return float64(seconds) / float64(s.length)
}

// decades are the moments of a logarithmic axis.
var decades = []int64{0, 1, 10, 60, 600, 3_600, 21_600, 86_400, 604_800, 2_592_000, 31_536_000}

// ticks are the moments that an axis may name: on a linear one 0 and at most so
// many more. Who draws leaves out what has no room.
func (s scale) ticks(most int) []int64 {
	var ticks []int64
	if s.logarithmic {
		for _, at := range decades {
			if at <= s.length {
				ticks = append(ticks, at)
			}
		}
		return ticks
	}
	step := s.step(most)
	for at := int64(0); at <= s.length; at += step {
		ticks = append(ticks, at)
	}
	return ticks
}

// step is the smallest round distance that needs at most so many ticks.
func (s scale) step(most int) int64 {
	for _, step := range []int64{1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200, 86_400, 604_800, 2_592_000, 7_776_000} {
		if s.length/step <= int64(most) {
			return step
		}
	}
	return s.length
}
