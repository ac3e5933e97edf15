// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed intro.md
var intro string

// readme is the introduction and a table of the values, made from the comments
// of values.yaml. A value without a comment is an error.
func readme(values []byte) (string, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(values, &document); err != nil {
		return "", err
	}
	rows, err := rowsOf("", document.Content[0])
	if err != nil {
		return "", err
	}
	return intro + "| value | default | meaning |\n|---|---|---|\n" + strings.Join(rows, ""), nil
}

// rowsOf lists a map's values. One that has a comment is told as a whole, any
// other by its parts.
func rowsOf(prefix string, of *yaml.Node) ([]string, error) {
	var rows []string
	for i := 0; i < len(of.Content); i += 2 {
		key, value := of.Content[i], of.Content[i+1]
		path := prefix + key.Value
		comment := commentOf(key)
		switch {
		case comment != "":
			shown, err := literal(value)
			if err != nil {
				return nil, err
			}
			rows = append(rows, fmt.Sprintf("| `%s` | `%s` | %s |\n", path, shown, strings.ReplaceAll(comment, "|", `\|`)))
		case value.Kind == yaml.MappingNode && len(value.Content) > 0:
			below, err := rowsOf(path+".", value)
			if err != nil {
				return nil, err
			}
			rows = append(rows, below...)
		default:
			return nil, fmt.Errorf("values.yaml:%d: %s has no comment", key.Line, path)
		}
	}
	return rows, nil
}

// commentOf is the last paragraph above a key: one further up is about the file.
func commentOf(key *yaml.Node) string {
	paragraphs := strings.Split(key.HeadComment, "\n\n")
	var words []string
	for _, line := range strings.Split(paragraphs[len(paragraphs)-1], "\n") {
		words = append(words, strings.Fields(strings.TrimPrefix(line, "#"))...)
	}
	return strings.Join(words, " ")
}

func literal(value *yaml.Node) (string, error) {
	var decoded any
	if err := value.Decode(&decoded); err != nil {
		return "", err
	}
	text, err := json.Marshal(decoded)
	return string(text), err
}
