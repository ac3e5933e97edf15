// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/rollout"
)

// errNamespaceEnds says that nothing can be made because the namespace is being
// deleted. There is nothing to retry and nobody to tell.
var errNamespaceEnds = errors.New("the namespace is being deleted")

// errGone says that the QueueWorker is going or gone, and the cache does not know
// yet. Its event will bring it back here.
var errGone = errors.New("the QueueWorker is gone")

// refusal is the API server's refusal of an object that only a change can end.
type refusal struct {
	stall rollout.Stall
	// retry says that the change may be outside of our sight, such as a quota.
	retry bool
	at    time.Time
}

// stands says whether asking again would be pointless.
func (r *refusal) stands(now time.Time) bool { return !r.retry || now.Sub(r.at) < refusalPause }

func (r *refusal) Error() string { return r.stall.Message }

// classify sorts an error of a write: refusals and the end of the namespace are
// told apart from what passes by itself.
func classify(err error, kind, name string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return errNamespaceEnds
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err), apierrors.IsForbidden(err):
		return &refusal{
			stall: rollout.Stall{
				Reason:  v1alpha1.ReasonDeploymentRefused,
				Message: fmt.Sprintf("The API server refuses %s %s: %s.", kind, name, err.Error()),
			},
			retry: apierrors.IsForbidden(err),
		}
	default:
		return fmt.Errorf("applying %s %s: %w", kind, name, err)
	}
}
