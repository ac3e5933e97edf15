// SPDX-License-Identifier: Apache-2.0

// Package render renders the chart in process, with Helm's own engine.
package render

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

// Folder is the chart's, from the root of the repository.
const Folder = "charts/queueworker-operator"

// Release is what Helm would be told about an installation.
type Release struct{ Name, Namespace string }

// Default is the release of config/install.yaml. Its names are those that the
// markers of the Go code and the manager's defaults agree on.
var Default = Release{Name: "queueworker-operator", Namespace: "queueworker-system"}

// Chart is a loaded chart.
type Chart struct{ chart *chart.Chart }

// Rendered is what a release is made of.
type Rendered struct {
	Objects []Object // in the order of their templates
	Notes   string   // what Helm prints
}

// Object is one document of a template.
type Object struct {
	Template string // such as deployment.yaml
	Text     string
	Kind     string
	Name     string
}

// Load reads the chart of the repository.
func Load(root string) (*Chart, error) {
	loaded, err := loader.LoadDir(path.Join(root, Folder))
	if err != nil {
		return nil, err
	}
	return &Chart{loaded}, nil
}

// AppVersion is the version of the programs that the chart installs.
func (c *Chart) AppVersion() string { return c.chart.Metadata.AppVersion }

// Render renders the chart with values laid over its own, as YAML. Values that
// the chart's schema refuses are an error.
func (c *Chart) Render(release Release, values string) (*Rendered, error) {
	given := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		return nil, fmt.Errorf("the values are not YAML: %w", err)
	}
	options := common.ReleaseOptions{Name: release.Name, Namespace: release.Namespace, IsInstall: true, Revision: 1}
	all, err := util.ToRenderValues(c.chart, given, options, nil)
	if err != nil {
		return nil, err
	}
	files, err := engine.Engine{}.RenderWithContext(context.Background(), c.chart, all)
	if err != nil {
		return nil, err
	}
	rendered := &Rendered{}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		name := path.Base(file)
		if name == "NOTES.txt" {
			rendered.Notes = files[file]
			continue
		}
		objects, err := split(name, files[file])
		if err != nil {
			return nil, err
		}
		rendered.Objects = append(rendered.Objects, objects...)
	}
	return rendered, nil
}

// split takes the documents of a template apart; those without an object are
// dropped.
func split(template, text string) ([]Object, error) {
	var objects []Object
	for _, document := range strings.Split("\n"+text, "\n---") {
		document = strings.TrimSpace(document)
		var head struct {
			Kind     string `json:"kind"`
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		}
		if err := yaml.Unmarshal([]byte(document), &head); err != nil {
			return nil, fmt.Errorf("%s does not render to YAML: %w\n%s", template, err, document)
		}
		if head.Kind == "" {
			continue
		}
		objects = append(objects, Object{Template: template, Text: document + "\n", Kind: head.Kind, Name: head.Metadata.Name})
	}
	return objects, nil
}
