// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/google/cel-go/cel"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/problem"
)

// headerKey is where an app puts its key.
const headerKey = "Idempotency-Key"

// keyVariables are what a key may be made of: the path behind the provider's
// name, without the query; headers by lower-case name, the first value of each;
// the body's JSON, or null.
var keyVariables = []cel.EnvOption{
	cel.Variable("method", cel.StringType), cel.Variable("path", cel.StringType),
	cel.Variable("headers", cel.MapType(cel.StringType, cel.StringType)), cel.Variable("body", cel.DynType),
}

// compileKey takes the expression that makes the key from the request, for apps
// that cannot send one.
func compileKey(text string) (*expression, error) {
	e, err := compile(text, keyCost, keyVariables, cel.StringType)
	var wrong *wrongType
	if errors.As(err, &wrong) {
		return nil, fmt.Errorf("%w, a key is a string: put string(…) around it", err)
	}
	return e, err
}

func (e *expression) key(r *http.Request, path string, body []byte) (string, error) {
	value, err := jsonOf(body)
	if err != nil {
		return "", err
	}
	out, err := e.eval(map[string]any{"method": r.Method, "path": path, "headers": headersOf(r.Header), "body": value})
	if err != nil {
		return "", fmt.Errorf("the key's expression cannot be evaluated for this request: %w", err)
	}
	key, ok := out.(string)
	if !ok {
		return "", fmt.Errorf("the key's expression gives %T, not a string", out)
	}
	return key, nil
}

// keyOf is the request's key: the header's, or else the expression's.
func (to *route) keyOf(r *http.Request, path string, body []byte) (key fence.Key, kind string, err error) {
	key.Scope = to.Scope
	switch values := r.Header.Values(headerKey); {
	case len(values) > 1:
		return key, problem.Key, fmt.Errorf("the header %s comes %d times", headerKey, len(values))
	case len(values) == 1:
		key.ID = values[0]
	case to.key != nil:
		if key.ID, err = to.key.key(r, path, body); err != nil {
			return key, problem.Key, err
		}
	default:
		return key, problem.NoKey, errors.New("the header " + headerKey + " is missing: make the key when the job is dispatched, from the business operation")
	}
	return key, problem.Key, key.Validate()
}
