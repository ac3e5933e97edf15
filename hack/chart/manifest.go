// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/queueworker/operator/hack/chart/render"
)

// head is the namespace, which Helm makes by itself when it is asked to.
const head = `# Rendered from charts/queueworker-operator by make generate; do not edit. For settings use the chart.
apiVersion: v1
kind: Namespace
metadata:
  name: queueworker-system
  labels:
    pod-security.kubernetes.io/enforce: restricted
`

// order is that of the kinds that others need when they arrive.
var order = []string{"CustomResourceDefinition", "ServiceAccount", "Secret", "ConfigMap", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Service"}

// manifest is the chart with its own values, for those who do not use Helm.
func manifest(chart *render.Chart) (string, error) {
	rendered, err := chart.Render(render.Default, "")
	if err != nil {
		return "", err
	}
	slices.SortStableFunc(rendered.Objects, func(a, b render.Object) int { return cmp.Compare(place(a.Kind), place(b.Kind)) })
	text := strings.Builder{}
	text.WriteString(head)
	for _, object := range rendered.Objects {
		text.WriteString("---\n" + object.Text)
	}
	return text.String(), nil
}

func place(kind string) int {
	if i := slices.Index(order, kind); i >= 0 {
		return i
	}
	return len(order)
}
