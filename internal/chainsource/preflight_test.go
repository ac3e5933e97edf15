// SPDX-License-Identifier: Apache-2.0

package chainsource_test

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/chainsource"
	"github.com/queueworker/operator/internal/preflight"
	"github.com/queueworker/operator/internal/timeoutchain"
)

func declaring() *v1alpha1.QueueWorker {
	qw := &v1alpha1.QueueWorker{}
	qw.Spec.Queue = v1alpha1.Queue{Connection: "redis", Names: []string{"payments"}, BlockForSeconds: ptr.To[int32](5)}
	qw.Spec.Timeouts = v1alpha1.Timeouts{JobSeconds: 30, RetryAfterSeconds: ptr.To[int32](90)}
	qw.Spec.Fence.ProviderKeyTTLSeconds = ptr.To[int32](86400)
	qw.Spec.Template.Spec.Containers = []corev1.Container{{Name: v1alpha1.WorkerContainer}}
	return qw
}

// What is left out of the object is declared as what will apply.
func TestDeclared(t *testing.T) {
	want := preflight.Declared{
		Version: preflight.DeclaredVersion, Connection: "redis", Queues: []string{"payments"}, Supervision: preflight.Full,
		BlockFor: ptr.To[int64](5), Tries: ptr.To[int64](3), Backoff: []int64{10, 60}, ProviderKeyTTL: ptr.To[int64](86400),
		MemoryMegabytes: ptr.To[int64](128), Fence: timeoutchain.FenceNone,
	}
	got := chainsource.Declared(declaring())
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %s, wanted %s", got.Encode(), want.Encode())
	}
	if read, err := preflight.DecodeDeclared(got.Encode()); err != nil || !reflect.DeepEqual(read, want) {
		t.Errorf("%v: it does not survive its own document: %+v", err, read)
	}
}

func TestDeclaredSupervision(t *testing.T) {
	qw := declaring()
	qw.Spec.Worker.Supervision = v1alpha1.SupervisionSignalsOnly
	if got := chainsource.Declared(qw).Supervision; got != preflight.SignalsOnly {
		t.Errorf("got %s", got)
	}
}
