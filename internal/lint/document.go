// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	nodes "go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// document is one YAML document or one run of JSON values of a file.
type document struct {
	text []byte
	// offset is the number of lines of the file before the document.
	offset int
}

// tree is one value twice: as the API server would read it, and as nodes that
// know their lines.
type tree struct {
	value  any
	node   *nodes.Node
	offset int
}

// separator matches what begins a line between documents.
const separator = "---"

// split cuts a file at its document separators, so that a fault in one document
// leaves the others readable.
func split(data []byte) ([]document, []Fault) {
	var documents []document
	var faults []Fault
	start, offset := 0, 0
	cut := func(end, line int) {
		if body := data[start:end]; !onlyDirectives(body) {
			documents = append(documents, document{text: body, offset: offset})
			offset, start = line, end
		}
	}
	line := 0
	for position := 0; position < len(data); line++ {
		end := len(data)
		if i := bytes.IndexByte(data[position:], '\n'); i >= 0 {
			end = position + i + 1
		}
		switch text := string(data[position:min(end, position+80)]); {
		case strings.HasPrefix(text, separator):
			if rest := strings.TrimSpace(text[len(separator):]); rest != "" && rest[0] != '#' {
				faults = append(faults, Fault{Line: line + 1, Message: "a document separator must stand alone on its line, found " + strconv.Quote(strings.TrimSpace(text))})
			}
			cut(position, line)
		case strings.TrimRight(text, " \t\r\n") == "...":
			cut(end, line+1)
		}
		position = end
	}
	cut(len(data), line)
	return documents, faults
}

// onlyDirectives says whether a piece holds nothing but blank lines, comments,
// separators and %YAML lines.
func onlyDirectives(text []byte) bool {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && line[0] != '%' && !bytes.HasPrefix(line, []byte(separator)) {
			return false
		}
	}
	return true
}

// parse reads the values of a document: one of YAML, any number of JSON.
func (d document) parse() ([]tree, *Fault) {
	if crowded(d.text) {
		return nil, &Fault{Line: d.offset + 1, Message: fmt.Sprintf("may hold more than %d values in one document: split it", maxValues)}
	}
	var jsonFault *Fault
	if trimmed := bytes.TrimLeft(d.text, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
		trees, fault := d.parseJSON()
		if fault == nil {
			return trees, nil
		}
		jsonFault = fault
	}
	t, fault := d.parseYAML()
	switch {
	case fault == nil && t.node == nil:
		return nil, nil
	case fault == nil:
		return []tree{t}, nil
	case jsonFault != nil:
		return nil, jsonFault // flow-style YAML is rare, broken JSON is not
	default:
		return nil, fault
	}
}

func (d document) parseYAML() (tree, *Fault) {
	t := tree{offset: d.offset}
	var root nodes.Node
	decoder := nodes.NewDecoder(bytes.NewReader(d.text))
	if err := decoder.Decode(&root); errors.Is(err, io.EOF) {
		return t, nil
	} else if err != nil {
		return t, d.syntaxFault(err)
	}
	if err := decoder.Decode(&nodes.Node{}); !errors.Is(err, io.EOF) { // kubectl would ignore what follows
		return t, d.syntaxFault(cmp.Or(err, errMore))
	}
	t.node = &root
	if len(root.Content) == 1 {
		t.node = root.Content[0]
	}
	if fault := measure(t.node, d.offset); fault != nil {
		fault.Message += d.placeholderHint()
		return t, fault
	}
	asJSON, err := yaml.YAMLToJSON(d.text)
	if err != nil {
		return t, d.syntaxFault(err)
	}
	if err := utiljson.Unmarshal(asJSON, &t.value); err != nil {
		return t, d.syntaxFault(err)
	}
	return t, nil
}

var errMore = errors.New("more than one value in a document")

var yamlLine = regexp.MustCompile(`^line (\d+): `)

// syntaxFault turns a parser's error into a fault at its line of the file.
func (d document) syntaxFault(err error) *Fault {
	message := oneLine(err.Error())
	for _, prefix := range []string{"error converting YAML to JSON: ", "yaml: ", "unmarshal errors: "} {
		message = strings.TrimPrefix(message, prefix)
	}
	line := 1
	if m := yamlLine.FindStringSubmatch(message); m != nil {
		line, _ = strconv.Atoi(m[1])
		message = message[len(m[0]):]
	}
	return &Fault{Line: d.offset + line, Message: "is not YAML: " + message + d.placeholderHint()}
}

// renderFirst is the advice for a file that is still a template.
const renderFirst = "templates must be rendered first, as in: helm template . | kubectl queueworker lint -"

// placeholders are what template engines and shells replace.
var placeholders = []string{"{{", "${"}

// placeholderHint says that a document which cannot be read is a template.
func (d document) placeholderHint() string {
	for _, p := range placeholders {
		if i := bytes.Index(d.text, []byte(p)); i >= 0 {
			return fmt.Sprintf("; line %d holds the placeholder %s: %s", d.offset+lineAt(d.text, i), p, renderFirst)
		}
	}
	return ""
}
