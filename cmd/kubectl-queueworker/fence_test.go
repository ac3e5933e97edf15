// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/table"
)

// parked is a table with a key that waits for a person, and its URL.
func parked(t *testing.T, quiet time.Duration) (store table.Table, url string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fence.db")
	store, err := table.Open(t.Context(), table.Config{Driver: "SQLite", DSN: file, Table: "queueworker_fence"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	token := fence.NewToken()
	if _, err = store.Claim(t.Context(), fence.Statement{Op: fence.OpClaim, Key: key, New: token, Owner: "pod-1", Lease: time.Minute, Quiet: quiet}); err != nil {
		t.Fatal(err)
	}
	for _, op := range []fence.Op{fence.OpUnknown, fence.OpPark} {
		if applied, err := store.Apply(t.Context(), fence.Statement{Op: op, Key: key, Token: token, Reason: "no reply: timeout"}); !applied || err != nil {
			t.Fatalf("%s: %t %v", op, applied, err)
		}
	}
	return store, "sqlite:" + file
}

var key = fence.Key{Scope: "stripe", ID: "order 1/charge"}

// say runs the program.
func say(args ...string) (code int, text string) {
	command := newCommand()
	var output bytes.Buffer
	command.SetOut(&output)
	command.SetErr(&output)
	command.SetArgs(args)
	return run(command), output.String()
}

var tokenPattern = regexp.MustCompile(`--token ([0-9a-f]{32})`)

func TestFenceResolves(t *testing.T) {
	store, url := parked(t, time.Microsecond)
	t.Setenv(storeVariable, url)
	code, text := say("fence", "list")
	if code != 0 || !strings.Contains(text, "stripe   order 1/charge   needs_review   0s    yes     no reply: timeout") {
		t.Errorf("list: %d\n%s", code, text)
	}
	var entries []struct{ Key, State, Token string }
	if code, text = say("fence", "list", "-o", "json", "--scope", "stripe"); code != 0 || json.Unmarshal([]byte(text), &entries) != nil || len(entries) != 1 || entries[0].Key != key.ID {
		t.Errorf("list as JSON: %d\n%s", code, text)
	}
	if code, text = say("fence", "list", "--scope", "other"); code != 0 || text != "Every key is settled or at work.\n" {
		t.Errorf("nothing to list: %d\n%s", code, text)
	}
	code, text = say("fence", "show", "stripe", key.ID)
	shown := tokenPattern.FindStringSubmatch(text)
	if code != 0 || shown == nil || !strings.Contains(text, "resolve stripe 'order 1/charge' --token") || !strings.Contains(text, "pod-1") {
		t.Fatalf("show: %d\n%s", code, text)
	}
	resolve := []string{"fence", "resolve", "stripe", key.ID, "--as", "done", "--provider-id", "ch_1", "--why", "seen in the dashboard", "--who", "ann"}
	if code, text = say(append(resolve, "--token", strings.Repeat("0", 32))...); code != 2 || !strings.Contains(text, "another attempt has had the key since it was shown") {
		t.Errorf("another attempt's token: %d\n%s", code, text)
	}
	if code, text = say(append(resolve, "--token", shown[1])...); code != 0 || text != "stripe order 1/charge is done.\n" {
		t.Errorf("resolve: %d\n%s", code, text)
	}
	row, err := store.Read(t.Context(), key)
	if err != nil || row.State != fence.Done || row.SettledWho != "ann" || row.SettledBy != fence.ByPerson || row.Reason != "seen in the dashboard" || row.Response.ProviderID != "ch_1" {
		t.Errorf("the row: %+v, %v", row, err)
	}
	if code, text = say(append(resolve, "--token", shown[1])...); code != 2 || !strings.Contains(text, "the key is done already, settled by person ann") {
		t.Errorf("once more: %d\n%s", code, text)
	}
}

func TestFenceReleasesOnlyWhenQuiet(t *testing.T) {
	store, url := parked(t, time.Hour)
	row, err := store.Read(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	release := []string{"fence", "--store", url, "resolve", "stripe", key.ID, "--as", "released", "--token", row.Token.String(), "--why", "support found nothing", "--who", "ann"}
	if code, text := say(release...); code != 2 || !strings.Contains(text, "may still act until") || !strings.Contains(text, "(in 59m)") {
		t.Errorf("before quiet: %d\n%s", code, text)
	}
	if row, err = store.Read(t.Context(), key); err != nil || row.State != fence.NeedsReview {
		t.Errorf("the row: %+v, %v", row, err)
	}
	if code, text := say(append(release, "--force")...); code != 0 || text != "stripe order 1/charge is released.\n" {
		t.Errorf("forced: %d\n%s", code, text)
	}
	if row, err = store.Read(t.Context(), key); err != nil || row.State != fence.Released || row.Generation != 1 || row.Reason != "forced before quiet: support found nothing" {
		t.Errorf("the row: %+v, %v", row, err)
	}
}

func TestFenceTeaches(t *testing.T) {
	_, url := parked(t, time.Hour)
	missing := "sqlite:" + filepath.Join(t.TempDir(), "none.db")
	token := strings.Repeat("0", 32)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no store":        {[]string{"list"}, "Set " + storeVariable + " or --store"},
		"no URL":          {[]string{"list", "--store", "localhost"}, "has no scheme"},
		"no table":        {[]string{"list", "--store", missing}, "cannot be used"},
		"output":          {[]string{"list", "--store", url, "-o", "yaml"}, "expected text or json"},
		"limit":           {[]string{"list", "--store", url, "--limit", "0"}, "expected at least 1"},
		"no key":          {[]string{"show", "stripe", "other", "--store", url}, `there is no key "other" of "stripe"`},
		"resolve, no key": {[]string{"resolve", "stripe", "other", "--store", url, "--as", "released", "--why", "w", "--token", token}, `there is no key "other"`},
		"as":              {[]string{"resolve", "s", "k", "--as", "free"}, "expected done (the effect happened) or released"},
		"no id":           {[]string{"resolve", "s", "k", "--as", "done", "--why", "w", "--token", token}, "--provider-id is required"},
		"id of nothing":   {[]string{"resolve", "s", "k", "--as", "released", "--provider-id", "x"}, "says that there is none"},
		"no why":          {[]string{"resolve", "s", "k", "--as", "released", "--token", token}, "--why is required"},
		"no token":        {[]string{"resolve", "s", "k", "--as", "released", "--why", "w"}, "take the one of `kubectl queueworker fence show s k`"},
		"forced effect":   {[]string{"resolve", "s", "k", "--as", "done", "--provider-id", "x", "--force"}, "--force is for --as released"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(storeVariable, "")
			if code, text := say(append([]string{"fence"}, c.args...)...); code != 2 || !strings.Contains(text, c.want) {
				t.Errorf("%d\n%s\nwant …%s…", code, text, c.want)
			}
		})
	}
}
