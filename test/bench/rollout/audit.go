// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/queueworker/operator/hack/operator"
)

// policy makes the API server note every write of what the manager writes, by
// whomever. It costs the manager and the bare client the same.
const policy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    verbs: [create, update, patch, delete, deletecollection]
    resources:
      - {group: queueworker.dev}
      - {group: apps, resources: [deployments]}
      - {group: policy}
      - {group: events.k8s.io}
      - {group: coordination.k8s.io}
      - {group: admissionregistration.k8s.io}
      - {group: "", resources: [events, secrets]}
  - level: None
`

// audit is the API server's own record of writes.
type audit struct {
	folder string
	offset int64 // of the log, up to which it was read
}

// entry is one write.
type entry struct {
	Verb string `json:"verb"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	StageTimestamp time.Time `json:"stageTimestamp"`
}

func newAudit() (*audit, error) {
	folder, err := os.MkdirTemp("", "queueworker-bench-")
	if err != nil {
		return nil, err
	}
	a := &audit{folder: folder}
	return a, os.WriteFile(a.policyFile(), []byte(policy), 0o600)
}

func (a *audit) policyFile() string { return filepath.Join(a.folder, "policy.yaml") }
func (a *audit) logFile() string    { return filepath.Join(a.folder, "audit.log") }
func (a *audit) remove() error      { return os.RemoveAll(a.folder) }

func (a *audit) apiServerArgs() []string {
	return []string{"--audit-policy-file=" + a.policyFile(), "--audit-log-path=" + a.logFile(), "--audit-log-maxsize=10000"}
}

// next reads what was noted since the last call.
func (a *audit) next() ([]entry, error) {
	file, err := os.Open(a.logFile())
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(a.offset, io.SeekStart); err != nil {
		return nil, err
	}
	var entries []entry
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return entries, nil // what is left of a line is not written out yet
		}
		if err != nil {
			return nil, err
		}
		a.offset += int64(len(line))
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
		entries = append(entries, e)
	}
}

// writes are the stored writes of one user, by what was written and then by
// object. Refused requests, such as conflicts, are counted apart.
type writes struct {
	byKind  map[string]map[string]int
	refused int
}

// countWrites counts a user's writes. Those of leading are none of them: the
// lease is renewed, and a new leader announced, whatever there is to do.
func countWrites(entries []entry, user string) writes {
	w := writes{byKind: map[string]map[string]int{}}
	for i := range entries {
		e := &entries[i]
		announced := e.ObjectRef.Resource == events && e.ObjectRef.Namespace == operator.Namespace
		if e.User.Username != user || e.ObjectRef.Resource == "leases" || announced {
			continue
		}
		if e.ResponseStatus.Code >= 300 {
			w.refused++
			continue
		}
		kind := e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			kind += "/" + e.ObjectRef.Subresource
		}
		if w.byKind[kind] == nil {
			w.byKind[kind] = map[string]int{}
		}
		w.byKind[kind][e.ObjectRef.Name]++
	}
	return w
}

const (
	deployments = "deployments"
	statuses    = "queueworkers/status"
	events      = "events"
)

func (w *writes) total(kind string) (sum int) {
	for _, n := range w.byKind[kind] {
		sum += n
	}
	return sum
}

func (w *writes) all() (sum int) {
	for kind := range w.byKind {
		sum += w.total(kind)
	}
	return sum
}

// most is the most writes that any one object took.
func (w *writes) most(kind string) (most int) {
	for _, n := range w.byKind[kind] {
		most = max(most, n)
	}
	return most
}
