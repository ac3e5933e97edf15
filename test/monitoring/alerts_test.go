// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/template"
	"go.yaml.in/yaml/v3"
)

const alertsFile = "charts/queueworker-operator/files/alerts.yaml"

// rules are the alerts of the chart, strictly parsed, templates included.
func rules(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(filepath.Join(root, alertsFile), false, model.UTF8Validation, language, slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Fatal(err)
	}
	all := map[string]rulefmt.Rule{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			if _, twice := all[rule.Alert]; twice || rule.Alert == "" {
				t.Errorf("%s: the alert %q is there twice, or has no name", group.Name, rule.Alert)
			}
			all[rule.Alert] = rule
		}
	}
	return all
}

// suite is a file in the format of promtool test rules.
type suite struct {
	RuleFiles          []string       `yaml:"rule_files"`
	EvaluationInterval model.Duration `yaml:"evaluation_interval"`
	Tests              []struct {
		Name        string         `yaml:"name"`
		Interval    model.Duration `yaml:"interval"`
		InputSeries []struct {
			Series string `yaml:"series"`
			Values string `yaml:"values"`
		} `yaml:"input_series"`
		AlertRuleTest []struct {
			EvalTime  model.Duration `yaml:"eval_time"`
			Alertname string         `yaml:"alertname"`
			ExpAlerts []fired        `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	} `yaml:"tests"`
}

// fired is an alert that would be sent.
type fired struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

func TestAlerts(t *testing.T) {
	file, err := os.Open("testdata/alerts_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var s suite
	decoder := yaml.NewDecoder(file)
	decoder.KnownFields(true)
	if err := decoder.Decode(&s); err != nil {
		t.Fatal(err)
	}
	if want := []string{"../../../" + alertsFile}; !slices.Equal(s.RuleFiles, want) {
		t.Errorf("rule_files are %v, want %v", s.RuleFiles, want)
	}
	all, firing, silent := rules(t), map[string]bool{}, map[string]bool{}
	for _, test := range s.Tests {
		t.Run(test.Name, func(t *testing.T) {
			stored := memory{}
			for _, input := range test.InputSeries {
				stored.scraped(t, input.Series, input.Values, time.Duration(test.Interval))
			}
			for _, check := range test.AlertRuleTest {
				rule, known := all[check.Alertname]
				if !known {
					t.Fatalf("there is no alert %s", check.Alertname)
				}
				got := run(t, rule, stored, time.Duration(s.EvaluationInterval), time.Duration(check.EvalTime))
				compare(t, check.Alertname+" at "+check.EvalTime.String(), got, check.ExpAlerts)
				if len(check.ExpAlerts) > 0 {
					firing[check.Alertname] = true
				} else {
					silent[check.Alertname] = true
				}
			}
		})
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !firing[name] || !silent[name] {
			t.Errorf("%s: seen firing %t, seen silent %t; want both", name, firing[name], silent[name])
		}
	}
}

// compare looks at the annotations only where some are expected, and leaves the
// link out.
func compare(t *testing.T, what string, got, want []fired) {
	t.Helper()
	for i := range got {
		delete(got[i].Annotations, "runbook_url")
		delete(got[i].Annotations, "description")
		if i < len(want) && want[i].Annotations == nil {
			got[i].Annotations = nil
		}
	}
	if diff := cmp.Diff(want, got); diff != "" && len(got)+len(want) > 0 {
		t.Errorf("%s (want -, got +):\n%s", what, diff)
	}
}

// active is an alert that holds, and perhaps fires.
type active struct {
	fired
	since, gone time.Time // gone: since when it holds no more and fires all the same
	fires       bool
}

// run evaluates an alert from the epoch on, as Prometheus' rule manager would.
func run(t *testing.T, rule rulefmt.Rule, stored memory, every, until time.Duration) []fired {
	t.Helper()
	engine, alerts := newEngine(), map[string]*active{}
	for now := epoch; !now.After(epoch.Add(until)); now = now.Add(every) {
		found, err := ask(t.Context(), engine, stored, rule.Expr, now)
		if err != nil {
			t.Fatalf("%s: %v", rule.Alert, err)
		}
		holding := map[string]bool{}
		for _, of := range found {
			next := describe(t, rule, of, now)
			key := labels.FromMap(next.Labels).String()
			holding[key] = true
			if alerts[key] == nil {
				alerts[key] = &active{since: now}
			}
			alerts[key].fired, alerts[key].gone = next, time.Time{}
		}
		for key, alert := range alerts {
			switch {
			case holding[key]:
				alert.fires = alert.fires || now.Sub(alert.since) >= time.Duration(rule.For)
				continue
			case alert.gone.IsZero():
				alert.gone = now
			}
			if !alert.fires || now.Sub(alert.gone) >= time.Duration(rule.KeepFiringFor) {
				delete(alerts, key)
			}
		}
	}
	var firing []fired
	for _, key := range slices.Sorted(maps.Keys(alerts)) {
		if alerts[key].fires {
			firing = append(firing, alerts[key].fired)
		}
	}
	return firing
}

// describe fills in the templates of labels and annotations.
func describe(t *testing.T, rule rulefmt.Rule, of promql.Sample, now time.Time) fired {
	t.Helper()
	data := template.AlertTemplateData(of.Metric.Map(), nil, "", of)
	nothing := func(context.Context, string, time.Time) (promql.Vector, error) { return nil, nil }
	expand := func(text string) string {
		text = "{{$labels := .Labels}}{{$value := .Value}}" + text
		expanded, err := template.NewTemplateExpander(t.Context(), text, rule.Alert, data, model.TimeFromUnixNano(now.UnixNano()), nothing, &url.URL{}, nil).Expand()
		if err != nil {
			t.Errorf("%s: %v", rule.Alert, err)
		}
		return expanded
	}
	next := fired{Labels: of.Metric.Map(), Annotations: map[string]string{}}
	delete(next.Labels, model.MetricNameLabel)
	for name, text := range rule.Labels {
		next.Labels[name] = expand(text)
	}
	for name, text := range rule.Annotations {
		next.Annotations[name] = expand(text)
	}
	return next
}

// Each alert says how bad it is, what it means and what to do, and where it goes
// on the page of runbooks.
func TestAlertsAreExplained(t *testing.T) {
	runbooks, err := os.ReadFile(filepath.Join(root, "docs/runbooks.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := rules(t)
	for name, rule := range all {
		if s := rule.Labels["severity"]; s != "warning" && s != "critical" {
			t.Errorf("%s: severity %q", name, s)
		}
		if want := "https://github.com/queueworker/operator/blob/main/docs/runbooks.md#" + strings.ToLower(name); rule.Annotations["runbook_url"] != want {
			t.Errorf("%s: the runbook is %q, want %q", name, rule.Annotations["runbook_url"], want)
		}
		if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
			t.Errorf("%s: no summary or no description", name)
		}
		if !strings.Contains(string(runbooks), "\n## "+name+"\n") {
			t.Errorf("docs/runbooks.md has no section %s", name)
		}
		// An alert that flips with each scrape is one that is muted.
		if rule.For == 0 && rule.KeepFiringFor == 0 {
			t.Errorf("%s: neither for nor keep_firing_for", name)
		}
	}
	for line := range strings.Lines(string(runbooks)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok && all[name].Alert == "" {
			t.Errorf("docs/runbooks.md has a section %s, and there is no such alert", name)
		}
	}
}
