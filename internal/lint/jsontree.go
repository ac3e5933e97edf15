// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	nodes "go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// parseJSON reads the JSON values of a document. JSON is nearly YAML, but its
// escapes and tabs are not, and many values may follow each other.
func (d document) parseJSON() ([]tree, *Fault) {
	var trees []tree
	r := jsonReader{text: d.text, decoder: json.NewDecoder(bytes.NewReader(d.text))}
	r.decoder.UseNumber()
	for {
		start := r.decoder.InputOffset()
		node, err := r.next(0)
		if errors.Is(err, io.EOF) {
			return trees, nil
		}
		t := tree{node: node, offset: d.offset}
		if err == nil {
			err = utiljson.Unmarshal(d.text[start:r.decoder.InputOffset()], &t.value)
		}
		if err != nil {
			return nil, d.jsonFault(err, r.decoder.InputOffset())
		}
		trees = append(trees, t)
	}
}

func (d document) jsonFault(err error, offset int64) *Fault {
	line := d.offset + lineAt(d.text, int(min(offset, int64(len(d.text)))))
	return &Fault{Line: line, Message: "is not JSON: " + strings.TrimPrefix(oneLine(err.Error()), "json: ") + d.placeholderHint()}
}

// jsonReader builds nodes from JSON tokens.
type jsonReader struct {
	text    []byte
	decoder *json.Decoder
	// line is the line of the position up to which lines were counted.
	line, position int
}

var errUnfinished = errors.New("unexpected end of the input")

// next reads one value; io.EOF means that there is none.
func (r *jsonReader) next(depth int) (*nodes.Node, error) {
	token, err := r.decoder.Token()
	if err != nil {
		return nil, err
	}
	node := &nodes.Node{Kind: nodes.ScalarNode, Line: r.currentLine()}
	switch token := token.(type) {
	case json.Delim:
		if depth >= maxDepth {
			return nil, fmt.Errorf("nested deeper than %d levels", maxDepth)
		}
		node.Kind = nodes.MappingNode
		if token == '[' {
			node.Kind = nodes.SequenceNode
		}
		return node, r.fill(node, depth+1)
	case string:
		node.Value = token
	}
	return node, nil
}

// fill reads the members up to the closing bracket.
func (r *jsonReader) fill(node *nodes.Node, depth int) error {
	for r.decoder.More() {
		member, err := r.next(depth)
		if err != nil {
			return unfinished(err)
		}
		node.Content = append(node.Content, member)
	}
	_, err := r.decoder.Token()
	return unfinished(err)
}

func unfinished(err error) error {
	if errors.Is(err, io.EOF) {
		return errUnfinished
	}
	return err
}

func (r *jsonReader) currentLine() int {
	offset := min(int(r.decoder.InputOffset()), len(r.text))
	r.line += bytes.Count(r.text[r.position:offset], []byte("\n"))
	r.position = offset
	return r.line + 1
}
