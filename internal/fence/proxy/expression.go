// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// expression is one compiled CEL expression of the configuration.
type expression struct{ program cel.Program }

// evalCost bounds what one evaluation may do; a lookup of a long list needs a
// few thousand steps, a key a few dozen.
const (
	keyCost   = 10_000
	replyCost = 1_000_000
)

// compile takes an expression over the given variables that gives one of the
// wanted types, or something whose type is known only when it runs. An error
// names the place in the expression.
func compile(text string, cost uint64, variables []cel.EnvOption, want ...*cel.Type) (*expression, error) {
	env, err := cel.NewEnv(variables...)
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(text)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	if out := ast.OutputType(); len(want) > 0 && !out.IsExactType(cel.DynType) && !anyType(want, out) {
		return nil, &wrongType{text, out}
	}
	program, err := env.Program(ast, cel.CostLimit(cost))
	if err != nil {
		return nil, err
	}
	return &expression{program}, nil
}

// wrongType is an expression that compiles and gives something else.
type wrongType struct {
	text string
	out  *cel.Type
}

func (w *wrongType) Error() string { return fmt.Sprintf("the expression %q gives %s", w.text, w.out) }

func anyType(types []*cel.Type, out *cel.Type) bool {
	for _, t := range types {
		if out.IsExactType(t) {
			return true
		}
	}
	return false
}

func (e *expression) eval(over map[string]any) (any, error) {
	out, _, err := e.program.Eval(over)
	if err != nil {
		return nil, withoutValues(err)
	}
	return out.Value(), nil
}

var errValue = errors.New("a value does not fit the expression")

// withoutValues keeps what an error says of the expression. Others quote what
// they stumbled on, and that is a body's, which no log may hold.
func withoutValues(err error) error {
	for _, plain := range []string{"no such key", "no such overload", "no such attribute", "operation cancelled"} {
		if strings.HasPrefix(err.Error(), plain) {
			return err
		}
	}
	return errValue
}

// json is the expression's value as a JSON text, with whole numbers as they are.
func (e *expression) json(over map[string]any) ([]byte, error) {
	out, _, err := e.program.Eval(over)
	if err != nil {
		return nil, withoutValues(err)
	}
	return json.Marshal(native(out))
}

func native(value ref.Val) any {
	switch v := value.(type) {
	case traits.Mapper:
		object := map[string]any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			name := it.Next()
			object[fmt.Sprint(name.Value())] = native(v.Get(name))
		}
		return object
	case traits.Lister:
		list := []any{}
		for it := v.Iterator(); it.HasNext() == types.True; {
			list = append(list, native(it.Next()))
		}
		return list
	case types.Null:
		return nil
	}
	return value.Value()
}

// headersOf are the first values by lower-case name.
func headersOf(h http.Header) map[string]string {
	headers := make(map[string]string, len(h))
	for name := range h {
		headers[strings.ToLower(name)] = h.Get(name)
	}
	return headers
}

// jsonOf keeps whole numbers whole: as a float, an id of 17 digits would become
// the id of another order. What is no JSON is null.
func jsonOf(body []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		value = nil
	}
	return plain(value)
}

func plain(value any) (any, error) {
	switch v := value.(type) {
	case json.Number:
		if whole, err := v.Int64(); err == nil {
			return whole, nil
		}
		if !strings.ContainsAny(v.String(), ".eE") {
			return nil, fmt.Errorf("the body holds the number %s, which no 64 bits hold: send it as a string", v)
		}
		return v.Float64()
	case map[string]any:
		for name, inner := range v {
			p, err := plain(inner)
			if err != nil {
				return nil, err
			}
			v[name] = p
		}
	case []any:
		for i, inner := range v {
			p, err := plain(inner)
			if err != nil {
				return nil, err
			}
			v[i] = p
		}
	}
	return value, nil
}
