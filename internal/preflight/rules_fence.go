// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"fmt"

	"github.com/queueworker/operator/internal/timeoutchain"
)

// fenced says whether a fence table of the application's is declared.
func (in *inspection) fenced() bool { return in.sees() && in.declared.Fence == timeoutchain.FenceTable }

var fenceTableMissing = Rule{
	ID: "fence-table-missing", Severity: timeoutchain.Error,
	Doc: timeoutchain.Doc{
		When:   "`fence.mode: Table`, and the declared table is not in the application's default database. Its name is declared without the prefix of the database connection, as a migration names it. Not verified where no table is declared or the database does not answer.",
		Why:    "The table is what makes a second run harmless. Without it the application's claim fails, or it has none.",
		Remedy: "run the migration that makes it",
	},
	check: func(in *inspection) []Finding {
		if !in.fenced() {
			return nil
		}
		if in.declared.FenceTable == "" {
			return []Finding{{Severity: Unverified, Problem: "fence.mode is Table, but which table it is has not been declared"}}
		}
		fence := in.facts.Booted.Servers.Fence
		switch {
		case fence == nil:
			return []Finding{{Severity: Unverified, Problem: fmt.Sprintf("fence table %s cannot be looked for: %s", in.declared.FenceTable, in.unanswered("fence"))}}
		case fence.Exists:
			return nil
		}
		return []Finding{{
			Problem:     fmt.Sprintf("fence.mode is Table, but there is no table %s in the application's default database", fence.Name),
			Consequence: "nothing keeps a second run of a job from acting again", Fix: "run the migration that makes it before the workers",
		}}
	},
}

var fenceIndexMissing = Rule{
	ID: "fence-index-missing", Severity: timeoutchain.Error,
	Doc: timeoutchain.Doc{
		When:   "The fence's table has no key column of the declared name, or no unique index of that column alone. A partial index, and one over a part of the column, does not count.",
		Why:    "The unique index decides which of two copies of a job may act. Without it both may. MySQL, MariaDB, PostgreSQL and SQLite are read.",
		Remedy: "add the unique index to the key column",
	},
	check: func(in *inspection) []Finding {
		fence := in.facts.Booted.Servers.Fence
		if !in.fenced() || fence == nil || !fence.Exists || fence.Column && fence.Unique {
			return nil
		}
		problem := fmt.Sprintf("table %s has no unique index of column %s alone", fence.Name, in.declared.FenceKey)
		if !fence.Column {
			problem = fmt.Sprintf("table %s has no column %s", fence.Name, in.declared.FenceKey)
		}
		return []Finding{{
			Problem: problem, Consequence: "two copies of a job can both claim the same key, and both act",
			Fix: fmt.Sprintf("add the unique index: $table->unique('%s')", in.declared.FenceKey),
		}}
	},
}
