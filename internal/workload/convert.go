// SPDX-License-Identifier: Apache-2.0

package workload

import "k8s.io/apimachinery/pkg/runtime"

// alwaysWritten are structs that the API types write even when they are empty.
// Applied like that, they would be owned.
var alwaysWritten = map[string]bool{"metadata": true, "resources": true, "status": true}

// toMap turns a typed object into what a person would have written.
func toMap(object any) (map[string]any, error) {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	prune(m)
	return m, nil
}

func prune(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, child := range value {
			prune(child)
			m, isMap := child.(map[string]any)
			if child == nil || isMap && len(m) == 0 && alwaysWritten[key] {
				delete(value, key)
			}
		}
	case []any:
		for _, child := range value {
			prune(child)
		}
	}
}
