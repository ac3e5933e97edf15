// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql" // for sql.Open
	_ "github.com/jackc/pgx/v5/stdlib" // for sql.Open
)

// slow compares the fence with the usual way, which holds a row's lock, and so
// a connection, while the provider takes its time.
func (r *race) slow(ctx context.Context, o options) (bool, error) {
	provider := newProvider(200 * time.Millisecond)
	defer provider.Close()
	store, err := r.open(ctx, r.server.DSN, slowPool)
	if err != nil {
		return false, err
	}
	defer func() { _ = store.Close() }()
	fenced, err := fenceBefore(provider.URL, store)
	if err != nil {
		return false, err
	}
	defer fenced.Close()
	locks, err := r.lockBefore(ctx, provider.URL)
	if err != nil {
		return false, err
	}
	defer locks.Close()
	seconds := max(o.seconds, 5)
	l := closedLoop(ctx, locks.URL, crowd, seconds)
	f := closedLoop(ctx, fenced.URL, crowd, seconds)
	fmt.Printf("%-12s provider of 200 ms, %d connections, %d clients: lock held through the call %.0f/s, fence %.0f/s, %.1f times (at least %.0f)\n",
		r.name, slowPool, crowd, l, f, f/l, leastOfLocks)
	return f/l >= leastOfLocks, nil
}

// lockBefore inserts the key and keeps the transaction open until the provider
// has answered.
func (r *race) lockBefore(ctx context.Context, base string) (*httptest.Server, error) {
	driver, param := "pgx", "$1"
	if r.name == mariaDB.name {
		driver, param = "mysql", "?"
	}
	db, err := sql.Open(driver, r.server.DSN)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(slowPool)
	db.SetMaxIdleConns(slowPool)
	if _, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS locks (k VARCHAR(255) PRIMARY KEY, done INT)"); err != nil {
		return nil, err
	}
	client := newClient()
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		key := request.Header.Get("Idempotency-Key")
		err := inTransaction(request.Context(), db, func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(request.Context(), "INSERT INTO locks (k, done) VALUES ("+param+", 0)", key); err != nil {
				return err
			}
			response, err := client.Post(base, "application/json", strings.NewReader(`{"amount":1}`))
			if err != nil {
				return err
			}
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			_, err = tx.ExecContext(request.Context(), "UPDATE locks SET done = 1 WHERE k = "+param, key)
			return err
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusCreated)
	})), nil
}

func inTransaction(ctx context.Context, db *sql.DB, do func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}
