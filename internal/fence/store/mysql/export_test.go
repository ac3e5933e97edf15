// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/store/sqlfence"
)

// AsMySQL is the store as it is built on a server without RETURNING.
func AsMySQL(s *Store, table string) fence.Store {
	t, err := sqlfence.ParseTable(table)
	if err != nil {
		panic(err)
	}
	d := dialect()
	d.First = first(t, "PRIMARY")
	return sqlfence.New(withoutReturning{s.db}, d, t)
}
