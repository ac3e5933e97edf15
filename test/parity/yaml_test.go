// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"encoding/json"

	"sigs.k8s.io/yaml"
)

func yamlOf(object any) string {
	text, err := yaml.Marshal(object)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func jsonOf(object any) string {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return string(text)
}
