// SPDX-License-Identifier: Apache-2.0

package table

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	driver "github.com/go-sql-driver/mysql"

	"github.com/queueworker/operator/internal/fence/fenceconfig"
)

// FromURL reads a database's URL as applications write it: postgres://,
// mysql:// or mariadb://, with user, password, host, port and database, or
// sqlite:/path. An error never quotes the URL, since it holds a password.
func FromURL(text string) (Config, error) {
	scheme, rest, found := strings.Cut(text, ":")
	if !found {
		return Config{}, errors.New("the store's URL has no scheme: begin it with postgres://, mysql:// or sqlite:/")
	}
	switch scheme {
	case "postgres", "postgresql", "pgsql":
		return Config{Driver: fenceconfig.DriverPostgreSQL, DSN: "postgres:" + rest}, nil
	case "sqlite":
		path := strings.TrimPrefix(rest, "//")
		if !filepath.IsAbs(path) {
			return Config{}, errors.New("the store's URL: sqlite: needs an absolute path")
		}
		return Config{Driver: fenceconfig.DriverSQLite, DSN: path}, nil
	case "mysql", "mariadb":
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || strings.Trim(u.Path, "/") == "" {
			return Config{}, errors.New("the store's URL: write mysql://USER:PASSWORD@HOST:PORT/DATABASE, special characters as %XX")
		}
		return Config{Driver: fenceconfig.DriverMySQL, DSN: mysqlDSN(u)}, nil
	}
	return Config{}, fmt.Errorf("the store's URL begins with %q: expected postgres, mysql, mariadb or sqlite", scheme)
}

func mysqlDSN(u *url.URL) string {
	c := driver.NewConfig()
	c.User = u.User.Username()
	c.Passwd, _ = u.User.Password()
	c.Net, c.Addr = "tcp", u.Host
	if u.Port() == "" {
		c.Addr += ":3306"
	}
	c.DBName = strings.Trim(u.Path, "/")
	dsn := c.FormatDSN()
	if u.RawQuery != "" && strings.Contains(dsn, "?") {
		return dsn + "&" + u.RawQuery
	}
	if u.RawQuery != "" {
		return dsn + "?" + u.RawQuery
	}
	return dsn
}
