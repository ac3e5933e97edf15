// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// place is a field that an object has or could have, with its schema.
type place struct {
	parent   map[string]any
	key      string
	schema   *apiextensionsv1.JSONSchemaProps
	required bool
}

// places lists the fields below an object, and of lists those of each item. A
// field that is not set is a place as well.
func places(parent map[string]any, schema *apiextensionsv1.JSONSchemaProps) []place {
	var all []place
	for _, name := range sortedKeys(schema.Properties) {
		child := schema.Properties[name]
		all = append(all, place{parent, name, &child, slices.Contains(schema.Required, name)})
		all = append(all, below(parent[name], &child)...)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		all = append(all, place{parent, "memory", schema.AdditionalProperties.Schema, false})
	}
	return all
}

func below(value any, schema *apiextensionsv1.JSONSchemaProps) []place {
	switch value := value.(type) {
	case map[string]any:
		return places(value, schema)
	case []any:
		var all []place
		for _, item := range value {
			all = append(all, below(item, schema.Items.Schema)...)
		}
		return all
	default:
		return nil
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func (p place) set(value any)     { p.parent[p.key] = value }
func (p place) value() any        { return p.parent[p.key] }
func (p place) list() []any       { list, _ := p.value().([]any); return list }
func (p place) integer() bool     { return p.schema.Type == "integer" }
func (p place) fields() bool      { return len(p.schema.Properties) > 0 }
func (p place) keyedList() bool   { return len(p.schema.XListMapKeys) > 0 }
func (p place) is(kind any) bool  { return fmt.Sprintf("%T", kind) == p.goType() }
func (p place) holdsFields() bool { _, is := p.value().(map[string]any); return is && p.fields() }

// goType is the type of a right value, as the decoder makes them.
func (p place) goType() string {
	return map[string]string{
		"integer": "int64", "string": "string", "boolean": "bool", "array": "[]interface {}", "object": "map[string]interface {}",
	}[p.schema.Type]
}

// damage is a way to break an object's shape, or to seem to.
type damage struct {
	name string
	// fits says where it can be done.
	fits func(place) bool
	do   func(*generator, place)
}

// damages are what people and programs get wrong in YAML. Some are right in
// places: nothing where a field may be left out, a number where a number or a
// text is taken.
var damages = []damage{
	{"another type", anywhere, func(g *generator, p place) {
		others := slices.DeleteFunc([]any{"5", int64(5), true, []any{}, map[string]any{}}, p.is)
		p.set(pick(g, others...))
	}},
	{mostlyLeftOut, func(p place) bool { return !p.required }, func(_ *generator, p place) { p.set(nil) }},
	{"null for what is required", func(p place) bool { return p.required }, func(_ *generator, p place) { p.set(nil) }},
	{"required and left out", func(p place) bool { return p.required }, func(_ *generator, p place) { delete(p.parent, p.key) }},
	{"unknown field", place.holdsFields, func(g *generator, p place) {
		names := sortedKeys(p.schema.Properties)
		p.value().(map[string]any)[pick(g, names...)+pick(g, "s", "Seconds", "_")] = int64(5)
	}},
	{"unknown word", func(p place) bool { return len(p.schema.Enum) > 0 }, func(g *generator, p place) {
		word := strings.Trim(string(pick(g, p.schema.Enum...).Raw), `"`)
		p.set(pick(g, strings.ToLower(word), word+" ", "Symfony", ""))
	}},
	{"below the minimum", func(p place) bool { return p.schema.Minimum != nil }, func(g *generator, p place) {
		p.set(int64(*p.schema.Minimum) - pick[int64](g, 1, 1, 1000))
	}},
	{"above the maximum", func(p place) bool { return p.schema.Maximum != nil }, func(g *generator, p place) {
		p.set(int64(*p.schema.Maximum) + pick[int64](g, 1, 1, 1000))
	}},
	{"no whole number", place.integer, func(g *generator, p place) {
		p.set(pick[any](g, 1.5, "30s", 1e30, int64(3_000_000_000), 1e300))
	}},
	{"text too long", func(p place) bool { return p.schema.MaxLength != nil }, func(_ *generator, p place) {
		p.set(strings.Repeat("a", int(*p.schema.MaxLength)+1))
	}},
	{"text too short", func(p place) bool { return p.schema.MinLength != nil }, func(_ *generator, p place) { p.set("") }},
	{"text against its pattern", func(p place) bool { return p.schema.Pattern != "" }, func(g *generator, p place) {
		p.set(pick[any](g, "a b", "a,b", "lots", "-", "é"))
	}},
	{"list too long", func(p place) bool { return p.schema.MaxItems != nil }, func(_ *generator, p place) {
		var items []any
		for i := range *p.schema.MaxItems + 1 {
			items = append(items, map[string]any{
				"integer": int64(1), "string": fmt.Sprint("a", i), "object": map[string]any{"name": fmt.Sprint("a", i)},
			}[p.schema.Items.Schema.Type])
		}
		p.set(items)
	}},
	{"item of another type", func(p place) bool { return p.schema.Type == "array" }, func(g *generator, p place) {
		p.set(append(slices.Clone(p.list()), pick[any](g, nil, true, []any{})))
	}},
	{"item twice in a keyed list", func(p place) bool { return p.keyedList() && len(p.list()) > 0 }, func(g *generator, p place) {
		p.set(append(slices.Clone(p.list()), pick(g, p.list()...)))
	}},
}

func anywhere(place) bool { return true }

// metadataDamages break what no schema describes.
var metadataDamages = []func(object, metadata map[string]any){
	func(_, m map[string]any) { delete(m, "name") },
	func(_, m map[string]any) { m["name"] = "Payments" },
	func(_, m map[string]any) { m["name"] = strings.Repeat("a", 64) },
	func(_, m map[string]any) { m["name"] = int64(5) },
	func(_, m map[string]any) { m["labels"] = map[string]any{"team": "a b"} },
	func(_, m map[string]any) { m["labels"] = map[string]any{"team": int64(5)} },
	func(_, m map[string]any) { m["labels"] = "team" },
	func(_, m map[string]any) { m["annotations"] = map[string]any{"not a name": "x"} },
	func(_, m map[string]any) { m["lables"] = map[string]any{} },
	func(o, _ map[string]any) { o["metadata"] = "payments" },
	func(o, _ map[string]any) { o["kind"] = "Queueworker" },
	func(o, _ map[string]any) { o["apiVersion"] = "queueworker.dev/v1" },
	func(o, _ map[string]any) { delete(o, "spec") },
	func(o, _ map[string]any) { o["specs"] = map[string]any{} },
}

var scalarLine = regexp.MustCompile(`(?m)^ +[A-Za-z]+: [^\n|>]+\n`)

// keyTwice repeats a line of a YAML document, so that a mapping has a key twice.
func keyTwice(g *generator, text string) string {
	line := pick(g, scalarLine.FindAllStringIndex(text, -1)...)
	return text[:line[1]] + text[line[0]:]
}
