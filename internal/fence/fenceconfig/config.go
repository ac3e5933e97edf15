// SPDX-License-Identifier: Apache-2.0

// Package fenceconfig is the fence sidecar's configuration file: its type, its
// defaults, its strict decoder, and the providers that follow from it. It reads
// no flag, no environment and no database.
package fenceconfig

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"

	strictjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/queueworker/operator/internal/fence/store/sqlfence"
)

// The version and kind that a configuration file states.
const (
	APIVersion = "config.queueworker.dev/v1alpha1"
	Kind       = "FenceConfig"
)

// Config configures the sidecar. Durations are whole seconds.
type Config struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	// BindAddress is where the app finds the fence. It must be on loopback:
	// who reaches it can spend the app's money. Default 127.0.0.1:8470.
	BindAddress string `json:"bindAddress"`
	// StatusAddress serves /healthz, /readyz and /metrics. Default :8471.
	StatusAddress string `json:"statusAddress"`
	// HTTPSeconds is C of the timeout chain: how long the app's client waits
	// for one call. Required.
	HTTPSeconds int `json:"httpSeconds"`
	// ShutdownSeconds is how long calls under way may take to finish after
	// SIGTERM. 0: HTTPSeconds + 5.
	ShutdownSeconds int `json:"shutdownSeconds"`

	Store     Store      `json:"store"`
	Retention Retention  `json:"retention"`
	Upkeep    Upkeep     `json:"upkeep"`
	Providers []Provider `json:"providers"`
	Claims    []Claims   `json:"claims"`
}

// Store is the database that the whole application shares.
type Store struct {
	// Driver is PostgreSQL, MySQL (also for MariaDB) or SQLite.
	Driver string `json:"driver"`
	// DSNFile holds the connection string, or for SQLite is the database
	// itself. It is a file, so that a Secret can be mounted.
	DSNFile string `json:"dsnFile"`
	// Table is name or schema.name. Default queueworker_fence.
	Table string `json:"table"`
	// Schema is Managed (the fence creates and migrates the table) or Existing
	// (it verifies it and changes nothing). Default Managed.
	Schema string `json:"schema"`
}

// Retention is how long settled keys stay, from when they were settled.
type Retention struct {
	// DoneSeconds must reach past the last copy of a job that may still ask.
	// Required.
	DoneSeconds int `json:"doneSeconds"`
	// BodySeconds is how long bodies stay; behind it a replay says that the
	// body is gone. 0: DoneSeconds.
	BodySeconds int `json:"bodySeconds"`
	// ReleasedSeconds is for keys that had no effect. Default 86400.
	ReleasedSeconds int `json:"releasedSeconds"`
}

// Upkeep settles keys that no delivery will touch again.
type Upkeep struct {
	EverySeconds   int `json:"everySeconds"`   // between two rounds; default 10
	RecheckSeconds int `json:"recheckSeconds"` // between two lookups of one key; default 60
	Batch          int `json:"batch"`          // rows of one statement; default 100
}

// Default is what a file that leaves everything out says.
func Default() Config {
	return Config{
		BindAddress: "127.0.0.1:8470", StatusAddress: ":8471",
		Store:     Store{Table: "queueworker_fence", Schema: SchemaManaged},
		Retention: Retention{ReleasedSeconds: 86_400},
		Upkeep:    Upkeep{EverySeconds: 10, RecheckSeconds: 60, Batch: 100},
	}
}

// What Store.Driver and Store.Schema may be.
const (
	DriverPostgreSQL = "PostgreSQL"
	DriverMySQL      = "MySQL"
	DriverSQLite     = "SQLite"
	SchemaManaged    = "Managed"
	SchemaExisting   = "Existing"
)

// Decode reads a configuration file, YAML or JSON, and validates it. Unknown
// and repeated fields are errors. All that is wrong with the values is told at
// once.
func Decode(file []byte) (*Config, error) {
	text, err := yaml.YAMLToJSONStrict(file)
	if err != nil {
		return nil, fmt.Errorf("not YAML: %w", err)
	}
	c := Default()
	unknown, err := strictjson.UnmarshalStrict(text, &c)
	if err = errors.Join(append(unknown, err)...); err != nil {
		return nil, err
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.ShutdownSeconds == 0 {
		c.ShutdownSeconds = c.HTTPSeconds + 5
	}
	if c.Retention.BodySeconds == 0 {
		c.Retention.BodySeconds = c.Retention.DoneSeconds
	}
	return &c, nil
}

func (c *Config) validate() error {
	var all []error
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			all = append(all, fmt.Errorf(format, args...))
		}
	}
	wrong(c.APIVersion != APIVersion, "apiVersion: %q: set it to %s", c.APIVersion, APIVersion)
	wrong(c.Kind != Kind, "kind: %q: set it to %s", c.Kind, Kind)
	wrong(!onLoopback(c.BindAddress), "bindAddress: %q: must be a loopback address and a port, as 127.0.0.1:8470", c.BindAddress)
	_, _, err := net.SplitHostPort(c.StatusAddress)
	wrong(err != nil, "statusAddress: %q: must be host:port", c.StatusAddress)
	wrong(c.HTTPSeconds < 1, "httpSeconds: %d: must be the app's limit for one call, at least 1", c.HTTPSeconds)
	wrong(c.ShutdownSeconds < 0, "shutdownSeconds: %d: cannot be negative", c.ShutdownSeconds)
	wrong(c.ShutdownSeconds > 0 && c.ShutdownSeconds < c.HTTPSeconds,
		"shutdownSeconds: %d: a call may take httpSeconds, so at least %d", c.ShutdownSeconds, c.HTTPSeconds)
	s := c.Store
	wrong(s.Driver != DriverPostgreSQL && s.Driver != DriverMySQL && s.Driver != DriverSQLite,
		"store.driver: %q: must be %s, %s or %s", s.Driver, DriverPostgreSQL, DriverMySQL, DriverSQLite)
	wrong(!filepath.IsAbs(s.DSNFile), "store.dsnFile: %q: must be an absolute path", s.DSNFile)
	if _, err := sqlfence.ParseTable(s.Table); err != nil {
		all = append(all, fmt.Errorf("store.table: %w", err))
	}
	wrong(s.Schema != SchemaManaged && s.Schema != SchemaExisting, "store.schema: %q: must be %s or %s", s.Schema, SchemaManaged, SchemaExisting)
	r := c.Retention
	wrong(r.DoneSeconds < 1, "retention.doneSeconds: %d: must be at least 1, and reach past the last copy of a job that may still ask", r.DoneSeconds)
	wrong(r.BodySeconds < 0 || r.BodySeconds > r.DoneSeconds, "retention.bodySeconds: %d: must be from 0 to doneSeconds %d", r.BodySeconds, r.DoneSeconds)
	wrong(r.ReleasedSeconds < 0, "retention.releasedSeconds: %d: cannot be negative", r.ReleasedSeconds)
	u := c.Upkeep
	wrong(u.EverySeconds < 1 || u.RecheckSeconds < 1 || u.Batch < 1, "upkeep: everySeconds %d, recheckSeconds %d and batch %d must be at least 1",
		u.EverySeconds, u.RecheckSeconds, u.Batch)
	wrong(len(c.Providers)+len(c.Claims) == 0, "providers: at least one is needed, here or under claims")
	return errors.Join(append(append(all, c.validateProviders()...), c.validateClaims()...)...)
}

func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}
