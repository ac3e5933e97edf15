// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/queueworker/operator/api/v1alpha1"
)

// memory is what is remembered between two looks at a QueueWorker. All of it
// may be lost: it only saves requests.
type memory struct {
	mu       sync.Mutex
	byWorker map[types.NamespacedName]*known
}

// known is what is remembered of one QueueWorker. Only one goroutine at a time
// handles a QueueWorker, so it needs no lock.
type known struct {
	reported      reported
	deployment    written
	held          written // the Deployment while its wanted form is refused
	budget        written
	statusWritten time.Time

	judged judged
	trial  written // wanted is its name

	monitor   map[string]*written // by kind
	consuming string              // the last reason of the condition Consuming

	looked    bool // at its pods, by this process
	lastDrain *v1alpha1.LastDrain
	lastKill  *v1alpha1.LastKill
}

// written is what is remembered of one object after a write.
type written struct {
	ahead   ahead    // the object as the API server returned it
	wanted  string   // digest of what was applied
	owned   string   // digest of what was owned afterwards
	refused *refusal // the answer to wanted, when it was refused
}

// reported is the status that was written last, until the cache has it.
type reported struct {
	uid     types.UID
	version string // the QueueWorker's resource version with that status
	status  *v1alpha1.QueueWorkerStatus
}

// reportedAs copies: a pointer to the status would keep all of the QueueWorker.
func reportedAs(stored *v1alpha1.QueueWorker) reported {
	return reported{uid: stored.UID, version: stored.ResourceVersion, status: stored.Status.DeepCopy()}
}

// on puts the status onto a QueueWorker from a cache that lags behind. The rest
// of it is still as it was: a status is written only onto what was read.
func (r *reported) on(cached *v1alpha1.QueueWorker) *v1alpha1.QueueWorker {
	if r.status == nil {
		return cached
	}
	if !lags(cached, r.uid, r.version) {
		*r = reported{}
		return cached
	}
	cached.ResourceVersion, cached.Status = r.version, *r.status.DeepCopy()
	return cached
}

func newMemory() *memory { return &memory{byWorker: map[types.NamespacedName]*known{}} }

func (m *memory) of(name types.NamespacedName) *known {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.byWorker[name]
	if k == nil {
		k = &known{monitor: map[string]*written{}}
		m.byWorker[name] = k
	}
	return k
}

func (m *memory) forget(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byWorker, name)
}
