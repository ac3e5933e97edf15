// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

const root = "../.."

var language = parser.NewParser(parser.Options{})

// epoch is second 0 of a test.
var epoch = time.Unix(0, 0).UTC()

// sample is a number at a time.
type sample struct {
	at    int64 // milliseconds
	value float64
}

func (s sample) T() int64                    { return s.at }
func (sample) ST() int64                     { return 0 }
func (s sample) F() float64                  { return s.value }
func (sample) H() *histogram.Histogram       { return nil }
func (sample) FH() *histogram.FloatHistogram { return nil }
func (sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample         { return s }

// memory is all that was ever scraped.
type memory map[string]*recorded

type recorded struct {
	labels  labels.Labels
	samples []chunks.Sample
}

func (m memory) add(of labels.Labels, at time.Time, value float64) {
	key := of.String()
	if m[key] == nil {
		m[key] = &recorded{labels: of}
	}
	m[key].samples = append(m[key].samples, sample{at.UnixMilli(), value})
}

// Querier implements storage.Queryable.
func (m memory) Querier(_, _ int64) (storage.Querier, error) { return querier{m}, nil }

type querier struct{ memory memory }

func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	for _, r := range q.memory {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(r.labels.Get(m.Name)) }) {
			found = append(found, storage.NewListSeries(r.labels, r.samples))
		}
	}
	slices.SortFunc(found, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	return &seriesSet{series: found, at: -1}
}

func (querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) Close() error { return nil }

type seriesSet struct {
	series []storage.Series
	at     int
}

func (s *seriesSet) Next() bool                      { s.at++; return s.at < len(s.series) }
func (s *seriesSet) At() storage.Series              { return s.series[s.at] }
func (*seriesSet) Err() error                        { return nil }
func (*seriesSet) Warnings() annotations.Annotations { return nil }

func newEngine() *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1_000_000, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true, Parser: language,
	})
}

// ask runs an instant query.
func ask(ctx context.Context, engine *promql.Engine, of memory, query string, at time.Time) (promql.Vector, error) {
	asked, err := engine.NewInstantQuery(ctx, of, nil, query, at)
	if err != nil {
		return nil, err
	}
	defer asked.Close()
	result := asked.Exec(ctx)
	if result.Err != nil {
		return nil, result.Err
	}
	switch value := result.Value.(type) {
	case promql.Vector:
		return slices.Clone(value), nil
	case promql.Scalar:
		return promql.Vector{{T: value.T, F: value.V}}, nil
	default:
		return nil, fmt.Errorf("%s is no vector", query)
	}
}

// scraped writes down a series in Prometheus' own short form, such as 0+1x10.
func (m memory) scraped(t *testing.T, series, values string, every time.Duration) {
	t.Helper()
	of, sequence, err := language.ParseSeriesDesc(series + " " + values)
	if err != nil {
		t.Fatalf("%s %s: %v", series, values, err)
	}
	for i, v := range sequence {
		if !v.Omitted {
			m.add(of, epoch.Add(time.Duration(i)*every), v.Value)
		}
	}
}
