// SPDX-License-Identifier: Apache-2.0

package managerconfig

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	yamlstream "k8s.io/apimachinery/pkg/util/yaml"
	strictjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Decode reads a configuration file, which must state its apiVersion and kind.
// What it leaves out keeps its default. Unknown and repeated fields, wrong
// types and a second document are errors, all of them told at once where
// possible. The result is not validated yet.
func Decode(file []byte) (Config, error) {
	document, err := singleDocument(file)
	if err != nil {
		return Config{}, err
	}
	asJSON, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return Config{}, fmt.Errorf("not YAML: %w", err)
	}
	config := Default()
	config.APIVersion, config.Kind = "", ""
	strict, err := strictjson.UnmarshalStrict(asJSON, &config)
	if err != nil {
		return Config{}, wrongType(err)
	}
	return config, errors.Join(strict...)
}

// singleDocument is the only document of the file; one that holds nothing but
// comments is an error, too, since it states no kind.
func singleDocument(file []byte) ([]byte, error) {
	reader := yamlstream.NewYAMLReader(bufio.NewReader(bytes.NewReader(file)))
	var found []byte
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("not YAML: %w", err)
		}
		if value, err := yaml.YAMLToJSON(document); err == nil && string(value) == "null" {
			continue
		}
		if found != nil {
			return nil, errors.New("more than one document: expected a single " + Kind)
		}
		found = document
	}
	if found == nil {
		return nil, fmt.Errorf("empty: expected at least apiVersion: %s and kind: %s", APIVersion, Kind)
	}
	return found, nil
}

func wrongType(err error) error {
	var mismatch *json.UnmarshalTypeError
	if !errors.As(err, &mismatch) {
		return err
	}
	field := mismatch.Field
	if field == "" {
		field = "the document"
	}
	found := mismatch.Value // as encoding/json words it: string, number 1.5, bool, array, object
	switch found {
	case "array":
		found = "list"
	case "object":
		found = "map of fields"
	}
	return fmt.Errorf("%s: found a %s, expected %s", field, found, typeName(mismatch))
}

func typeName(mismatch *json.UnmarshalTypeError) string {
	switch kind := mismatch.Type.Kind().String(); kind {
	case "struct":
		return "a map of fields"
	case "slice":
		return "a list"
	case "bool":
		return "true or false"
	case "string":
		return "a string (quote it)"
	default:
		return "a whole number (" + kind + ")"
	}
}
