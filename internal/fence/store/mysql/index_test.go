// SPDX-License-Identifier: Apache-2.0

package mysql_test

import (
	"errors"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/store/mysql"
	"github.com/queueworker/operator/internal/fence/store/sqlfence"
)

// TestIndexThatIsNoLongerUnique: under its old name it would let every claim
// through, so claims are refused until it keeps keys apart again.
func TestIndexThatIsNoLongerUnique(t *testing.T) {
	table := newTable()
	_ = openWith(t, mysql.Config{DSN: dsn(server.Port, "fence"), Table: table}).Close()
	exec(t, "ALTER TABLE "+table+" DROP PRIMARY KEY, ADD UNIQUE KEY theirs (scope, idem_key)")
	s := openWith(t, mysql.Config{DSN: dsn(server.Port, "fence"), Table: table, Existing: true})
	key := fence.Key{Scope: "s", ID: "k"}
	claim := func() error {
		_, err := s.Claim(t.Context(), fence.Statement{Op: fence.OpClaim, Key: key, New: fence.NewToken(), Lease: time.Minute})
		return err
	}
	if err := claim(); err != nil {
		t.Fatal(err)
	}
	until := func(what string, holds func(error) bool) {
		t.Helper()
		for end := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
			err := claim()
			if holds(err) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %v", what, err)
			}
		}
	}
	exec(t, "ALTER TABLE "+table+" DROP KEY theirs, ADD KEY theirs (scope, idem_key)")
	var unfit *sqlfence.Unfit
	until("claims go on without a unique index", func(err error) bool { return errors.As(err, &unfit) })
	if _, err := s.Read(t.Context(), key); err != nil {
		t.Errorf("what is there can no longer be read: %v", err)
	}
	exec(t, "DELETE FROM "+table)
	exec(t, "ALTER TABLE "+table+" DROP KEY theirs, ADD UNIQUE KEY theirs (scope, idem_key)")
	until("claims are refused though the index is back", func(err error) bool { return err == nil })
}
