// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/queueworker/operator/hack/operator"
)

// clockTicks is how many ticks of /proc are a second; Linux tells user space
// 100 whatever it uses itself.
const clockTicks = 100

// Manager is the running manager.
type Manager struct {
	*operator.Manager
	lab *Lab
}

// StartManager starts the manager's binary and returns once it says that it is
// ready.
func (l *Lab) StartManager(ctx context.Context) (*Manager, error) {
	process, err := l.endpoints.Start(l.binary, l.kubeconfig, filepath.Join(l.Cluster.LogsDir(), "manager.log"))
	if err != nil {
		return nil, err
	}
	m := &Manager{process, l}
	if err := m.WaitUntilReady(ctx); err != nil {
		return nil, errors.Join(err, m.Stop())
	}
	return m, nil
}

// Stop ends the manager as Kubernetes would.
func (m *Manager) Stop() error {
	if m == nil {
		return nil
	}
	return m.Manager.Stop()
}

// Memory is the resident set, in MiB: now, and the most it ever was.
func (m *Manager) Memory() (now, peak float64) {
	file := fmt.Sprintf("/proc/%d/status", m.PID())
	return mebibytes(field(file, "VmRSS")), mebibytes(field(file, "VmHWM"))
}

func mebibytes(kibibytes string) float64 {
	value, _ := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(kibibytes, "kB")), 64)
	return value / 1024
}

// CPU is the processor time spent so far.
func (m *Manager) CPU() time.Duration {
	line := field(fmt.Sprintf("/proc/%d/stat", m.PID()), "")
	_, after, _ := strings.Cut(line, ") ") // the name may hold spaces
	fields := strings.Fields(after)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * time.Second / clockTicks
}

// Reconciles is how often a QueueWorker was looked at so far.
func (m *Manager) Reconciles(ctx context.Context) (float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+m.Metrics+"/metrics", http.NoBody)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+m.lab.Cluster.RESTConfig().BearerToken)
	ours := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	defer ours.CloseIdleConnections()
	response, err := ours.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("the manager's metrics: %s", response.Status)
	}
	var total float64
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if strings.HasPrefix(name, `controller_runtime_reconcile_total{controller="queueworker"`) {
			count, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0, err
			}
			total += count
		}
	}
	return total, lines.Err()
}
