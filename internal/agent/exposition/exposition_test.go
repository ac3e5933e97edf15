// SPDX-License-Identifier: Apache-2.0

package exposition_test

import (
	"testing"

	"github.com/queueworker/operator/internal/agent/exposition"
)

func TestText(t *testing.T) {
	text := exposition.New("queueworker", "pay")
	text.Family("a_total", exposition.Counter, "How many.")
	text.Sample("a_total", 3)
	text.Sample("a_total", 1e9, "class", `App\Jobs\A`, "odd", "\"x\"\ny")
	text.Family("b", exposition.Histogram, "How long.")
	text.Bounds("b", []float64{0.1, 2.5}, []int64{1, 0, 2}, 9.25, "class", "A")
	const want = `# HELP a_total How many.
# TYPE a_total counter
a_total{queueworker="pay"} 3
a_total{queueworker="pay",class="App\\Jobs\\A",odd="\"x\"\ny"} 1e+09
# HELP b How long.
# TYPE b histogram
b_bucket{queueworker="pay",class="A",le="0.1"} 1
b_bucket{queueworker="pay",class="A",le="2.5"} 1
b_bucket{queueworker="pay",class="A",le="+Inf"} 3
b_sum{queueworker="pay",class="A"} 9.25
b_count{queueworker="pay",class="A"} 3
`
	if got := string(text.Bytes()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	bare := exposition.New()
	bare.Sample("c", 0)
	bare.Sample("c", 0.5, "l", "v")
	if got := string(bare.Bytes()); got != "c 0\nc{l=\"v\"} 0.5\n" {
		t.Errorf("got %s", got)
	}
}
