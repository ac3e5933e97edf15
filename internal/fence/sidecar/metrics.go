// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/queueworker/operator/internal/fence"
)

// metrics are the sidecar's. Labels are bounded: providers by the
// configuration, answers and operations by their enumerations.
type metrics struct {
	calls     *prometheus.CounterVec
	posts     *prometheus.CounterVec
	grants    *prometheus.CounterVec
	passed    *prometheus.CounterVec
	lookups   *prometheus.CounterVec
	conflicts *prometheus.CounterVec
	store     *prometheus.HistogramVec
	waits     *prometheus.HistogramVec
	failures  *prometheus.CounterVec
	claims    *prometheus.CounterVec
	endings   *prometheus.CounterVec
	spared    *prometheus.CounterVec
	keys      *prometheus.GaugeVec
	oldest    *prometheus.GaugeVec
}

func newMetrics(registry prometheus.Registerer, scopes []string) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "queueworker_fence_" + name, Help: help}, labels)
		registry.MustRegister(c)
		return c
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "queueworker_fence_" + name, Help: help}, labels)
		registry.MustRegister(g)
		return g
	}
	m := &metrics{
		calls:     counter("calls_total", "Calls that needed a key, by how they ended; replayed ones made no request.", "provider", "answer", "replayed"),
		posts:     counter("posts_total", "Requests that were written to a provider, or may have been.", "provider"),
		grants:    counter("grants_total", "Statements that gave an attempt the key, as far as the database confirmed them.", "provider"),
		passed:    counter("passed_total", "Requests without an effect that were passed on.", "provider"),
		lookups:   counter("lookups_total", "Questions to a provider about a key, by what they found.", "provider", "found"),
		conflicts: counter("conflicts_total", "Effects that contradict what the fence knew: each needs a person.", "provider"),
		claims:    counter("claims_total", "Claims of keys for effects that are no call of a provider, by answer.", "provider", "answer"),
		endings:   counter("claims_ended_total", "What holders said of their claims, and how the row took it.", "provider", "ending", "answer"),
		spared:    counter("duplicates_prevented_total", "Calls and claims that would have run a second time: they got the stored answer, or one that holds them off.", "provider"),
		keys:      gauge("keys", "Keys that are not settled. A claim past its lease counts as unknown.", "provider", "state"),
		oldest:    gauge("oldest_seconds", "Age of the oldest key in a state, since its outcome became unknown; 0 where there is none.", "provider", "state"),
		failures:  counter("store_failures_total", "Statements that the database did not confirm.", "statement"),
		store: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "queueworker_fence_store_seconds", Help: "How long statements took.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1},
		}, []string{"statement"}),
	}
	m.waits = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "queueworker_fence_wait_seconds", Help: "How long copies waited for another one of the same key.",
		Buckets: []float64{.25, .5, 1, 2.5, 5, 10, 30},
	}, []string{"provider"})
	registry.MustRegister(m.store, m.waits)
	for _, scope := range scopes {
		for _, c := range []*prometheus.CounterVec{m.posts, m.grants, m.passed, m.conflicts, m.spared} {
			c.WithLabelValues(scope) // starts at 0, so that a rate sees the first one
		}
	}
	return m
}

// Posted implements proxy.Watch.
func (m *metrics) Posted(provider string) { m.posts.WithLabelValues(provider).Inc() }

// Passed implements proxy.Watch.
func (m *metrics) Passed(provider string) { m.passed.WithLabelValues(provider).Inc() }

// LookedUp implements proxy.Watch.
func (m *metrics) LookedUp(provider string, found fence.Finding) {
	m.lookups.WithLabelValues(provider, found.String()).Inc()
}

// Answered implements proxy.Watch.
func (m *metrics) Answered(provider string, a fence.Answer) {
	m.calls.WithLabelValues(provider, string(a.Type), strconv.FormatBool(a.Replayed)).Inc()
	if a.Conflict != "" {
		m.conflicts.WithLabelValues(provider).Inc()
	}
	if a.Replayed || a.Type == fence.AnswerBusy || a.Type == fence.AnswerReview {
		m.spared.WithLabelValues(provider).Inc()
	}
}

// Waited implements proxy.Watch.
func (m *metrics) Waited(provider string, d time.Duration) {
	m.waits.WithLabelValues(provider).Observe(d.Seconds())
}

// Claimed implements claims.Watch.
func (m *metrics) Claimed(scope, answer string) {
	m.claims.WithLabelValues(scope, answer).Inc()
	switch fence.ClaimKind(answer) {
	case fence.ClaimDone, fence.ClaimBusy, fence.ClaimReview:
		m.spared.WithLabelValues(scope).Inc()
	}
}

// Ended implements claims.Watch.
func (m *metrics) Ended(scope, ending, answer string, conflict bool) {
	m.endings.WithLabelValues(scope, ending, answer).Inc()
	if conflict {
		m.conflicts.WithLabelValues(scope).Inc()
	}
}

// measured counts what the store is asked.
func (m *metrics) measured(store fence.Store, clock fence.Clock) fence.Store {
	return measuredStore{store, m, clock}
}

type measuredStore struct {
	fence.Store
	m     *metrics
	clock fence.Clock
}

// Claim implements fence.Store.
func (s measuredStore) Claim(ctx context.Context, st fence.Statement) (fence.Row, error) {
	began := s.clock.Now()
	row, err := s.Store.Claim(ctx, st)
	s.told(st.Op.String(), began, err)
	if err == nil && row.Token == st.New {
		s.m.grants.WithLabelValues(st.Key.Scope).Inc()
	}
	return row, err
}

// Apply implements fence.Store.
func (s measuredStore) Apply(ctx context.Context, st fence.Statement) (bool, error) {
	began := s.clock.Now()
	applied, err := s.Store.Apply(ctx, st)
	s.told(st.Op.String(), began, err)
	if applied && fence.TransitionOf(st.Op).Change.Grant {
		s.m.grants.WithLabelValues(st.Key.Scope).Inc()
	}
	return applied, err
}

// Read implements fence.Store.
func (s measuredStore) Read(ctx context.Context, key fence.Key) (fence.Row, error) {
	began := s.clock.Now()
	row, err := s.Store.Read(ctx, key)
	failed := err
	if errors.Is(err, fence.ErrNoRow) {
		failed = nil
	}
	s.told("read", began, failed)
	return row, err
}

func (s measuredStore) told(statement string, began time.Time, err error) {
	s.m.told(statement, s.clock.Now().Sub(began), err)
}

func (m *metrics) told(statement string, took time.Duration, err error) {
	m.store.WithLabelValues(statement).Observe(took.Seconds())
	if err != nil {
		m.failures.WithLabelValues(statement).Inc()
	}
}

// status tells how the sidecar is.
func (s *Sidecar) status(registry *prometheus.Registry) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		limit, cancel := context.WithTimeout(r.Context(), readyLimit)
		defer cancel()
		if err := s.ready.check(limit); err != nil {
			http.Error(w, "not ready: the store does not answer", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux
}

const readyLimit = 2 * time.Second
