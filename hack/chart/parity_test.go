// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/queueworker/operator/hack/chart/render"
)

const installed = "queueworker-operator"

// grants are single permissions, so that two lists of rules are compared by
// what they allow: "apps/deployments get", with the one object in brackets.
func grants(rules ...rbacv1.PolicyRule) []string {
	all := map[string]bool{}
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{"*"}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						all[group+"/"+resource+"["+name+"] "+verb] = true
					}
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// marked are the roles that controller-gen makes from the markers.
func marked(t *testing.T) (cluster, own []string) {
	t.Helper()
	for _, document := range strings.Split(string(read(t, "config/rbac/role.yaml")), "---\n") {
		switch {
		case strings.Contains(document, "kind: ClusterRole\n"):
			cluster = grants(decode[rbacv1.ClusterRole](t, document).Rules...)
		case strings.Contains(document, "kind: Role\n"):
			own = grants(decode[rbacv1.Role](t, document).Rules...)
		}
	}
	if len(cluster) == 0 || len(own) == 0 {
		t.Fatal("config/rbac/role.yaml does not hold both roles")
	}
	return cluster, own
}

func clusterRole(t *testing.T, objects []render.Object) []string {
	t.Helper()
	return grants(find[rbacv1.ClusterRole](t, objects, "ClusterRole", installed).Rules...)
}

func role(t *testing.T, objects []render.Object, name string) []string {
	t.Helper()
	return grants(find[rbacv1.Role](t, objects, "Role", name).Rules...)
}

func TestRolesAreWhatTheMarkersSay(t *testing.T) {
	cluster, own := marked(t)
	objects := rendered(t, "").Objects
	if diff := cmp.Diff(cluster, clusterRole(t, objects)); diff != "" {
		t.Errorf("the ClusterRole (markers -, chart +):\n%s", diff)
	}
	if diff := cmp.Diff(own, role(t, objects, installed)); diff != "" {
		t.Errorf("the Role (markers -, chart +):\n%s", diff)
	}
}

// In listed namespaces the same is allowed, but nothing that is in a namespace
// is allowed outside of them.
func TestRolesOfListedNamespacesAreTheSameInAll(t *testing.T) {
	cluster, own := marked(t)
	objects := rendered(t, "watchNamespaces: [shop]").Objects
	inCluster, inNamespace := clusterRole(t, objects), role(t, objects, installed+"-workers")
	both := slices.Concat(inCluster, inNamespace)
	slices.Sort(both)
	if diff := cmp.Diff(cluster, both); diff != "" {
		t.Errorf("the ClusterRole and the Role (markers -, chart +):\n%s", diff)
	}
	if diff := cmp.Diff(own, role(t, objects, installed)); diff != "" {
		t.Errorf("the operator's own Role (markers -, chart +):\n%s", diff)
	}
	clusterScoped := []string{"admissionregistration.k8s.io/", "apiextensions.k8s.io/", "authentication.k8s.io/", "authorization.k8s.io/"}
	for _, grant := range inCluster {
		if !slices.ContainsFunc(clusterScoped, func(group string) bool { return strings.HasPrefix(grant, group) }) {
			t.Errorf("%s is granted in all namespaces", grant)
		}
	}
}

// No setting grants what the markers do not ask for.
func TestNoSettingAddsToTheRoles(t *testing.T) {
	cluster, own := marked(t)
	for name, values := range settings {
		if strings.Contains(values, "create: false") || strings.Contains(values, "fullnameOverride") {
			continue
		}
		objects := rendered(t, values).Objects
		for _, grant := range clusterRole(t, objects) {
			if !slices.Contains(cluster, grant) {
				t.Errorf("%s: %s is granted in the cluster", name, grant)
			}
		}
		for _, grant := range role(t, objects, installed) {
			if !slices.Contains(own, grant) {
				t.Errorf("%s: %s is granted in the operator's namespace", name, grant)
			}
		}
	}
}

// Objects of other names need rules of other names.
func TestRulesNameTheObjectsOfTheRelease(t *testing.T) {
	objects := rendered(t, "fullnameOverride: qw").Objects
	want := map[string]string{
		"admissionregistration.k8s.io/validatingwebhookconfigurations[qw] get": "ClusterRole",
		"coordination.k8s.io/leases[qw] update":                                "Role",
		"/secrets[qw-webhook-cert] update":                                     "Role",
	}
	all := map[string][]string{
		"ClusterRole": grants(find[rbacv1.ClusterRole](t, objects, "ClusterRole", "qw").Rules...),
		"Role":        grants(find[rbacv1.Role](t, objects, "Role", "qw").Rules...),
	}
	for grant, kind := range want {
		if !slices.Contains(all[kind], grant) {
			t.Errorf("the %s does not grant %s", kind, grant)
		}
	}
}

func TestTheWebhookIsWhatTheMarkersSay(t *testing.T) {
	want := decode[admissionv1.ValidatingWebhookConfiguration](t, string(read(t, "config/webhook/manifests.yaml")))
	got := find[admissionv1.ValidatingWebhookConfiguration](t, rendered(t, "").Objects, "ValidatingWebhookConfiguration", installed)
	if diff := cmp.Diff(want.Webhooks, got.Webhooks); diff != "" {
		t.Errorf("(markers -, chart +):\n%s", diff)
	}
}

func TestTheCRDIsTheGeneratedOne(t *testing.T) {
	want := decode[apiextensionsv1.CustomResourceDefinition](t, string(read(t, "config/crd/queueworker.dev_queueworkers.yaml")))
	got := find[apiextensionsv1.CustomResourceDefinition](t, rendered(t, "").Objects, "CustomResourceDefinition", "queueworkers.queueworker.dev")
	if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
		t.Errorf("(generated -, chart +):\n%s", diff)
	}
	for name, value := range want.Annotations {
		if got.Annotations[name] != value {
			t.Errorf("the annotation %s is gone", name)
		}
	}
}
