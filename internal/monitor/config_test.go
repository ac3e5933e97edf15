// SPDX-License-Identifier: Apache-2.0

package monitor_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/monitor"
)

func sound() monitor.Config {
	return monitor.Config{
		Version: 1, Namespace: "shop", Name: "payments", Runtime: "Laravel", Connection: "redis", Driver: "Redis",
		Queues: []string{"payments", "default"}, IntervalSeconds: 30, StuckAfterSeconds: 270, RetryAfterSeconds: 90, MetricsAddress: ":9464",
	}
}

func TestConfigTravels(t *testing.T) {
	const text = `{"version":1,"namespace":"shop","name":"payments","runtime":"Laravel","connection":"redis","driver":"Redis",` +
		`"queues":["payments","default"],"intervalSeconds":30,"stuckAfterSeconds":270,"retryAfterSeconds":90,"metricsAddress":":9464"}`
	if got := sound().Encode(); got != text {
		t.Errorf("got %s\nwant %s", got, text)
	}
	back, err := monitor.DecodeConfig(text)
	if err != nil || !reflect.DeepEqual(back, sound()) {
		t.Errorf("%+v, %v", back, err)
	}
	if back.Interval() != 30*time.Second || back.Thresholds().StuckAfter != 270*time.Second {
		t.Errorf("interval %s, stuck after %s", back.Interval(), back.Thresholds().StuckAfter)
	}
}

func TestConfigIsReadStrictly(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*monitor.Config)
		want   string // empty = accepted
	}{
		"version 2":         {func(c *monitor.Config) { c.Version = 2 }, "version 2"},
		"generic":           {func(c *monitor.Config) { c.Runtime = "Generic" }, `runtime "Generic"`},
		"horizon":           {func(c *monitor.Config) { c.Runtime = "Horizon" }, ""},
		"no namespace":      {func(c *monitor.Config) { c.Namespace = "" }, "namespace"},
		"another URL":       {func(c *monitor.Config) { c.Name = "a/../b" }, "name"},
		"no interval":       {func(c *monitor.Config) { c.IntervalSeconds = 0 }, "intervalSeconds is 0, allowed are 1 to"},
		"an interval of 1":  {func(c *monitor.Config) { c.IntervalSeconds = 1 }, ""},
		"too long":          {func(c *monitor.Config) { c.StuckAfterSeconds = 31536001 }, "stuckAfterSeconds is 31536001"},
		"a year":            {func(c *monitor.Config) { c.StuckAfterSeconds = 31536000 }, ""},
		"negative":          {func(c *monitor.Config) { c.RetryAfterSeconds = -1 }, "retryAfterSeconds is -1"},
		"no reservation":    {func(c *monitor.Config) { c.RetryAfterSeconds = 0 }, ""},
		"no port":           {func(c *monitor.Config) { c.MetricsAddress = "localhost" }, "metricsAddress"},
		"port 0":            {func(c *monitor.Config) { c.MetricsAddress = ":0" }, "metricsAddress"},
		"port 65536":        {func(c *monitor.Config) { c.MetricsAddress = ":65536" }, "metricsAddress"},
		"port 65535":        {func(c *monitor.Config) { c.MetricsAddress = "[::1]:65535" }, ""},
		"no queues, driver": {func(c *monitor.Config) { c.Queues, c.Driver, c.Connection = nil, "", "" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			config := sound()
			c.change(&config)
			text := config.Encode()
			if config.Version != 1 {
				text = strings.Replace(text, `"version":1`, `"version":2`, 1)
			}
			_, err := monitor.DecodeConfig(text)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	for _, text := range []string{"", "{}", "[]", sound().Encode() + "{}", strings.Replace(sound().Encode(), `"name"`, `"naem"`, 1)} {
		if _, err := monitor.DecodeConfig(text); err == nil || !strings.Contains(err.Error(), monitor.ConfigEnv) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
