// SPDX-License-Identifier: Apache-2.0

package table_test

import (
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"github.com/queueworker/operator/internal/fence/table"
)

func TestURLs(t *testing.T) {
	for text, want := range map[string]table.Config{
		"postgres://u:p@db/app?sslmode=disable": {Driver: "PostgreSQL", DSN: "postgres://u:p@db/app?sslmode=disable"},
		"pgsql://u@db/app":                      {Driver: "PostgreSQL", DSN: "postgres://u@db/app"},
		"sqlite:/data/f.db":                     {Driver: "SQLite", DSN: "/data/f.db"},
		"sqlite:///data/f.db":                   {Driver: "SQLite", DSN: "/data/f.db"},
	} {
		if got, err := table.FromURL(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string][5]string{
		"mysql://u:p%40s%2F@db/app":             {"u", "p@s/", "db:3306", "app", ""},
		"mariadb://u@db:3307/app?tls=true":      {"u", "", "db:3307", "app", "true"},
		"mysql://u:p@[::1]:3306/app?tls=custom": {"u", "p", "[::1]:3306", "app", "custom"},
	} {
		c, err := table.FromURL(text)
		if err != nil || c.Driver != "MySQL" {
			t.Errorf("%s: %+v, %v", text, c, err)
			continue
		}
		_, query, _ := strings.Cut(text, "?tls=")
		if query == "custom" { // names a configuration that a program registers
			c.DSN = strings.ReplaceAll(c.DSN, "tls=custom", "tls=false")
			want[4] = "false"
		}
		if parsed, err := driver.ParseDSN(c.DSN); err != nil || [5]string{parsed.User, parsed.Passwd, parsed.Addr, parsed.DBName, parsed.TLSConfig} != want {
			t.Errorf("%s: %+v, %v", text, parsed, err)
		}
	}
	for text, want := range map[string]string{
		"localhost/secret":         "has no scheme",
		"redis://u:secret@db/0":    `begins with "redis"`,
		"mysql://u:secret@db":      "write mysql://USER:PASSWORD@HOST:PORT/DATABASE",
		"mysql://u:sec%ret@db/app": "special characters as %XX",
		"sqlite:secret.db":         "needs an absolute path",
	} {
		if _, err := table.FromURL(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
