// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/store/mysql"
	"github.com/queueworker/operator/internal/fence/store/sqlfence"
	"github.com/queueworker/operator/test/fence/servers"
)

var mariaDB = database{
	name: "MariaDB", start: servers.MariaDB, generator: "sysbench",
	open: func(ctx context.Context, dsn string, connections int) (opened, error) {
		s, err := mysql.Open(ctx, mysql.Config{DSN: dsn, Table: "fence", MaxConns: connections})
		if err != nil {
			return opened{}, err
		}
		return opened{s, s, sqlfence.Texts(s.Store)}, nil
	},
	script: sysbenchScript,
	command: func(port int, script string, connections, seconds int) []string {
		return []string{"sysbench", "--db-driver=mysql", "--mysql-host=127.0.0.1", "--mysql-port=" + strconv.Itoa(port),
			"--mysql-user=fence", "--mysql-password=", "--mysql-db=fence",
			"--threads=" + strconv.Itoa(connections), "--time=" + strconv.Itoa(seconds), "--events=0", script, "run"}
	},
	rate: func(output []byte) (float64, error) {
		events, err := numberIn(output, totalEvents)
		if err != nil {
			return 0, err
		}
		took, err := numberIn(output, totalTime)
		return events / took, err
	},
}

var (
	totalEvents = regexp.MustCompile(`total number of events: +([0-9]+)`)
	totalTime   = regexp.MustCompile(`total time: +([0-9.]+)s`)
)

// sysbenchScript is the store's two statements for a fresh random key.
func sysbenchScript(texts map[fence.Op]string) string {
	lua := func(text string, values []string) string {
		parts := strings.Split(text, "?")
		for i, value := range values {
			value = strings.Replace(value, `'\x`, `X'`, 1)
			if value == ":k" {
				value = "'%s'"
			}
			parts[i] += value
		}
		return strings.Join(parts, "")
	}
	return `function thread_init() con = sysbench.sql.driver():connect() end
function event()
  local k = string.format("%d-%d-%d", sysbench.tid, os.time(), sysbench.rand.unique())
  con:query(string.format([[` + lua(texts[fence.OpClaim], claimValues) + `]], k))
  con:query(string.format([[` + lua(texts[fence.OpEffect], effectValues) + `]], k))
end
function thread_done() con:disconnect() end
`
}
