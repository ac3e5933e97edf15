// SPDX-License-Identifier: Apache-2.0

// Package exposition writes the text format of Prometheus. It is this small
// because it goes into every worker's pod.
package exposition

import (
	"bytes"
	"strconv"
	"strings"
)

// ContentType is the type of the text.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Kind is a kind of metric.
type Kind string

// The kinds.
const (
	Gauge     Kind = "gauge"
	Counter   Kind = "counter"
	Histogram Kind = "histogram"
)

// Text is an exposition that grows.
type Text struct {
	buffer bytes.Buffer
	common string // the labels of every sample
}

// New begins a text in which every sample has these labels, names and values in
// turn.
func New(common ...string) *Text { return &Text{common: join(common)} }

// Bytes is the text so far.
func (t *Text) Bytes() []byte { return t.buffer.Bytes() }

// Family begins a metric. Its samples follow at once.
func (t *Text) Family(name string, kind Kind, help string) {
	t.buffer.WriteString("# HELP " + name + " " + help + "\n# TYPE " + name + " " + string(kind) + "\n")
}

// Sample writes one value, with labels of its own, names and values in turn.
func (t *Text) Sample(name string, value float64, labels ...string) {
	t.buffer.WriteString(name)
	all := t.common
	if own := join(labels); own != "" && all != "" {
		all += "," + own
	} else if own != "" {
		all = own
	}
	if all != "" {
		t.buffer.WriteString("{" + all + "}")
	}
	t.buffer.WriteByte(' ')
	t.buffer.Write(strconv.AppendFloat(nil, value, 'g', -1, 64))
	t.buffer.WriteByte('\n')
}

// Bounds writes a histogram: the counts of each bucket, not yet added up, the
// last one being that of everything above, and the sum of all values.
func (t *Text) Bounds(name string, bounds []float64, counts []int64, sum float64, labels ...string) {
	var total int64
	for i, n := range counts {
		total += n
		bound := "+Inf"
		if i < len(bounds) {
			bound = strconv.FormatFloat(bounds[i], 'g', -1, 64)
		}
		t.Sample(name+"_bucket", float64(total), append(labels[:len(labels):len(labels)], "le", bound)...)
	}
	t.Sample(name+"_sum", sum, labels...)
	t.Sample(name+"_count", float64(total), labels...)
}

var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func join(labels []string) string {
	var parts []string
	for i := 0; i+1 < len(labels); i += 2 {
		parts = append(parts, labels[i]+`="`+escaper.Replace(labels[i+1])+`"`)
	}
	return strings.Join(parts, ",")
}
