// SPDX-License-Identifier: Apache-2.0

package chainsource

import (
	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/preflight"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// Declared is what the preflight compares the application with, besides the
// chain document.
func Declared(qw *v1alpha1.QueueWorker) preflight.Declared {
	spec := &qw.Spec
	chain := FromQueueWorker(qw, Options{})
	var table v1alpha1.FenceTable
	if spec.EffectiveFenceMode() == v1alpha1.FenceModeTable {
		table = spec.EffectiveFenceTable()
	}
	return preflight.Declared{
		Version:    preflight.DeclaredVersion,
		Connection: spec.Queue.Connection, Queues: spec.Queue.Names, Supervision: preflight.Supervision(spec.EffectiveSupervision()),
		BlockFor: number(chain.BlockFor), Tries: number(chain.Tries), RetryUntil: number(chain.RetryUntil), Backoff: chain.Backoff,
		MessageRetention: number(chain.MessageRetention), ProviderKeyTTL: number(chain.ProviderKeyTTL),
		MemoryMegabytes: number(chain.Worker.MemoryMegabytes), Rest: number(chain.Worker.Rest),
		Fence: chain.Fence, FenceTable: table.Name, FenceKey: table.KeyColumn,
	}
}

func number(v timeoutchain.Value) *int64 {
	if !v.Declared() {
		return nil
	}
	n := v.N()
	return &n
}
