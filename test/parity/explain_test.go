// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/yaml"

	"github.com/queueworker/operator/config/crd"
)

// ours lists the fields of our own types, by path. Below the borrowed ones
// Kubernetes explains.
func ours(t *testing.T) map[string]apiextensionsv1.JSONSchemaProps {
	t.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(crd.QueueWorkers, definition); err != nil {
		t.Fatal(err)
	}
	fields := map[string]apiextensionsv1.JSONSchemaProps{}
	var collect func(string, *apiextensionsv1.JSONSchemaProps)
	collect = func(path string, s *apiextensionsv1.JSONSchemaProps) {
		for name, field := range s.Properties {
			if path == "" && name != "spec" && name != "status" {
				continue
			}
			at := strings.TrimPrefix(path+"."+name, ".")
			fields[at] = field
			if at != "spec.template" && at != "spec.strategy" && at != "spec.monitor.resources" { // Kubernetes' own types
				collect(at, &field)
			}
		}
	}
	collect("", definition.Spec.Versions[0].Schema.OpenAPIV3Schema)
	return fields
}

var (
	unit         = regexp.MustCompile(`\b(seconds|MiB|[Nn]umber|how many|generation|percentage)\b`)
	defaultValue = regexp.MustCompile(`\b([Dd]efault|[Uu]nset|[Rr]equired)\b`)
)

// Whoever asks kubectl about a field learns what it means, in which unit, what
// happens without it, and which field it has to do with.
func TestEveryFieldIsExplained(t *testing.T) {
	fields := ours(t)
	if len(fields) < 50 {
		t.Fatalf("only %d fields", len(fields))
	}
	for path, field := range fields {
		text := lines(field.Description)
		if len(text) < 40 || !strings.HasSuffix(text, ".") {
			t.Errorf("%s: no sentence: %q", path, text)
		}
		if (field.Type == "integer" || field.XIntOrString) && !unit.MatchString(text) {
			t.Errorf("%s: no unit: %q", path, text)
		}
		if !strings.HasPrefix(path, "spec.") {
			continue
		}
		if !defaultValue.MatchString(text) {
			t.Errorf("%s: no default: %q", path, text)
		}
		if !namesAnother(text, path, fields) {
			t.Errorf("%s: no neighbour: %q", path, text)
		}
	}
}

// namesAnother says whether a text names another field.
func namesAnother(text, path string, fields map[string]apiextensionsv1.JSONSchemaProps) bool {
	own := path[strings.LastIndex(path, ".")+1:]
	for other := range fields {
		name := other[strings.LastIndex(other, ".")+1:]
		if name != own && regexp.MustCompile(`\b`+name+`\b`).MatchString(text) {
			return true
		}
	}
	return false
}

func TestKubectlExplainsEveryField(t *testing.T) {
	server, fields := onServer(t), ours(t)
	server.described(t)
	explained := map[string]string{}
	for _, path := range slices.Sorted(maps.Keys(fields)) {
		parent := ""
		if i := strings.LastIndex(path, "."); i > 0 {
			parent = path[:i]
		}
		if _, done := explained[parent]; !done {
			explained[parent] = lines(mustKubectl(t, server, "explain", strings.TrimSuffix("queueworkers."+parent, ".")))
		}
		if text := lines(fields[path].Description); !strings.Contains(explained[parent], text) {
			t.Errorf("kubectl explain does not say about %s: %s", path, text)
		}
	}
}

// described waits until the API server has published the CRD's schema and has put
// the resource into the list of all resources, in which kubectl looks its kind up.
// It does both some time after it serves the resource, in no certain order.
func (s *server) described(t *testing.T) {
	t.Helper()
	client := discovery.NewDiscoveryClientForConfigOrDie(s.cluster.RESTConfig())
	err := wait.PollUntilContextTimeout(context.Background(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		body, err := client.RESTClient().Get().AbsPath("/openapi/v3/apis/queueworker.dev/v1alpha1").Do(ctx).Raw()
		return err == nil && strings.Contains(string(body), "jobSeconds") && listed(client), nil
	})
	if err != nil {
		t.Fatalf("the schema is not published: %v", err)
	}
}

func listed(client *discovery.DiscoveryClient) bool {
	_, all, err := client.ServerGroupsAndResources()
	return err == nil && slices.ContainsFunc(all, func(list *metav1.APIResourceList) bool {
		return list.GroupVersion == "queueworker.dev/v1alpha1" && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool {
			return r.Name == "queueworkers"
		})
	})
}
