// SPDX-License-Identifier: Apache-2.0

package chainsource_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/chainsource"
)

func fromSecret(name string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
}

func fromConfigMap(name string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
}

var all = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "shop-env"}}}}

// References are resolved as in a pod, and what only the cluster knows is told.
func TestWorkerEnvironment(t *testing.T) {
	for name, c := range map[string]struct {
		env      []corev1.EnvVar
		envFrom  []corev1.EnvFromSource
		standIns []string
		set      []string
		unseen   []string
	}{
		"plain":                      {env: []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B"}}, set: []string{"A=1", "B="}},
		"a reference":                {env: []corev1.EnvVar{{Name: "A", Value: "60"}, {Name: "B", Value: "x$(A)y$(A)"}}, set: []string{"A=60", "B=x60y60"}},
		"of a reference":             {env: []corev1.EnvVar{{Name: "A", Value: "$$"}, {Name: "B", Value: "$(A)(C)"}}, set: []string{"A=$", "B=$(C)"}},
		"to what follows":            {env: []corev1.EnvVar{{Name: "A", Value: "$(B)"}, {Name: "B", Value: "60"}}, set: []string{"A=$(B)", "B=60"}},
		"to itself":                  {env: []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "A", Value: "$(A)2"}}, set: []string{"A=1", "A=12"}},
		"to nothing":                 {env: []corev1.EnvVar{{Name: "A", Value: "$(NO) $() $( $x $"}}, standIns: []string{"NO=1"}, set: []string{"A=$(NO) $() $( $x $"}},
		"escaped":                    {env: []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "$$(A) $$$(A)"}}, set: []string{"A=1", "B=$(A) $1"}},
		"from the cluster":           {env: []corev1.EnvVar{{Name: "A", ValueFrom: fromSecret("s")}}, unseen: []string{"A (Secret s)"}},
		"from the cluster, given":    {env: []corev1.EnvVar{{Name: "A", ValueFrom: fromSecret("s")}}, standIns: []string{"A=1=2"}, set: []string{"A=1=2"}},
		"refers to the cluster":      {env: []corev1.EnvVar{{Name: "A", ValueFrom: fromConfigMap("c")}, {Name: "B", Value: "$(A)"}}, unseen: []string{"A (ConfigMap c)", "B (refers to A)"}},
		"refers to what is given":    {env: []corev1.EnvVar{{Name: "A", ValueFrom: fromConfigMap("c")}, {Name: "B", Value: "<$(A)>"}}, standIns: []string{"A=1"}, set: []string{"A=1", "B=<1>"}},
		"replaced by a plain one":    {env: []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "A", ValueFrom: fromSecret("s")}, {Name: "B", Value: "$(A)"}}, set: []string{"A=1"}, unseen: []string{"A (Secret s)", "B (refers to A)"}},
		"all of a Secret":            {envFrom: all, env: []corev1.EnvVar{{Name: "A", Value: "1"}}, set: []string{"A=1"}, unseen: []string{"all of Secret shop-env"}},
		"perhaps of a Secret":        {envFrom: all, env: []corev1.EnvVar{{Name: "A", Value: "$(HOST)"}}, unseen: []string{"all of Secret shop-env", "A (refers to HOST)"}},
		"perhaps, given":             {envFrom: all, env: []corev1.EnvVar{{Name: "A", Value: "$(HOST)"}}, standIns: []string{"HOST=h"}, set: []string{"A=h"}, unseen: []string{"all of Secret shop-env"}},
		"of a Service":               {env: []corev1.EnvVar{{Name: "A", Value: "$(REDIS_SERVICE_HOST):$(REDIS_PORT_6379_TCP_PORT)"}}, unseen: []string{"A (refers to REDIS_SERVICE_HOST)"}},
		"the operator's reservation": {set: []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			qw := &v1alpha1.QueueWorker{}
			qw.Spec.Template.Spec.Containers = []corev1.Container{{Name: v1alpha1.WorkerContainer, Env: c.env, EnvFrom: c.envFrom}}
			qw.Spec.Queue.Connection, qw.Spec.Timeouts.RetryAfterSeconds = "redis", new(int32)
			got := chainsource.WorkerEnvironment(qw, c.standIns)
			if want := append(slices.Clone(c.set), "REDIS_QUEUE_RETRY_AFTER=0"); !slices.Equal(got.Set, want) || !slices.Equal(got.Unseen, c.unseen) {
				t.Errorf("got %q and unseen %q, wanted %q and %q", got.Set, got.Unseen, want, c.unseen)
			}
		})
	}
}

func TestWordsOfTheCommandAreExpanded(t *testing.T) {
	qw := &v1alpha1.QueueWorker{}
	qw.Spec.Template.Spec.Containers = []corev1.Container{{Name: v1alpha1.WorkerContainer, Env: []corev1.EnvVar{
		{Name: "APP_ENV", Value: "production"}, {Name: "NODE", ValueFrom: fromConfigMap("c")},
	}}}
	env := chainsource.WorkerEnvironment(qw, nil)
	words := []string{"horizon", "--environment=$(APP_ENV)", "--name=$(NODE)"}
	if got := env.Expand(words); !slices.Equal(got, []string{"horizon", "--environment=production", "--name="}) || words[1] != "--environment=$(APP_ENV)" {
		t.Errorf("got %q of %q", got, words)
	}
	if want := []string{"NODE (ConfigMap c)", "the word --name=$(NODE) of the command"}; !slices.Equal(env.Unseen, want) {
		t.Errorf("unseen %q, wanted %q", env.Unseen, want)
	}
}
