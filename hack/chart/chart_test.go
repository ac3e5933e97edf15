// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	podsecurityapi "k8s.io/pod-security-admission/api"
	podsecurity "k8s.io/pod-security-admission/policy"
	strictjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/queueworker/operator/hack/chart/render"
	"github.com/queueworker/operator/internal/managerconfig"
)

const root = "../.."

// settings are values that turn everything on that can be, and each choice once.
var settings = map[string]string{
	"defaults": "",
	"all that is optional": `{agent: {image: registry.example/operator:1}, networkPolicy: {enabled: true}, imagePullSecrets: [{name: a}],
		metrics: {readers: [{namespace: a, name: b}], serviceMonitor: {enabled: true}, podMonitor: {enabled: true},
		prometheusRule: {enabled: true}, dashboard: {enabled: true, annotations: {a: b}}}, serviceAccount: {annotations: {a: b}},
		priorityClassName: high, podLabels: {a: b}, podAnnotations: {a: b}, caps: {gracePeriodSeconds: 31536000}}`,
	"nothing that is optional": `{rbac: {create: false, aggregate: false}, crds: {enabled: false}, metrics: {enabled: false},
		podDisruptionBudget: {enabled: false}, serviceAccount: {create: false, name: theirs}, resources: {}}`,
	"listed namespaces":                 `{watchNamespaces: [shop, crm], networkPolicy: {workers: true}}`,
	"cert-manager":                      `{webhook: {certificates: {mode: certManager}, failurePolicy: Fail}}`,
	"provided, listed":                  `{watchNamespaces: [shop], webhook: {certificates: {mode: provided, secretName: ours, caBundle: "-----BEGIN CERTIFICATE-----"}}}`,
	"another name and another log":      `{fullnameOverride: qw, logging: {format: console, level: debug}, leaderElection: {leaseDurationSeconds: 60, renewDeadlineSeconds: 40}}`,
	"a name that is as long as it gets": `{fullnameOverride: ` + strings.Repeat("a", 100) + `}`,
}

func load(t *testing.T) *render.Chart {
	t.Helper()
	chart, err := render.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	return chart
}

func rendered(t *testing.T, values string) *render.Rendered {
	t.Helper()
	of, err := load(t).Render(render.Default, values)
	if err != nil {
		t.Fatal(err)
	}
	return of
}

// find decodes the one object of a kind and name. Fields that its type does not
// know are errors: Helm applies on the server's side, where they are too.
func find[T any](t *testing.T, objects []render.Object, kind, name string) *T {
	t.Helper()
	var found []string
	for _, object := range objects {
		if object.Kind == kind && object.Name == name {
			found = append(found, object.Text)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects %s %s, want one", len(found), kind, name)
	}
	return decode[T](t, found[0])
}

func decode[T any](t *testing.T, text string) *T {
	t.Helper()
	asJSON, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	object := new(T)
	unknown, err := strictjson.UnmarshalStrict(asJSON, object)
	if err := errors.Join(append(unknown, err)...); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return object
}

// Each object has only fields of its type, and each name once.
func TestObjectsAreWhatTheirTypesKnow(t *testing.T) {
	known := map[string]func(*testing.T, string){
		"ClusterRole":                    func(t *testing.T, text string) { decode[rbacv1.ClusterRole](t, text) },
		"ClusterRoleBinding":             func(t *testing.T, text string) { decode[rbacv1.ClusterRoleBinding](t, text) },
		"ConfigMap":                      func(t *testing.T, text string) { decode[corev1.ConfigMap](t, text) },
		"CustomResourceDefinition":       func(t *testing.T, text string) { decode[apiextensionsv1.CustomResourceDefinition](t, text) },
		"Deployment":                     func(t *testing.T, text string) { decode[appsv1.Deployment](t, text) },
		"NetworkPolicy":                  func(t *testing.T, text string) { decode[networkingv1.NetworkPolicy](t, text) },
		"PodDisruptionBudget":            func(t *testing.T, text string) { decode[policyv1.PodDisruptionBudget](t, text) },
		"Role":                           func(t *testing.T, text string) { decode[rbacv1.Role](t, text) },
		"RoleBinding":                    func(t *testing.T, text string) { decode[rbacv1.RoleBinding](t, text) },
		"Secret":                         func(t *testing.T, text string) { decode[corev1.Secret](t, text) },
		"Service":                        func(t *testing.T, text string) { decode[corev1.Service](t, text) },
		"ServiceAccount":                 func(t *testing.T, text string) { decode[corev1.ServiceAccount](t, text) },
		"ValidatingWebhookConfiguration": func(t *testing.T, text string) { decode[admissionv1.ValidatingWebhookConfiguration](t, text) },
		// Kinds of others, whose types would bring their projects along.
		"Certificate": nil, "Issuer": nil, "PodMonitor": nil, "PrometheusRule": nil, "ServiceMonitor": nil,
	}
	for name, values := range settings {
		t.Run(name, func(t *testing.T) {
			seen := map[string]bool{}
			for _, object := range rendered(t, values).Objects {
				check, ok := known[object.Kind]
				if !ok {
					t.Errorf("the kind %s is new: add it here", object.Kind)
				}
				if check != nil {
					check(t, object.Text)
				}
				var meta struct {
					Metadata struct{ Namespace, Name string }
				}
				if err := yaml.Unmarshal([]byte(object.Text), &meta); err != nil {
					t.Fatal(err)
				}
				key := object.Kind + " " + meta.Metadata.Namespace + "/" + meta.Metadata.Name
				if seen[key] || len(meta.Metadata.Name) > 63 {
					t.Errorf("%s is made twice, or its name is too long", key)
				}
				seen[key] = true
			}
		})
	}
}

// The manager takes the configuration that the chart writes for it.
func TestTheManagerReadsItsConfiguration(t *testing.T) {
	for name, values := range settings {
		t.Run(name, func(t *testing.T) {
			objects := rendered(t, values).Objects
			for _, object := range objects {
				if object.Template != "config.yaml" {
					continue
				}
				config, err := managerconfig.Decode([]byte(decode[corev1.ConfigMap](t, object.Text).Data["manager.yaml"]))
				if err != nil {
					t.Fatal(err)
				}
				if errs := managerconfig.Validate(&config); len(errs) > 0 {
					t.Error(errs.ToAggregate())
				}
				deployed := findOnly[appsv1.Deployment](t, objects, "Deployment").Spec.Template.Spec
				if *deployed.TerminationGracePeriodSeconds <= int64(config.ShutdownTimeoutSeconds) {
					t.Error("the pod's grace is over before the manager's own time to stop is")
				}
				return
			}
			t.Fatal("no configuration")
		})
	}
}

func findOnly[T any](t *testing.T, objects []render.Object, kind string) *T {
	t.Helper()
	name := ""
	for _, object := range objects {
		if object.Kind == kind {
			name = object.Name
		}
	}
	return find[T](t, objects, kind, name)
}

// What is left out has the manager's default: the chart adds its own image and
// namespace, and nothing else.
func TestDefaultsAreTheManagers(t *testing.T) {
	text := find[corev1.ConfigMap](t, rendered(t, "").Objects, "ConfigMap", "queueworker-operator-config").Data["manager.yaml"]
	config, err := managerconfig.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := managerconfig.Default()
	want.Namespace, want.Agent.Image = render.Default.Namespace, "queueworker/operator:"+load(t).AppVersion()
	if diff := cmp.Diff(want, config); diff != "" {
		t.Errorf("the chart's defaults are not the manager's (manager -, chart +):\n%s", diff)
	}
}

func TestPodsPassTheRestrictedStandard(t *testing.T) {
	evaluator, err := podsecurity.NewEvaluator(podsecurity.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := podsecurityapi.LevelVersion{Level: podsecurityapi.LevelRestricted, Version: podsecurityapi.LatestVersion()}
	for name, values := range settings {
		pod := findOnly[appsv1.Deployment](t, rendered(t, values).Objects, "Deployment").Spec.Template
		verdict := podsecurity.AggregateCheckResults(evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec))
		if !verdict.Allowed {
			t.Errorf("%s: %s", name, verdict.ForbiddenDetail())
		}
		if root := pod.Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem; root == nil || !*root {
			t.Errorf("%s: the root can be written", name)
		}
	}
}

// A command of the notes would otherwise be tried by the first user.
func TestTheNotesNameWhatIsInstalled(t *testing.T) {
	for name, values := range settings {
		of := rendered(t, values)
		deployment := findOnly[appsv1.Deployment](t, of.Objects, "Deployment")
		if want := "kubectl -n queueworker-system rollout status deployment/" + deployment.Name + "\n"; !strings.Contains(of.Notes, want) {
			t.Errorf("%s: the notes do not say %s:\n%s", name, want, of.Notes)
		}
	}
}

func TestRenderingIsDeterministic(t *testing.T) {
	for name, values := range settings {
		first := rendered(t, values)
		if diff := cmp.Diff(first, rendered(t, values)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// config/install.yaml is checked by make verify; here, that it has what Helm
// would install and the namespace.
func TestTheManifestHasEveryObject(t *testing.T) {
	text, err := manifest(load(t))
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(text, "\n---\n")
	if want := len(rendered(t, "").Objects) + 1; len(documents) != want {
		t.Errorf("%d documents, want %d", len(documents), want)
	}
	if decode[corev1.Namespace](t, documents[0]).Name != render.Default.Namespace {
		t.Error("the namespace is not the first")
	}
	for _, object := range rendered(t, "").Objects {
		if !strings.Contains(text, object.Text) {
			t.Errorf("%s %s is missing", object.Kind, object.Name)
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return content
}
