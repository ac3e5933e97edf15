// SPDX-License-Identifier: Apache-2.0

// Package samples holds the sample QueueWorkers, so that tests and the
// generated documentation use the very files that people copy.
package samples

import (
	"bufio"
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/queueworker/operator/api/v1alpha1"
)

// The folders. A file in Invalid or Warned is named after the rule it breaks.
const (
	Valid   = "."
	Invalid = "invalid"
	Warned  = "warned"
)

//go:embed *.yaml invalid/*.yaml warned/*.yaml
var files embed.FS

// Sample is one file.
type Sample struct {
	Path    string // below config/samples
	Text    string
	Objects []runtime.Object // every document, in the file's order
}

// Name is the file's name without its ending: the rule, in Invalid and Warned.
func (s Sample) Name() string { return strings.TrimSuffix(path.Base(s.Path), ".yaml") }

// Judged is the QueueWorker that the file is about, the last one, and Others
// those before it: the workers that are there already when it arrives.
func (s Sample) Judged() (judged *v1alpha1.QueueWorker, others []v1alpha1.QueueWorker) {
	for _, object := range s.Objects {
		qw, ok := object.(*v1alpha1.QueueWorker)
		if !ok {
			continue
		}
		if judged != nil {
			others = append(others, *judged)
		}
		judged = qw
	}
	return judged, others
}

// Load reads the samples of one folder, sorted by name and decoded strictly:
// an unknown, repeated or misspelt field is an error.
func Load(folder string) ([]Sample, error) {
	entries, err := files.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var all []Sample
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		text, err := files.ReadFile(path.Join(folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		sample := Sample{Path: path.Join(folder, entry.Name()), Text: string(text)}
		if sample.Objects, err = Decode(text); err != nil {
			return nil, fmt.Errorf("config/samples/%s: %w", sample.Path, err)
		}
		all = append(all, sample)
	}
	return all, nil
}

// Decode reads YAML documents strictly.
func Decode(text []byte) ([]runtime.Object, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, autoscalingv2.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	var objects []runtime.Object
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}
