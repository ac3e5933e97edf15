// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/queueworker/operator/internal/timeoutchain"
)

// ConfigEnv is the environment variable that carries [Config] into the monitor's
// container.
const ConfigEnv = "QUEUEWORKER_MONITOR"

// ConfigVersion is the version of [Config] that this package writes and reads.
const ConfigVersion = 1

// Config is what a monitor watches, and how. Nothing in it is secret.
type Config struct {
	Version   int    `json:"version"`
	Namespace string `json:"namespace"` // of the QueueWorker
	Name      string `json:"name"`

	Runtime    timeoutchain.Runtime `json:"runtime"`
	Connection string               `json:"connection,omitempty"` // empty = the application's default
	Driver     timeoutchain.Driver  `json:"driver,omitempty"`     // empty = the application's own configuration decides
	Queues     []string             `json:"queues,omitempty"`     // empty = the connection's own queue

	IntervalSeconds   int64 `json:"intervalSeconds"`
	StuckAfterSeconds int64 `json:"stuckAfterSeconds"`
	RetryAfterSeconds int64 `json:"retryAfterSeconds,omitempty"` // 0 = the application's own

	MetricsAddress string `json:"metricsAddress"`
}

// Encode renders the document; the same configuration always gives the same
// text.
func (c Config) Encode() string {
	c.Version = ConfigVersion
	text, err := json.Marshal(c)
	if err != nil { // texts and integers only: cannot happen
		return ""
	}
	return string(text)
}

// DecodeConfig reads the document strictly: what is not understood is an error.
func DecodeConfig(text string) (Config, error) {
	var c Config
	if err := timeoutchain.DecodeStrictly([]byte(text), &c); err != nil {
		return Config{}, fmt.Errorf("%s is not a monitor document: %w", ConfigEnv, err)
	}
	return c, c.validate()
}

func (c Config) validate() error {
	if c.Version != ConfigVersion {
		return fmt.Errorf("%s has version %d, this program reads version %d", ConfigEnv, c.Version, ConfigVersion)
	}
	if c.Runtime != timeoutchain.Laravel && c.Runtime != timeoutchain.Horizon {
		return fmt.Errorf("%s names runtime %q: only Laravel and Horizon have an application to ask", ConfigEnv, c.Runtime)
	}
	for _, field := range []struct{ name, value string }{{"namespace", c.Namespace}, {"name", c.Name}} {
		if field.value == "" || strings.ContainsAny(field.value, "/?#% ") { // it becomes part of a URL
			return fmt.Errorf("%s: %s is %q, wanted the QueueWorker's own", ConfigEnv, field.name, field.value)
		}
	}
	for _, field := range []struct {
		name  string
		value int64
		least int64
	}{
		{"intervalSeconds", c.IntervalSeconds, 1}, {"stuckAfterSeconds", c.StuckAfterSeconds, 1}, {"retryAfterSeconds", c.RetryAfterSeconds, 0},
	} {
		if field.value < field.least || field.value > timeoutchain.MaxSeconds {
			return fmt.Errorf("%s: %s is %d, allowed are %d to %d", ConfigEnv, field.name, field.value, field.least, int64(timeoutchain.MaxSeconds))
		}
	}
	return checkAddress(c.MetricsAddress)
}

// checkAddress wants a host, or none, and a port.
func checkAddress(address string) error {
	at := strings.LastIndexByte(address, ':')
	if at >= 0 {
		if port, err := strconv.ParseUint(address[at+1:], 10, 16); err == nil && port > 0 {
			return nil
		}
	}
	return fmt.Errorf(`%s: metricsAddress is %q, wanted an address such as ":9464"`, ConfigEnv, address)
}

// Interval is the time between two looks.
func (c Config) Interval() time.Duration { return time.Duration(c.IntervalSeconds) * time.Second }

// Thresholds are the limits that the state is judged by.
func (c Config) Thresholds() Thresholds {
	return Thresholds{StuckAfter: time.Duration(c.StuckAfterSeconds) * time.Second}
}
