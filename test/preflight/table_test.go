// SPDX-License-Identifier: Apache-2.0

//go:build linux

package preflight

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	judge "github.com/queueworker/operator/internal/preflight"
)

// leastDefects is how many defects the table must hold.
const leastDefects = 25

// TestTable breaks the application in each way, and does not break it in each
// twin. Every defect is found under its rule, and nothing else is said.
func TestTable(t *testing.T) {
	all := variants()
	if len(all) < leastDefects {
		t.Fatalf("only %d defects", len(all))
	}
	var score score
	t.Run("variants", func(t *testing.T) {
		for _, v := range all {
			t.Run(v.name, func(t *testing.T) {
				t.Parallel()
				broken := newApp(t)
				v.defect(broken)
				score.defect(t, v, broken.judge())
			})
			t.Run(v.name+", twin", func(t *testing.T) {
				t.Parallel()
				sound := newApp(t)
				if v.twin != nil {
					v.twin(sound)
				}
				score.twin(t, v, sound.judge())
			})
		}
	})
	t.Logf("\n%s", score.table())
}

// score counts what was found.
type score struct {
	sync.Mutex
	rows                        []string
	found, missed, twins, false int
}

func (s *score) defect(t *testing.T, v variant, verdict judge.Verdict) {
	t.Helper()
	s.Lock()
	defer s.Unlock()
	result := "found"
	if !saysOnly(verdict, v) {
		result = "MISSED"
		s.missed++
		t.Errorf("wanted %s, got\n%s", v.rule, text(verdict))
	} else {
		s.found++
	}
	s.rows = append(s.rows, fmt.Sprintf("%-62s %-34s %s", v.name, v.rule, result))
}

func (s *score) twin(t *testing.T, v variant, verdict judge.Verdict) {
	t.Helper()
	s.Lock()
	defer s.Unlock()
	s.twins++
	if alarms := alarms(verdict); len(alarms) > 0 || slices.Contains(unseen(verdict), v.rule) {
		s.false++
		t.Errorf("a false alarm:\n%s", text(verdict))
	}
}

func (s *score) table() string {
	slices.Sort(s.rows)
	return fmt.Sprintf("%s\n%d defects, %d twins: found %d, missed %d, false %d",
		strings.Join(s.rows, "\n"), len(s.rows), s.twins, s.found, s.missed, s.false)
}

// saysOnly says whether the rule is all that the verdict complains of.
func saysOnly(verdict judge.Verdict, v variant) bool {
	if v.unseen {
		return len(alarms(verdict)) == 0 && slices.Contains(unseen(verdict), v.rule)
	}
	for _, f := range verdict.Findings {
		if v.severity != "" && f.Rule == v.rule && f.Severity != v.severity {
			return false
		}
	}
	alarms := alarms(verdict)
	return len(alarms) > 0 && !slices.ContainsFunc(alarms, func(rule string) bool { return rule != v.rule })
}

// alarms are the rules of errors and warnings.
func alarms(verdict judge.Verdict) []string {
	return rules(verdict, func(f judge.Finding) bool { return f.Severity != judge.Unverified })
}

// unseen are the rules of what is not verified.
func unseen(verdict judge.Verdict) []string {
	return rules(verdict, func(f judge.Finding) bool { return f.Severity == judge.Unverified })
}

func rules(verdict judge.Verdict, keep func(judge.Finding) bool) []string {
	var ids []string
	for _, f := range verdict.Findings {
		if keep(f) {
			ids = append(ids, f.Rule)
		}
	}
	return ids
}

func text(verdict judge.Verdict) string {
	var b strings.Builder
	verdict.Print(&b)
	return b.String()
}
