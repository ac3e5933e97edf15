// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/fenceconfig"
	"github.com/queueworker/operator/internal/fence/sidecar"
	"github.com/queueworker/operator/internal/freeport"
	"github.com/queueworker/operator/internal/metrics"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// scrapes of the programs, every 30 s for ten minutes in which things happen.
const scrapes, every = 21, 30 * time.Second

// end is the moment of the last scrape.
var end = epoch.Add((scrapes - 1) * every)

// scraped is what a Prometheus would know of a manager and a fence.
func scraped(t *testing.T) memory {
	t.Helper()
	stored := memory{}
	manager, pay := newManager(), newFence(t)
	for i := range scrapes {
		manager.live()
		pay.live(t, i)
		at := epoch.Add(time.Duration(i) * every)
		stored.scrape(t, manager.families(t), at, map[string]string{"job": "queueworker-operator", "pod": "manager-a"})
		// As the chart's PodMonitor labels it.
		stored.scrape(t, pay.families(t), at, map[string]string{"job": "fences", "pod": "pay-a", "namespace": "shop", "name": "pay"})
	}
	return stored
}

// manager is the operator's registry, in which all happens that can be counted.
type manager struct {
	registry *prometheus.Registry
	metrics  *metrics.Metrics
}

func newManager() *manager {
	registry := prometheus.NewRegistry()
	return &manager{registry, metrics.New(registry)}
}

func (m *manager) live() {
	qw := &v1alpha1.QueueWorker{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pay"}}
	m.metrics.SetStatus(qw, &v1alpha1.QueueWorkerStatus{ReadyReplicas: 1, Conditions: []metav1.Condition{
		{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPreflightRefused},
		{Type: v1alpha1.ConditionGraceHonored, Status: metav1.ConditionTrue},
	}})
	m.metrics.SetFindings("shop", "pay", []timeoutchain.Finding{{Rule: "thin-margin", Severity: timeoutchain.Warning}})
	m.metrics.SetPreflight("shop", "pay", metav1.ConditionFalse)
	m.metrics.SetMonitor("shop", "pay", string(v1alpha1.StateBusy))
	m.metrics.SetFence("shop", "pay", metav1.ConditionTrue)
	for _, reason := range v1alpha1.KillReasons() {
		m.metrics.Killed("shop", "pay", reason)
	}
	m.metrics.Drained("shop", "pay", 20*time.Second)
	m.metrics.Unobserved("shop", "pay", 1)
	m.metrics.Refused("thin-margin")
	m.metrics.RolloutStarted("RollingUpdate")
	m.metrics.CertificateExpires(end.Add(24 * time.Hour))
}

func (m *manager) families(t *testing.T) []*dto.MetricFamily {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// runningFence is a real sidecar with a database of its own.
type runningFence struct{ app, status string }

func newFence(t *testing.T) *runningFence {
	t.Helper()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }))
	t.Cleanup(provider.Close)
	var addresses [2]string
	for i := range addresses {
		address, err := freeport.TakeAddress()
		if err != nil {
			t.Fatal(err)
		}
		addresses[i] = address
	}
	config, err := fenceconfig.Decode([]byte(fmt.Sprintf(`
apiVersion: config.queueworker.dev/v1alpha1
kind: FenceConfig
bindAddress: %s
statusAddress: %s
httpSeconds: 5
store: {driver: SQLite, dsnFile: /not/read/here}
retention: {doneSeconds: 3600}
providers: [{name: stripe, url: %q}]
claims: [{name: mail}]
`, addresses[0], addresses[1], provider.URL)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	s := &sidecar.Sidecar{
		Config: config, DSN: filepath.Join(t.TempDir(), "fence.db"), Owner: "pay-a", Clock: fence.SystemClock{}, Log: slog.New(slog.DiscardHandler),
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	f := &runningFence{"http://" + addresses[0], "http://" + addresses[1]}
	for limit := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if response, err := http.Get(f.status + "/readyz"); err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return f
			}
		}
		if time.Now().After(limit) {
			t.Fatal("the fence does not get ready")
		}
	}
}

// live makes a call and its copy.
func (f *runningFence) live(t *testing.T, i int) {
	t.Helper()
	for range 2 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.app+"/stripe/charges", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Idempotency-Key", fmt.Sprint(i))
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusCreated {
			t.Fatalf("a call got %d", response.StatusCode)
		}
	}
}

func (f *runningFence) families(t *testing.T) []*dto.MetricFamily {
	t.Helper()
	response, err := http.Get(f.status + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return parsed(t, string(text))
}

// scrape stores families with the labels of their target, which give way to
// those of the metric (honor_labels).
func (m memory) scrape(t *testing.T, families []*dto.MetricFamily, at time.Time, target map[string]string) {
	t.Helper()
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			add := func(suffix string, value float64, more ...string) {
				b := labels.NewBuilder(labels.FromMap(target))
				for _, pair := range metric.GetLabel() {
					b.Set(pair.GetName(), pair.GetValue())
				}
				for i := 0; i < len(more); i += 2 {
					b.Set(more[i], more[i+1])
				}
				m.add(b.Set(model.MetricNameLabel, family.GetName()+suffix).Labels(), at, value)
			}
			switch {
			case metric.GetCounter() != nil:
				add("", metric.GetCounter().GetValue())
			case metric.GetGauge() != nil:
				add("", metric.GetGauge().GetValue())
			case metric.GetHistogram() != nil:
				h := metric.GetHistogram()
				bounds := map[float64]uint64{math.Inf(1): h.GetSampleCount()}
				for _, bucket := range h.GetBucket() {
					bounds[bucket.GetUpperBound()] = bucket.GetCumulativeCount()
				}
				for bound, count := range bounds {
					add("_bucket", float64(count), "le", model.SampleValue(bound).String())
				}
				add("_sum", h.GetSampleSum())
				add("_count", float64(h.GetSampleCount()))
			default:
				t.Errorf("%s is of a type that nobody expected", family.GetName())
			}
		}
	}
}

// names are the metrics that are there.
func (m memory) names() []string {
	var all []string
	for _, r := range m {
		all = append(all, r.labels.Get(model.MetricNameLabel))
	}
	slices.Sort(all)
	return slices.Compact(all)
}
