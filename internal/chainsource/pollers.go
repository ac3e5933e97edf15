// SPDX-License-Identifier: Apache-2.0

package chainsource

import (
	"slices"
	"strings"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// defaultQueue is the queue of a connection that names none.
const defaultQueue = "default"

// Pollers picks, among the QueueWorkers of a namespace, those that poll one of
// the same queues of the same database as qw. Only on the Database driver does
// another worker's reservation decide about a job, so for other drivers there
// are none. Two workers share a database when both name the same store, or,
// where one names none, when their connections have the same name.
func Pollers(qw *v1alpha1.QueueWorker, others []v1alpha1.QueueWorker) []timeoutchain.Poller {
	if qw.Spec.EffectiveDriver() != v1alpha1.DriverDatabase {
		return nil
	}
	var pollers []timeoutchain.Poller
	for i := range others {
		other := &others[i]
		if other.Name == qw.Name || other.Namespace != qw.Namespace ||
			other.Spec.EffectiveDriver() != v1alpha1.DriverDatabase || !shareQueue(qw, other) {
			continue
		}
		shared, declared := shareStore(&qw.Spec.Queue, &other.Spec.Queue)
		if !shared {
			continue
		}
		pollers = append(pollers, timeoutchain.Poller{
			Name:       other.Name,
			Job:        timeoutchain.Of(int64(other.Spec.Timeouts.JobSeconds)),
			RetryAfter: value(other.Spec.Timeouts.RetryAfterSeconds),
			SameStore:  declared,
		})
	}
	slices.SortFunc(pollers, func(a, b timeoutchain.Poller) int { return strings.Compare(a.Name, b.Name) })
	return pollers
}

func shareStore(a, b *v1alpha1.Queue) (shared, declared bool) {
	if a.Store != "" && b.Store != "" {
		return a.Store == b.Store, true
	}
	return a.Connection == b.Connection, false
}

func shareQueue(a, b *v1alpha1.QueueWorker) bool {
	names := queueNames(b)
	return slices.ContainsFunc(queueNames(a), func(name string) bool { return slices.Contains(names, name) })
}

func queueNames(qw *v1alpha1.QueueWorker) []string {
	if len(qw.Spec.Queue.Names) == 0 {
		return []string{defaultQueue}
	}
	return qw.Spec.Queue.Names
}
