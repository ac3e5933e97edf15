// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/queueworker/operator/internal/agent/supervise"
	"github.com/queueworker/operator/internal/agent/workdir"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// What makes no sense is refused with the name of what is wrong, before any
// process is started.
func TestRefusals(t *testing.T) {
	chain := timeoutchain.Wire{Version: 1, Runtime: timeoutchain.Laravel, GraceSeconds: 100}
	for name, c := range map[string]struct {
		chain       string
		command     []string
		supervision string
		beforeStop  string
		want        string
	}{
		"no command":           {chain.Encode(), nil, full, "", "no command"},
		"no chain":             {"", []string{"php"}, full, "", timeoutchain.WireEnv},
		"another chain":        {`{"v":9}`, []string{"php"}, full, "", "version 9"},
		"unknown supervision":  {chain.Encode(), []string{"php"}, "Half", "", `"Half"`},
		"a shell's words":      {chain.Encode(), []string{"sh", "-c", "php artisan queue:work"}, full, "", "SignalsOnly"},
		"before-stop, no list": {chain.Encode(), []string{"php"}, full, "php artisan down", "JSON list"},
		"before-stop, empty":   {chain.Encode(), []string{"php"}, full, "[]", "no program"},
		"before-stop, no time": {chain.Encode(), []string{"php"}, full, `["true"]`, "beforeStop"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(timeoutchain.WireEnv, c.chain)
			config := supervise.Config{Dir: workdir.Dir(t.TempDir()), Command: c.command}
			err := complete(&config, c.supervision, c.beforeStop)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, wanted something about %s", err, c.want)
			}
		})
	}
}

func TestOverrideLeavesOneOfEachName(t *testing.T) {
	got := override([]string{"A=1", "B=2", "A=3", "AB=4"}, []string{"A=5", "C=6"})
	if want := []string{"B=2", "AB=4", "A=5", "C=6"}; !slices.Equal(got, want) {
		t.Errorf("got %q, wanted %q", got, want)
	}
}
