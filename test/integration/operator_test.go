// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/controllers"
	install "github.com/queueworker/operator/hack/operator"
	operatormetrics "github.com/queueworker/operator/internal/metrics"
	"github.com/queueworker/operator/internal/workload"
)

// agentImage is the image of the agent that the operator adds to its workers.
const agentImage = "registry.example/operator:1.0.0"

// operatorProcess is one run of the operator. It counts what it writes.
type operatorProcess struct {
	stop    func()
	writes  *writeLog
	metrics *prometheus.Registry // the operator's own
}

// startOperator starts the operator as the real manager does; render replaces
// the rendering of pods where it is not nil, as another version would. It looks
// at everything again each second: a resync must write nothing.
func startOperator(render workload.Renderer) *operatorProcess {
	writes := &writeLog{}
	restConfig := controlPlane.RESTConfig()
	restConfig.Impersonate = rest.ImpersonationConfig{UserName: install.User}
	restConfig.Wrap(writes.wrap)
	options := ctrl.Options{
		Scheme:     scheme,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)}, // one process runs it several times
	}
	options.Cache.SyncPeriod = ptr.To(1200 * time.Millisecond) // jitter takes a tenth off, and 1 s is the least
	controllers.Prepare(restConfig, &options)
	mgr, err := ctrl.NewManager(restConfig, options)
	Expect(err).NotTo(HaveOccurred())
	registry := prometheus.NewRegistry()
	Expect(controllers.Setup(mgr, controllers.Options{
		MaxConcurrentReconciles: 4, AgentImage: agentImage, Render: render, Metrics: operatormetrics.New(registry),
	})).To(Succeed())

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer GinkgoRecover()
		defer close(ended)
		Expect(mgr.Start(ctx)).To(Succeed())
	}()
	return &operatorProcess{
		stop:    sync.OnceFunc(func() { cancel(); Eventually(ended).Should(BeClosed()) }),
		writes:  writes,
		metrics: registry,
	}
}

// counted is the value of one of the operator's counters or gauges, or how often one of
// its histograms was fed, for a QueueWorker and, where it is not empty, a reason.
func (o *operatorProcess) counted(metric string, qw *v1alpha1.QueueWorker, reason string) float64 {
	GinkgoHelper()
	families, err := o.metrics.Gather()
	Expect(err).NotTo(HaveOccurred())
	var total float64
	for _, family := range families {
		if family.GetName() != metric {
			continue
		}
		for _, series := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range series.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if labels["namespace"] == qw.Namespace && labels["name"] == qw.Name && (reason == "" || labels["reason"] == reason) {
				total += series.GetCounter().GetValue() + series.GetGauge().GetValue() + float64(series.GetHistogram().GetSampleCount())
			}
		}
	}
	return total
}

// gauged is the value of one of the operator's gauges for a QueueWorker; nil =
// there is no such series.
func (o *operatorProcess) gauged(metric string, qw *v1alpha1.QueueWorker) *float64 {
	GinkgoHelper()
	families, err := o.metrics.Gather()
	Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		for _, series := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range series.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if family.GetName() == metric && labels["namespace"] == qw.Namespace && labels["name"] == qw.Name {
				return ptr.To(series.GetGauge().GetValue())
			}
		}
	}
	return nil
}

// looksAt waits until so many QueueWorkers were looked at from now on: that
// nothing was written says little before.
func looksAt(workers int) {
	GinkgoHelper()
	before := reconciles()
	Eventually(reconciles).Should(BeNumerically(">=", before+float64(2*workers)))
}

// reconciles is how often any operator of this process has looked.
func reconciles() float64 {
	families, err := metrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	var total float64
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, series := range family.GetMetric() {
			for _, label := range series.GetLabel() {
				if label.GetName() == "controller" && label.GetValue() == "queueworker" {
					total += series.GetCounter().GetValue()
				}
			}
		}
	}
	return total
}

// writeLog records each request that is no read.
type writeLog struct {
	mu       sync.Mutex
	requests []string
}

func (l *writeLog) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if request.Method != http.MethodGet {
			l.mu.Lock()
			l.requests = append(l.requests, fmt.Sprintf("%s %s", request.Method, request.URL.Path))
			l.mu.Unlock()
		}
		return next.RoundTrip(request)
	})
}

// in lists the writes in a namespace whose path ends with the suffix; events
// are never counted.
func (l *writeLog) in(namespace, suffix string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for _, request := range l.requests {
		if strings.Contains(request, "/namespaces/"+namespace+"/") && strings.HasSuffix(request, suffix) && !strings.Contains(request, "/events") {
			found = append(found, request)
		}
	}
	return found
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
