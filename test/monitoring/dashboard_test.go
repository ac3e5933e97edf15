// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/timeoutchain"
)

const dashboardFile = "charts/queueworker-operator/files/dashboard.json"

type panel struct {
	ID      int    `json:"id"`
	Type    string `json:"type"`
	Title   string `json:"title"`
	GridPos struct{ H, W, X, Y int }
	Targets []struct {
		Expr         string `json:"expr"`
		LegendFormat string `json:"legendFormat"`
	} `json:"targets"`
}

type dashboard struct {
	Panels     []panel `json:"panels"`
	Templating struct {
		List []struct {
			Name  string          `json:"name"`
			Type  string          `json:"type"`
			Query json.RawMessage `json:"query"`
		} `json:"list"`
	} `json:"templating"`
}

func loadDashboard(t *testing.T) dashboard {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, dashboardFile))
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(content, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// filled puts into a query what Grafana would: all of the variables, and a
// window of four scrapes.
func filled(query string) string {
	return strings.NewReplacer("$namespace", ".*", "$name", ".*", "$__rate_interval", "2m").Replace(query)
}

// unseen are metrics that nothing here brings about, with their labels: those of
// controller-runtime and client-go count in a manager that runs, which the
// integration tests scrape, and failures begin with the first one.
var unseen = map[string][]string{
	"controller_runtime_reconcile_total":               {"controller", "result"},
	"controller_runtime_reconcile_errors_total":        {"controller"},
	"controller_runtime_reconcile_time_seconds_bucket": {"controller", "le"},
	"workqueue_depth":                        {"controller", "name", "priority"},
	"leader_election_master_status":          {"name"},
	"queueworker_fence_store_failures_total": {"statement", "namespace", "name"},

	// Those of monitors and of the workers' agents need an application;
	// TestTheAgentsSayWhatIsRead holds them to the programs.
	"queueworker_queue_jobs":                          {"queue", "status", "namespace", "queueworker"},
	"queueworker_queue_depth":                         {"queue", "namespace", "queueworker"},
	"queueworker_queue_oldest_seconds":                {"queue", "namespace", "queueworker"},
	"queueworker_queue_state":                         {"state", "namespace", "queueworker"},
	"queueworker_failed_jobs_total":                   {"class", "error", "namespace", "queueworker"},
	"queueworker_failed_jobs_stored":                  {"namespace", "queueworker"},
	"queueworker_monitor_up":                          {"namespace", "queueworker"},
	"queueworker_monitor_last_look_timestamp_seconds": {"namespace", "queueworker"},
	"queueworker_monitor_script_restarts_total":       {"cause", "namespace", "queueworker"},
	"queueworker_worker_heartbeat_age_seconds":        {"namespace", "queueworker"},
	"queueworker_worker_job_seconds":                  {"class", "namespace", "queueworker"},
	"queueworker_worker_jobs_total":                   {"class", "result", "namespace", "queueworker"},
	"queueworker_worker_job_duration_seconds_bucket":  {"class", "le", "namespace", "queueworker"},
	"queueworker_worker_redeliveries_total":           {"class", "namespace", "queueworker"},
	"queueworker_worker_recycles_total":               {"cause", "namespace", "queueworker"},
	"queueworker_worker_watchdog_kills_total":         {"namespace", "queueworker"},
}

// Every query of the dashboard runs, and shows something, on what the programs
// really tell.
func TestTheDashboardShowsSomething(t *testing.T) {
	stored, engine, asked := scraped(t), newEngine(), 0
	for _, p := range loadDashboard(t).Panels {
		for _, target := range p.Targets {
			query := filled(target.Expr)
			asked++
			if strings.Contains(query, "$") {
				t.Errorf("%s: %s has a variable that nobody fills in", p.Title, target.Expr)
			}
			result, err := ask(t.Context(), engine, stored, query, end)
			if err != nil {
				t.Errorf("%s: %s: %v", p.Title, query, err)
				continue
			}
			if usesUnseen(t, query) {
				continue
			}
			if len(result) == 0 {
				t.Errorf("%s: %s shows nothing", p.Title, query)
			}
			for _, label := range legend.FindAllStringSubmatch(target.LegendFormat, -1) {
				if len(result) > 0 && result[0].Metric.Get(label[1]) == "" {
					t.Errorf("%s: the legend names %s, the result of %s has no such label", p.Title, label[1], query)
				}
			}
		}
	}
	if asked < 20 {
		t.Errorf("only %d queries: is the file read?", asked)
	}
}

var legend = regexp.MustCompile(`{{\s*(\w+)\s*}}`)

// Alerts hold only when something is wrong, so a result proves nothing: each
// metric and label that they read must be there.
func TestAlertsReadWhatIsThere(t *testing.T) {
	stored := scraped(t)
	for name, rule := range rules(t) {
		reads(t, name, rule.Expr, stored)
	}
	for _, p := range loadDashboard(t).Panels {
		for _, target := range p.Targets {
			reads(t, p.Title, filled(target.Expr), stored)
		}
	}
}

// reads checks each selector, and the labels by which it is summed up.
func reads(t *testing.T, what, query string, stored memory) {
	t.Helper()
	expr, err := language.ParseExpr(query)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	var grouping []string
	known := map[string]bool{}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			has := stored.labelsOf(node.Name)
			if has == nil {
				t.Errorf("%s: nobody tells %s", what, node.Name)
			}
			for _, label := range has {
				known[label] = true
			}
			for _, matcher := range node.LabelMatchers {
				if !slices.Contains(has, matcher.Name) {
					t.Errorf("%s: %s has no label %s, it has %v", what, node.Name, matcher.Name, has)
				}
			}
		case *parser.AggregateExpr:
			grouping = append(grouping, node.Grouping...)
		}
		return nil
	})
	for _, label := range grouping {
		if !known[label] {
			t.Errorf("%s: nothing in it has the label %s", what, label)
		}
	}
}

func (m memory) labelsOf(name string) []string {
	if known, ok := unseen[name]; ok {
		return append([]string{model.MetricNameLabel}, known...)
	}
	for _, r := range m {
		if r.labels.Get(model.MetricNameLabel) == name {
			var all []string
			r.labels.Range(func(l labels.Label) { all = append(all, l.Name) })
			return all
		}
	}
	return nil
}

func usesUnseen(t *testing.T, query string) bool {
	t.Helper()
	found := false
	inspect(t, query, func(selector *parser.VectorSelector) {
		_, is := unseen[selector.Name]
		found = found || is
	})
	return found
}

// A reason or a state that an alert names must exist, or it never fires.
func TestAlertsNameValuesThatExist(t *testing.T) {
	values := map[string][]string{
		"severity":   {string(timeoutchain.Error)},
		"state":      {"wanted", "ready", fence.Unknown.String(), fence.NeedsReview.String()},
		"reason":     {v1alpha1.ReasonPreflightRefused, v1alpha1.ReasonChainBroken},
		"controller": {"queueworker"},
		"status":     {"expired"},
	}
	for _, state := range v1alpha1.States() {
		values["state"] = append(values["state"], string(state))
	}
	for _, reason := range v1alpha1.KillReasons() {
		values["reason"] = append(values["reason"], string(reason))
	}
	for name, rule := range rules(t) {
		inspect(t, rule.Expr, func(selector *parser.VectorSelector) {
			for _, matcher := range selector.LabelMatchers {
				if matcher.Name == model.MetricNameLabel {
					continue
				}
				for _, value := range strings.Split(matcher.Value, "|") {
					if !slices.Contains(values[matcher.Name], value) {
						t.Errorf("%s: %s=%q is no value that is told", name, matcher.Name, value)
					}
				}
			}
		})
	}
}

// inspect shows each selector of a query.
func inspect(t *testing.T, query string, show func(*parser.VectorSelector)) {
	t.Helper()
	expr, err := language.ParseExpr(query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			show(selector)
		}
		return nil
	})
}

// Panels that lie over each other, or share an id, are drawn by chance.
func TestPanelsLieSideBySide(t *testing.T) {
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range loadDashboard(t).Panels {
		if ids[p.ID] {
			t.Errorf("%s: the id %d is there twice", p.Title, p.ID)
		}
		ids[p.ID] = true
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s asks for nothing", p.Title)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s lies over %s, or outside", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}

// The dashboard leaves out nothing that is told, but what is named here.
func TestEveryMetricIsUsed(t *testing.T) {
	unused := []string{
		"queueworker_fence_claims_total", "queueworker_fence_grants_total", "queueworker_fence_lookups_total", "queueworker_fence_passed_total",
		"queueworker_fence_posts_total", "queueworker_fence_wait_seconds",
	}
	content, err := os.ReadFile(filepath.Join(root, dashboardFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range scraped(t).names() {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		if !strings.Contains(string(content), base) && !slices.Contains(unused, base) {
			t.Errorf("no panel shows %s", base)
		}
	}
}
