// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/queueworker/operator/api/v1alpha1"
)

const (
	ourKind    = v1alpha1.Kind
	ourList    = v1alpha1.Kind + "List"
	kubeList   = "List"
	ourVersion = v1alpha1.GroupName + "/v1alpha1"
)

// add takes a document's values into the input.
func (in *Input) add(d document) {
	trees, fault := d.parse()
	if fault != nil {
		in.fault(*fault)
		return
	}
	for _, t := range trees {
		in.place(t)
	}
}

// place sorts one value: ours, a list, another kind, or a mistake.
func (in *Input) place(t tree) {
	line := t.offset + max(t.node.Line, 1)
	m, isObject := t.value.(map[string]any)
	if !isObject {
		if t.value != nil {
			in.fault(Fault{Line: line, Message: "is not a Kubernetes object: expected a mapping with apiVersion and kind, found " + describe(t.value)})
		}
		return
	}
	if twice := identityTwice(t); twice != nil {
		in.fault(*twice)
		return
	}
	id := identityOf(m)
	switch problem := id.problem(); {
	case problem != "":
		in.fault(Fault{Line: t.offset + lineOf(t.node, id.wrongField()), Field: id.wrongField(), Message: problem})
	case id.list():
		in.addItems(t, m)
	case id.ours():
		in.Objects = append(in.Objects, in.object(t, m))
	default:
		in.PassedOver++
	}
}

// identityTwice keeps an object from being taken for another kind because a
// second kind or apiVersion hides the first.
func identityTwice(t tree) *Fault {
	for _, f := range repeated(resolve(t.node), t.offset, "") {
		if f.Field == "kind" || f.Field == "apiVersion" {
			return &f
		}
	}
	return nil
}

// addItems takes the items of a list as if they stood alone.
func (in *Input) addItems(t tree, m map[string]any) {
	items, isList := m["items"].([]any)
	key, node := member(resolve(t.node), "items", 0)
	if !isList || node == nil {
		if m["items"] != nil {
			in.fault(Fault{Line: t.offset + lineOf(t.node, "items"), Field: "items", Message: "expected a list, found " + describe(m["items"])})
		}
		return
	}
	node = resolve(node)
	for i, item := range items {
		at := key
		if i < len(node.Content) {
			at = node.Content[i]
		}
		in.place(tree{value: item, node: resolve(at), offset: t.offset})
	}
}

// identity is what an object says it is.
type identity struct{ apiVersion, kind string }

func identityOf(m map[string]any) identity {
	apiVersion, _ := m["apiVersion"].(string)
	kind, _ := m["kind"].(string)
	return identity{apiVersion, kind}
}

func (id identity) group() string {
	group, _, found := strings.Cut(id.apiVersion, "/")
	if !found {
		return ""
	}
	return group
}

func (id identity) ours() bool { return id.apiVersion == ourVersion && id.kind == ourKind }

func (id identity) list() bool {
	return id == identity{"v1", kubeList} || id == identity{ourVersion, ourList}
}

// problem says why an object that is meant to be ours is not, so that a slip of
// the pen is not passed over as somebody else's kind.
func (id identity) problem() string {
	if id.ours() || id.list() {
		return ""
	}
	meant := near(id.kind, ourKind) || near(id.kind, ourList)
	switch group := id.group(); {
	case group == v1alpha1.GroupName && id.apiVersion != ourVersion:
		return fmt.Sprintf("is %s, which does not exist: expected %s", id.apiVersion, ourVersion)
	case group == v1alpha1.GroupName && id.kind == "":
		return "is missing: expected " + ourKind
	case group == v1alpha1.GroupName:
		return fmt.Sprintf("is %s, which does not exist in %s: expected %s", id.kind, ourVersion, ourKind)
	case meant && id.apiVersion == "":
		return "is missing: expected " + ourVersion
	case meant && (group == "" || near(group, v1alpha1.GroupName)):
		return fmt.Sprintf("is %s: expected %s", id.apiVersion, ourVersion)
	default:
		return ""
	}
}

func (id identity) wrongField() string {
	if id.apiVersion == ourVersion {
		return "kind"
	}
	return "apiVersion"
}

// near says whether two words differ by case and at most two letters.
func near(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if len(a) > len(b)+2 || len(b) > len(a)+2 {
		return false
	}
	return distance(a, b) <= 2
}

// distance is the number of letters to insert, delete or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// describe names a value by its type, as users know it.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case string:
		return "the text " + strconv.Quote(shortened(v))
	case bool:
		return fmt.Sprintf("the word %v", v)
	case []any:
		return "a list"
	case map[string]any:
		return "a mapping"
	default:
		return fmt.Sprintf("the number %v", v)
	}
}
