// SPDX-License-Identifier: Apache-2.0

// Package sidecar is the fence as a process: the proxy on loopback, the upkeep
// of its table, and the endpoint that tells how it is.
package sidecar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/fenceconfig"
	"github.com/queueworker/operator/internal/fence/points"
	"github.com/queueworker/operator/internal/fence/proxy"
)

// Sidecar is one process.
type Sidecar struct {
	Config *fenceconfig.Config
	DSN    string
	Owner  string // the pod, for people
	Log    *slog.Logger
	Clock  fence.Clock

	ready  readiness
	metric *metrics
	listen func(network, address string) (net.Listener, error) // nil: net.Listen
}

// Run serves until ctx ends, then lets the calls under way finish. It waits for
// a database that does not answer, without being ready; a table that cannot
// serve is an error.
func (s *Sidecar) Run(ctx context.Context) error {
	if s.listen == nil {
		s.listen = net.Listen
	}
	registry := prometheus.NewRegistry()
	s.metric = newMetrics(registry, s.scopes())
	status, err := s.listen("tcp", s.Config.StatusAddress)
	if err != nil {
		return fmt.Errorf("statusAddress: %w", err)
	}
	statusServer := &http.Server{Handler: s.status(registry), ReadHeaderTimeout: headerLimit}
	go func() { _ = statusServer.Serve(status) }()
	defer func() { _ = statusServer.Close() }()

	opened, err := s.open(ctx)
	if errors.Is(err, errStopped) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = opened.Close() }()
	for _, warning := range opened.Warnings() {
		s.Log.Warn(warning)
	}
	measured := s.metric.measured(opened, s.Clock)
	store := points.Store(measured)
	handler, err := proxy.New(proxy.Config{
		Providers: s.Config.Declared(), Store: store, Clock: s.Clock, Owner: s.Owner, Log: s.Log, Watch: s.metric,
		Transport: points.Transport,
	})
	if err != nil {
		return err
	}
	stopUpkeep := s.upkeep(ctx, points.Upkeep(measured), handler)
	defer stopUpkeep()
	stopCensus := s.metric.takeCensus(ctx, opened, s.scopes(), s.Clock)
	defer stopCensus()
	return s.serve(ctx, store, points.Handler(s.app(store, opened, handler)), handler.Finish)
}

// scopes are the names of all that the fence keeps keys for.
func (s *Sidecar) scopes() []string {
	var all []string
	for i := range s.Config.Providers {
		all = append(all, s.Config.Providers[i].Name)
	}
	for i := range s.Config.Claims {
		all = append(all, s.Config.Claims[i].Name)
	}
	return all
}

// headerLimit ends clients that never finish a header, bodyLimit those that
// never finish a body. Nothing was claimed or sent until then. The server's
// limit goes on while a call is answered, so the call's time is added.
const (
	headerLimit = 5 * time.Second
	bodyLimit   = 30 * time.Second
)

func (s *Sidecar) serve(ctx context.Context, store fence.Store, handler http.Handler, finish func(context.Context) []fence.Key) error {
	listener, err := s.listen("tcp", s.Config.BindAddress)
	if err != nil {
		return fmt.Errorf("bindAddress: %w", err)
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerLimit, ReadTimeout: bodyLimit + time.Duration(s.Config.HTTPSeconds)*time.Second,
		ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelWarn), MaxHeaderBytes: 64 << 10,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	s.ready.is(store)
	s.Log.Info("the fence serves", "address", listener.Addr().String())
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	s.Log.Info("the fence stops: calls under way are finished", "seconds", s.Config.ShutdownSeconds)
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(s.Config.ShutdownSeconds)*time.Second)
	defer cancel()
	err = server.Shutdown(limit)
	for _, key := range finish(limit) {
		s.Log.Error("an outcome stayed unsaved: the key counts as unknown", "provider", key.Scope, "key", key.ID)
	}
	if err != nil {
		return fmt.Errorf("calls were still under way when the time to stop was over: their keys count as unknown: %w", err)
	}
	return nil
}

// readiness asks the store each time.
type readiness struct {
	mu    sync.Mutex
	store fence.Store
}

func (r *readiness) is(store fence.Store) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.store = store
}

var errStarting = errors.New("the database was not reached yet")

// check reads a row that is never there, with all columns that are needed.
func (r *readiness) check(ctx context.Context) error {
	r.mu.Lock()
	store := r.store
	r.mu.Unlock()
	if store == nil {
		return errStarting
	}
	_, err := store.Read(ctx, fence.Key{Scope: "queueworker", ID: "ready"})
	if errors.Is(err, fence.ErrNoRow) {
		return nil
	}
	return err
}
