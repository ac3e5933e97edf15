// SPDX-License-Identifier: Apache-2.0

//go:build linux

package gitops

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/queueworker/operator/hack/argocd"
)

// application is what Argo CD shows of one.
type application struct {
	Status struct {
		Sync       struct{ Status, Revision string }
		Health     health
		Conditions []struct{ Type, Message string }
		Resources  []struct {
			Kind, Name, Status string
			Health             health
		}
		OperationState struct {
			Phase, Message string
			SyncResult     struct {
				Revision  string
				Resources []struct{ Kind, Name, Status, Message string }
			}
		}
	}
}

type health struct{ Status, Message string }

var applications = schema.GroupVersionResource{Group: "argoproj.io", Version: "v1alpha1", Resource: "applications"}

func parse(object *unstructured.Unstructured) (a application, err error) {
	text, err := object.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(text, &a)
	}
	return a, err
}

func get(t *testing.T, name string) application {
	t.Helper()
	object, err := suite.objects.Resource(applications).Namespace(argocd.Namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := parse(object)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// becomes waits for a state of an Application that compared the newest commit.
func becomes(t *testing.T, name, sync, health string) application {
	t.Helper()
	var a application
	head := suite.git.head(t)
	eventually(t, name+" is "+sync+" and "+health, func() error {
		a = get(t, name)
		if a.Status.Sync.Revision != head || a.Status.Sync.Status != sync || a.Status.Health.Status != health {
			return fmt.Errorf("%+v", a.Status)
		}
		return nil
	})
	return a
}

func (g gitRepository) head(t *testing.T) string {
	t.Helper()
	output, err := g.output("rev-parse", "HEAD")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(output)
}

// of is the health that Argo CD shows of a QueueWorker.
func (a application) of(name string) health {
	for _, r := range a.Status.Resources {
		if r.Kind == "QueueWorker" && r.Name == name {
			return r.Health
		}
	}
	return health{}
}

// history records what an Application looked like, each once while it stayed.
type history struct {
	mu     sync.Mutex
	states []string
}

// record watches until the test ends.
func record(t *testing.T, name string) *history {
	t.Helper()
	watcher, err := suite.objects.Resource(applications).Namespace(argocd.Namespace).Watch(context.Background(),
		metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watcher.Stop)
	h := &history{}
	go func() {
		for event := range watcher.ResultChan() {
			if object, ok := event.Object.(*unstructured.Unstructured); ok {
				if a, err := parse(object); err == nil {
					h.add(a.Status.Sync.Status + ", " + a.Status.Health.Status)
				}
			}
		}
	}()
	return h
}

func (h *history) add(state string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.states = slices.Compact(append(h.states, state))
}

func (h *history) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.states)
}

// never fails the test where one of the words was ever shown.
func (h *history) never(t *testing.T, words ...string) {
	t.Helper()
	for _, state := range h.all() {
		for _, word := range words {
			if strings.HasSuffix(state, word) || strings.HasPrefix(state, word) {
				t.Errorf("it was %s on the way: %q", state, h.all())
			}
		}
	}
}
