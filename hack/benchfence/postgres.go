// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/store/postgres"
	"github.com/queueworker/operator/internal/fence/store/sqlfence"
	"github.com/queueworker/operator/test/fence/servers"
)

var postgreSQL = database{
	name: "PostgreSQL", start: servers.Postgres, generator: "pgbench",
	open: func(ctx context.Context, dsn string, connections int) (opened, error) {
		s, err := postgres.Open(ctx, postgres.Config{DSN: fmt.Sprintf("%s&pool_max_conns=%d", dsn, connections), Table: "fence"})
		if err != nil {
			return opened{}, err
		}
		return opened{s, s, sqlfence.Texts(s.Store)}, nil
	},
	script: pgbenchScript,
	command: func(port int, script string, connections, seconds int) []string {
		return []string{"pgbench", "-n", "-M", "prepared", "-h", "127.0.0.1", "-p", strconv.Itoa(port), "-U", "fence",
			"-c", strconv.Itoa(connections), "-j", strconv.Itoa(min(connections, 2)), "-T", strconv.Itoa(seconds), "-f", script, "postgres"}
	},
	rate: func(output []byte) (float64, error) { return numberIn(output, tps) },
}

var (
	tps       = regexp.MustCompile(`tps = ([0-9.]+)`)
	parameter = regexp.MustCompile(`\$(\d+)`)
)

// pgbenchScript is the store's two statements for a fresh random key. The
// values are text as they are in the store's messages.
func pgbenchScript(texts map[fence.Op]string) string {
	fill := func(text string, values []string) string {
		return parameter.ReplaceAllStringFunc(text, func(p string) string {
			n, _ := strconv.Atoi(p[1:])
			return values[n-1]
		})
	}
	return "\\set k random(1, 1000000000000000)\n" +
		fill(texts[fence.OpClaim], claimValues) + ";\n" + fill(texts[fence.OpEffect], effectValues) + ";\n"
}
