// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"crypto/tls"
	"io"
	"math"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/queueworker/operator/hack/operator"
)

// process is a running manager.
type process struct{ *operator.Manager }

// started are all managers of the suite: a spec goes on with the one of the spec
// before.
var started []*process

var _ = AfterEach(func() {
	if CurrentSpecReport().Failed() && len(started) > 0 {
		GinkgoWriter.Printf("log of the last manager:\n%s\n", started[len(started)-1].log())
	}
})

var _ = AfterSuite(func() {
	for _, m := range started {
		m.Kill()
	}
})

// startManager starts a manager on free ports that the API server reaches under
// localhost. It is killed when the suite ends, if no spec stops it.
func startManager(args ...string) *process {
	GinkgoHelper()
	endpoints, err := operator.FreeEndpoints()
	Expect(err).NotTo(HaveOccurred())
	m, err := endpoints.Start(binary, kubeconfig, filepath.Join(logs, strconv.Itoa(len(started))), args...)
	Expect(err).NotTo(HaveOccurred())
	started = append(started, &process{m})
	return started[len(started)-1]
}

// log is everything that the manager wrote.
func (m *process) log() string { return m.LastWords(math.MaxInt) }

// stop asks the manager to end and returns its exit code and how long it took.
func (m *process) stop() (code int, took time.Duration) {
	GinkgoHelper()
	began := time.Now()
	m.Signal(syscall.SIGTERM)
	Eventually(m.Ended()).Should(BeClosed())
	return m.ExitCode(), time.Since(began)
}

func (m *process) ready() int { return m.Probe("/readyz") }
func (m *process) alive() int { return m.Probe("/healthz") }

// scrape gets the metrics with the token, if there is one.
func (m *process) scrape(token string) (code int, body string) {
	GinkgoHelper()
	request, err := http.NewRequest(http.MethodGet, "https://"+m.Metrics+"/metrics", nil)
	Expect(err).NotTo(HaveOccurred())
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	insecure := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // the caller is what is tested here
	}}
	defer insecure.CloseIdleConnections()
	response, err := insecure.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return response.StatusCode, string(content)
}

// runToEnd runs a manager that is expected to refuse to start, and returns its
// exit code and what it printed that is no structured log line.
func runToEnd(args ...string) (code int, told []string) {
	GinkgoHelper()
	m := startManager(args...)
	Eventually(m.Ended()).Should(BeClosed(), m.log)
	for _, line := range strings.Split(strings.TrimSpace(m.log()), "\n") {
		if !strings.HasPrefix(line, "{") {
			told = append(told, line)
		}
	}
	return m.ExitCode(), told
}
