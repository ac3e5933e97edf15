// SPDX-License-Identifier: Apache-2.0

package webhookload

import (
	"context"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// nature is what the webhook must say of a write.
type nature string

const (
	good   nature = "good"
	warned nature = "warned" // admitted, with a warning that only the webhook gives
	broken nature = "broken" // refused by a rule that reads two objects: CEL cannot
)

// The rules that tell the webhook's verdict from any other answer.
const (
	warningRule = "thin-margin"
	refusalRule = "shared-queue-shorter-reservation"
)

// answer is how a write ended.
type answer string

const (
	admitted     answer = "admitted"
	admittedWith answer = "admitted with a warning"
	refused      answer = "refused by the rule"
	notAsked     answer = "the webhook was not reached, and the writer told so"
	conflicting  answer = "another write came first, and the writer was told so"
	other        answer = "anything else"
)

// right is the one verdict for each nature.
var right = map[nature]answer{good: admitted, warned: admittedWith, broken: refused}

// wrong says whether an answer is neither the webhook's own verdict nor an error
// that tells the writer to try again.
func wrong(of nature, got answer) bool {
	return got != right[of] && got != notAsked && got != conflicting
}

func answerOf(err error, warnings []string) answer {
	switch {
	case err == nil && strings.Contains(strings.Join(warnings, "\n"), warningRule+": "):
		return admittedWith
	case err == nil:
		return admitted
	case apierrors.IsInvalid(err) && strings.Contains(err.Error(), refusalRule+": "):
		return refused
	case apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook"):
		return notAsked
	case apierrors.IsConflict(err):
		return conflicting
	default:
		return other
	}
}

// heard are the warnings that came with one answer.
type heard struct {
	mu    sync.Mutex
	texts []string
}

type heardKey struct{}

// toTheWriter hands a warning to the request that it came with.
type toTheWriter struct{}

var _ rest.WarningHandlerWithContext = toTheWriter{}

func (toTheWriter) HandleWarningHeaderWithContext(ctx context.Context, _ int, _, text string) {
	if h, ok := ctx.Value(heardKey{}).(*heard); ok {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.texts = append(h.texts, text)
	}
}

func (h *heard) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.texts
}

func TestOnlyTheRightVerdictAndAFailedCallPass(t *testing.T) {
	gk := schema.GroupKind{Group: "queueworker.dev", Kind: "QueueWorker"}
	byCEL := apierrors.NewInvalid(gk, "a", nil)
	byWebhook := apierrors.NewInvalid(gk, "a", nil)
	byWebhook.ErrStatus.Message = refusalRule + ": two workers"
	unreached := apierrors.NewInternalError(context.DeadlineExceeded)
	unreached.ErrStatus.Message = `Internal error occurred: failed calling webhook "v": EOF`
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "queueworkers"}, "a", nil)
	conflict.ErrStatus.Reason = metav1.StatusReasonConflict
	for _, c := range []struct {
		name     string
		err      error
		warnings []string
		passes   []nature
	}{
		{"admitted", nil, nil, []nature{good}},
		{"admitted with another's warning", nil, []string{"unknown field"}, []nature{good}},
		{"admitted with the warning", nil, []string{"spec: " + warningRule + ": 2 s"}, []nature{warned}},
		{"refused by the rule", byWebhook, nil, []nature{broken}},
		{"refused by something else", byCEL, nil, nil},
		{"the webhook not reached", unreached, nil, []nature{good, warned, broken}},
		{"another error of the server", apierrors.NewInternalError(context.DeadlineExceeded), nil, nil},
		{"a conflict", conflict, nil, []nature{good, warned, broken}},
		{"no answer", context.DeadlineExceeded, nil, nil},
	} {
		var passes []nature
		for _, of := range []nature{good, warned, broken} {
			if !wrong(of, answerOf(c.err, c.warnings)) {
				passes = append(passes, of)
			}
		}
		if len(passes) != len(c.passes) || strings.Join(text(passes), " ") != strings.Join(text(c.passes), " ") {
			t.Errorf("%s passes for %v, want %v", c.name, passes, c.passes)
		}
	}
}

func text(natures []nature) (texts []string) {
	for _, n := range natures {
		texts = append(texts, string(n))
	}
	return texts
}
