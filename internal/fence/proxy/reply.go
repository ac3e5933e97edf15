// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/google/cel-go/cel"
)

// replyVariables are what an expression about a provider's reply may read:
// headers by lower-case name, the first value of each; the body's JSON, or null.
var replyVariables = []cel.EnvOption{
	cel.Variable("status", cel.IntType),
	cel.Variable("headers", cel.MapType(cel.StringType, cel.StringType)), cel.Variable("body", cel.DynType),
}

var errNoID = errors.New("the id is neither a string nor a whole number")

// compileID takes the expression that finds the provider's own id in a reply.
func compileID(text string, variables []cel.EnvOption) (*expression, error) {
	return compile(text, replyCost, variables, cel.StringType, cel.IntType)
}

// id is the provider's own name for the effect.
func (e *expression) id(over map[string]any) (string, error) {
	out, err := e.eval(over)
	if err != nil {
		return "", err
	}
	switch v := out.(type) {
	case string:
		return v, nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	}
	return "", errNoID
}

// ofReply is a reply as expressions see it.
func ofReply(status int, header http.Header, body []byte) (map[string]any, error) {
	value, err := jsonOf(body)
	if err != nil {
		return nil, err
	}
	return map[string]any{"status": int64(status), "headers": headersOf(header), "body": value}, nil
}
