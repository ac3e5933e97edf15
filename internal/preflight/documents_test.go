// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/queueworker/operator/internal/preflight"
	"github.com/queueworker/operator/internal/timeoutchain"
)

func TestDeclaredRoundTrip(t *testing.T) {
	three := int64(3)
	want := preflight.Declared{
		Version: preflight.DeclaredVersion, Connection: "redis", Queues: []string{"payments", "default"}, Supervision: preflight.Full,
		Tries: &three, Backoff: []int64{10, 60}, Fence: timeoutchain.FenceTable, FenceTable: "fence", FenceKey: "key",
	}
	got, err := preflight.DecodeDeclared(want.Encode())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v: got %+v, wanted %+v", err, got, want)
	}
}

func TestDeclaredIsReadStrictly(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "not a preflight document",
		`{"v":2,"supervision":"Full"}`:       "version 2",
		`{"v":1,"supervision":"Full","x":1}`: `unknown field "x"`,
		`{"v":1,"supervision":"Half"}`:       `"Half"`,
		`{"v":1,"supervision":"Full","fence":"table"}`: `fence "table"`,
		`{"v":1,"supervision":"Full"} {}`:              "something follows",
		`{"v":1,"supervision":"Full","tries":"3"}`:     "tries",
	} {
		if _, err := preflight.DecodeDeclared(text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), preflight.DeclaredEnv) {
			t.Errorf("%s: %v, wanted something about %s", text, err, want)
		}
	}
}

func TestRecordsAreReadStrictly(t *testing.T) {
	for text, want := range map[string]string{
		`not JSON`:                         "not JSON",
		`{"v":2,"kind":"end"}`:             "version 2",
		`{"v":1,"kind":"news","facts":{}}`: `unknown kind "news"`,
		`{"v":1,"kind":"class","stage":"light","facts":{"name":"A","colour":"red"}}`: `"colour"`,
		`{"v":1,"kind":"server-jobs","stage":"booted","facts":{"exists":"yes"}}`:     "server-jobs",
	} {
		var r preflight.Reading
		if err := r.Add([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, wanted something about %s", text, err, want)
		}
	}
	var r preflight.Reading
	if err := r.Add([]byte(`{"v":1,"kind":"failed","stage":"light","facts":{"class":"E","message":"m","file":"f","line":3}}`)); err != nil {
		t.Fatal(err)
	}
	if r.Ending.How != preflight.Failed || r.Ending.Failure.String() != "m (f:3)" {
		t.Errorf("ending %+v", r.Ending)
	}
}

func TestBriefFits(t *testing.T) {
	long := preflight.Finding{Rule: "r", Severity: timeoutchain.Error, Problem: strings.Repeat("é", 400)}
	for _, n := range []int{0, 1, 2, 3, 50} {
		for _, most := range []int{200, 1000, 4096} {
			v := preflight.Verdict{Outcome: preflight.Refused}
			for range n {
				v.Findings = append(v.Findings, long)
			}
			brief := v.Brief(most)
			lines := strings.Split(brief, "\n")
			if len(brief) > most || lines[0] != v.Heading() {
				t.Errorf("%d findings in %d: %d bytes, %q", n, most, len(brief), lines[0])
			}
			if n > 0 && !strings.HasPrefix(lines[1], "error r: é") {
				t.Errorf("the first finding is not told: %q", lines[1])
			}
			if strings.ContainsRune(brief, '�') || strings.Contains(brief, "?") {
				t.Errorf("half a character is left: %q", brief)
			}
			if told := strings.Count(brief, "error r"); told < n && !strings.Contains(lines[len(lines)-1], "more: kubectl logs") {
				t.Errorf("%d of %d are told, and nothing says that there are more", told, n)
			}
		}
	}
}

// A text of the application's cannot forge a line of the message.
func TestOneFindingIsOneLine(t *testing.T) {
	v := preflight.Verdict{Findings: []preflight.Finding{{Rule: "r", Severity: timeoutchain.Error, Problem: "a\nerror forged: b\r\x1b[31m"}}}
	if brief := v.Brief(4096); strings.Count(brief, "\n") != 1 || strings.ContainsRune(brief, '\x1b') {
		t.Errorf("%q", brief)
	}
}
