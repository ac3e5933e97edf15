// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"
)

func TestTheImageHasTheNameThatTheChartAsksFor(t *testing.T) {
	t.Chdir("../..")
	read, err := readChart()
	if err != nil {
		t.Fatal(err)
	}
	tag, err := tagOf("", read)
	if want := read.Image.Repository + ":" + read.AppVersion; err != nil || read.AppVersion == "" || tag.String() != want {
		t.Errorf("%s (%v), want %s", tag, err, want)
	}
}

func TestNames(t *testing.T) {
	of := chart{AppVersion: "0.1.0"}
	for wanted, want := range map[string]string{
		"registry.example/operator":        "registry.example/operator:0.1.0",
		"registry.example:5000/operator:1": "registry.example:5000/operator:1",
		"registry.example/a b":             "",
		"registry.example/operator@sha256": "",
	} {
		tag, err := tagOf(wanted, of)
		if want != "" && (err != nil || tag.String() != want) {
			t.Errorf("%s: %s (%v), want %s", wanted, tag, err, want)
		}
		if want == "" && (err == nil || !strings.Contains(err.Error(), wanted) || !strings.Contains(err.Error(), "REGISTRY/REPOSITORY:TAG")) {
			t.Errorf("%s: %v, want an error that names it and the form", wanted, err)
		}
	}
}

func TestTimes(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "0": 0, "1700000000": 1_700_000_000} {
		if got, err := created(text); err != nil || !got.Equal(time.Unix(want, 0)) {
			t.Errorf("%q: %s (%v), want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"yesterday", "-1", "1.5"} {
		if _, err := created(text); err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH="+text) {
			t.Errorf("%q: %v, want an error that names it", text, err)
		}
	}
}
