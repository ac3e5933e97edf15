// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"strconv"
	"strings"

	nodes "go.yaml.in/yaml/v3"
)

const (
	// maxDepth is the deepest nesting that is read; a pod template needs 15.
	maxDepth = 200
	// maxExpanded is the most, in bytes, that a document may be with its aliases
	// written out.
	maxExpanded = 2 * maxInput
	// maxValues is the most values of one document; each costs some 200 bytes.
	maxValues = 2_000_000
	// nodeSize is what a node counts beside its text.
	nodeSize = 16
)

// crowded says, without parsing, whether a document can hold more than
// maxValues values: each begins after one of these.
func crowded(text []byte) bool {
	values := 0
	for i, c := range text {
		switch c {
		case ',', ':', '[', '{', '\n':
			values++
		case '-', '?':
			if i+1 < len(text) && (text[i+1] == ' ' || text[i+1] == '\t') {
				values++
			}
		}
	}
	return values > maxValues
}

// measure refuses, before anything expands it, a document that is too deep, that
// a few aliases blow up, or that has keys which JSON cannot have.
func measure(root *nodes.Node, offset int) *Fault {
	m := measurer{anchors: map[*nodes.Node]extent{}}
	total := m.measure(root, 0)
	switch {
	case m.problem != "":
		return &Fault{Line: offset + m.line, Message: m.problem}
	case total.size > maxExpanded:
		return &Fault{Line: offset + max(root.Line, 1), Message: fmt.Sprintf("is larger than %d MiB with its aliases written out", maxExpanded>>20)}
	default:
		return nil
	}
}

// extent is how large and how deep a node is with its aliases written out.
type extent struct {
	size, height int
	open         bool // still being measured
}

// measurer remembers the extent of each anchor, so that measuring takes one
// pass however often an anchor is used.
type measurer struct {
	anchors map[*nodes.Node]extent
	problem string
	line    int
}

func (m *measurer) measure(n *nodes.Node, depth int) extent {
	if n.Kind == nodes.AliasNode {
		anchored := m.anchors[n.Alias]
		if anchored.open {
			m.stop(n, fmt.Sprintf("anchor %s contains itself", n.Value))
		}
		m.limit(n, depth+anchored.height)
		return anchored
	}
	m.limit(n, depth)
	if m.problem != "" {
		return extent{}
	}
	if n.Anchor != "" {
		m.anchors[n] = extent{open: true}
	}
	total := extent{size: nodeSize + len(n.Value)}
	for i, child := range n.Content {
		if n.Kind == nodes.MappingNode && i%2 == 0 && resolve(child).Kind != nodes.ScalarNode {
			m.stop(child, "a key must be a word, found a mapping or a list")
		}
		inner := m.measure(child, depth+1)
		total.size = min(total.size+inner.size, maxExpanded+1)
		total.height = max(total.height, inner.height+1)
	}
	if n.Anchor != "" {
		m.anchors[n] = total
	}
	return total
}

func (m *measurer) limit(n *nodes.Node, depth int) {
	if depth > maxDepth {
		m.stop(n, fmt.Sprintf("nested deeper than %d levels", maxDepth))
	}
}

func (m *measurer) stop(n *nodes.Node, problem string) {
	if m.problem == "" {
		m.problem, m.line = problem, n.Line
	}
}

// duplicates finds keys that a mapping, or any inside it, holds twice. The last
// one would win without a word.
func duplicates(n *nodes.Node, offset int, path string) []Fault {
	faults := repeated(n, offset, path)
	switch n.Kind {
	case nodes.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			faults = append(faults, duplicates(n.Content[i+1], offset, join(path, n.Content[i].Value))...)
		}
	case nodes.SequenceNode:
		for i, item := range n.Content {
			faults = append(faults, duplicates(item, offset, path+"["+strconv.Itoa(i)+"]")...)
		}
	}
	return faults
}

// repeated finds the keys that one mapping holds twice.
func repeated(n *nodes.Node, offset int, path string) []Fault {
	if n.Kind != nodes.MappingNode {
		return nil
	}
	var faults []Fault
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		line, again := first[key.Value]
		if !again {
			first[key.Value] = key.Line
		} else if key.Value != mergeKey {
			faults = append(faults, Fault{
				Line: offset + key.Line, Field: join(path, key.Value),
				Message: fmt.Sprintf("is set twice, first on line %d: expected one value", offset+line),
			})
		}
	}
	return faults
}

// mergeKey pulls another mapping's keys in.
const mergeKey = "<<"

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// lineOf is the line, in its document, of the deepest part of a field path that
// exists: a field that is missing shows where its parent begins.
func lineOf(root *nodes.Node, path string) int {
	line, n := max(root.Line, 1), root
	for _, step := range steps(path) {
		key, child := descend(n, step)
		if child == nil {
			break
		}
		line, n = key.Line, child
	}
	return line
}

// steps cuts spec.containers[0].limits[memory] into its names.
func steps(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
}

// descend finds a member and the node that says where it is.
func descend(n *nodes.Node, step string) (key, value *nodes.Node) {
	n = resolve(n)
	switch n.Kind {
	case nodes.MappingNode:
		return member(n, step, 0)
	case nodes.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], n.Content[i]
		}
	}
	return nil, nil
}

func member(n *nodes.Node, name string, depth int) (key, value *nodes.Node) {
	if depth > maxDepth {
		return nil, nil
	}
	for i := len(n.Content) - 2; i >= 0; i -= 2 {
		if n.Content[i].Value == name {
			return n.Content[i], n.Content[i+1]
		}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value != mergeKey {
			continue
		}
		merged := resolve(n.Content[i+1])
		sources := []*nodes.Node{merged}
		if merged.Kind == nodes.SequenceNode {
			sources = merged.Content
		}
		for _, source := range sources {
			if source = resolve(source); source.Kind != nodes.MappingNode {
				continue
			}
			if key, value := member(source, name, depth+1); value != nil {
				return key, value
			}
		}
	}
	return nil, nil
}

func resolve(n *nodes.Node) *nodes.Node {
	if n.Kind == nodes.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}
