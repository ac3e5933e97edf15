// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/queueworker/operator/config/crd"
	"github.com/queueworker/operator/hack/controlplane/cluster"
)

// server is a real API server with the CRD, shared by the tests of this package
// and started by the first that needs it.
type server struct {
	client.Client
	cluster  *cluster.Cluster
	warnings *warnings
}

var theServer struct {
	sync.Once
	*server
	err error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if s := theServer.server; s != nil {
		if err := s.cluster.Stop(); err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			code = 1
		}
	}
	os.Exit(code)
}

// onServer gives a test the server. With -short the test is passed over.
func onServer(t *testing.T) *server {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an API server")
	}
	theServer.Do(func() { theServer.server, theServer.err = start() })
	if theServer.err != nil {
		t.Fatal(theServer.err)
	}
	return theServer.server
}

func start() (*server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	c, err := cluster.UseOrStart(ctx, cluster.Options{})
	if err != nil {
		return nil, err
	}
	s := &server{cluster: c, warnings: &warnings{}}
	config := c.RESTConfig()
	config.WarningHandler = s.warnings
	config.QPS = -1
	scheme := runtime.NewScheme()
	if err := errors.Join(apiextensionsv1.AddToScheme(scheme), metav1.AddMetaToScheme(scheme)); err != nil {
		return s, err
	}
	if s.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return s, err
	}
	// By hand and client-side, as a user with a checkout would.
	_, err = s.kubectl("apply", "-f", crdFile())
	return s, errors.Join(err, s.established(ctx))
}

func crdFile() string { return filepath.Join("..", "..", "config", "crd", crdName+".yaml") }

const crdName = "queueworker.dev_queueworkers"

// established waits until the CRD is served and found no fault in it.
func (s *server) established(ctx context.Context) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := s.Get(ctx, client.ObjectKey{Name: "queueworkers.queueworker.dev"}, definition); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		established := false
		for _, c := range definition.Status.Conditions {
			if c.Type == apiextensionsv1.NonStructuralSchema && c.Status == apiextensionsv1.ConditionTrue {
				return false, errors.New(c.Message)
			}
			established = established || c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
		}
		return established, nil
	})
}

func (s *server) kubectl(arguments ...string) (string, error) {
	command := exec.Command(s.cluster.Kubectl(), append([]string{"--kubeconfig", s.cluster.KubeconfigPath()}, arguments...)...)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	if err := command.Run(); err != nil {
		return out.String(), errors.Join(err, errors.New(out.String()+errs.String()))
	}
	return out.String() + errs.String(), nil
}

// try asks the API server about an object without storing it.
func (s *server) try(object map[string]any) error {
	body := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(object)}
	return s.Create(context.Background(), body, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
}

// causes are the reasons of a refusal; an error that is none fails the test.
func causes(t *testing.T, err error) []metav1.StatusCause {
	t.Helper()
	if err == nil {
		return nil
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil || !apierrors.IsInvalid(err) {
		t.Fatal(err)
	}
	return status.Status().Details.Causes
}

// said are the texts of a refusal's causes, as in-process errors have them.
func said(causes []metav1.StatusCause) []string {
	var texts []string
	for _, c := range causes {
		texts = append(texts, c.Field+": "+c.Message)
	}
	slices.Sort(texts)
	return texts
}

// warnings collects what the API server warns of.
type warnings struct {
	sync.Mutex
	texts []string
}

var _ rest.WarningHandler = &warnings{}

func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.Lock()
	defer w.Unlock()
	w.texts = append(w.texts, text)
}

// take returns the warnings since the last call.
func (w *warnings) take() []string {
	w.Lock()
	defer w.Unlock()
	texts := w.texts
	w.texts = nil
	return texts
}

// withoutRules is the CRD as it was before any rule.
func withoutRules(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(crd.QueueWorkers, definition); err != nil {
		t.Fatal(err)
	}
	root := definition.Spec.Versions[0].Schema.OpenAPIV3Schema
	strip(root)
	return definition
}

func strip(s *apiextensionsv1.JSONSchemaProps) {
	s.XValidations = nil
	for name, child := range s.Properties {
		if name == "template" {
			child.XValidations = nil
		} else {
			strip(&child)
		}
		s.Properties[name] = child
	}
}

func named(object map[string]any, name string) *unstructured.Unstructured {
	named := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(object)}
	named.SetName(name)
	return named
}

func lines(text string) string { return strings.Join(strings.Fields(text), " ") }
