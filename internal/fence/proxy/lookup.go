// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/google/cel-go/cel"
	"golang.org/x/net/http/httpguts"
)

// Lookup is how a provider is asked what became of a key. Path and Body are
// templates: {key} stands for the key as the app named it, {sentKey} for what
// KeyHeader carried, which differs after a release. The expressions read the
// reply and the key.
type Lookup struct {
	Method  string // GET, or POST for a search that has no effect
	Path    string // behind the provider's base URL, with its query
	Body    string
	Headers []LookupHeader

	Succeeded  string // CEL, bool: the effect is there
	Processing string // CEL, bool: the original is still at work
	Absent     string // CEL, bool: there is nothing
	Refused    string // CEL, bool: a final failure, no effect
	ProviderID string // CEL, string: the provider's id for the effect
	Result     string // CEL: the body that copies of the call are told; "" = none
}

// LookupHeader is a header with its value, or with the file that holds it. The
// file is read each time, so that a secret may change.
type LookupHeader struct{ Name, Value, File string }

// What a template may hold.
const (
	placeKey     = "{key}"
	placeSentKey = "{sentKey}"
)

var lookupVariables = append([]cel.EnvOption{cel.Variable("key", cel.StringType), cel.Variable("sentKey", cel.StringType)}, replyVariables...)

// Fields of a lookup that may be wrong are named as the configuration names
// them.
func (l *Lookup) validate(keyHeader string) error {
	template := l.Path + l.Body
	switch {
	case l.Method != http.MethodGet && l.Method != http.MethodPost:
		return fmt.Errorf("lookup.method: %q: must be GET or POST", l.Method)
	case !strings.HasPrefix(l.Path, "/"):
		return fmt.Errorf("lookup.path: %q: must begin with /; it goes behind the provider's url", l.Path)
	case strings.ContainsAny(l.Path, "#\\ \t\r\n") || hasDots(l.Path):
		return fmt.Errorf("lookup.path: %q: must hold neither spaces, # or \\, nor . or .. as a segment", l.Path)
	case l.Body != "" && l.Method != http.MethodPost:
		return fmt.Errorf("lookup.body: a %s has no body: leave it out or set lookup.method to POST", l.Method)
	case strings.Contains(template, placeKey) == strings.Contains(template, placeSentKey):
		return fmt.Errorf("lookup.path: %q: must hold %s (what the app's own request carries) or %s (what keyHeader carries), one of the two: without it every key would be answered alike",
			l.Path, placeKey, placeSentKey)
	case strings.Contains(template, placeSentKey) && keyHeader == "":
		return fmt.Errorf("lookup.path: %q: %s is what keyHeader carries, and no keyHeader is set: set it or use %s", l.Path, placeSentKey, placeKey)
	case l.Succeeded == "":
		return errors.New("lookup.succeeded: \"\": an expression is needed, since a lookup is for finding effects, as status == 200 && body.state == \"paid\"")
	}
	if err := l.validateHeaders(); err != nil {
		return err
	}
	_, err := l.compile()
	return err
}

func hasDots(path string) bool {
	path, _, _ = strings.Cut(path, "?")
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

func (l *Lookup) validateHeaders() error {
	for i, h := range l.Headers {
		switch {
		case !httpguts.ValidHeaderFieldName(h.Name) || hopByHop(h.Name):
			return fmt.Errorf("lookup.headers[%d].name: %q: is no header that can be sent", i, h.Name)
		case (h.Value == "") == (h.File == ""):
			return fmt.Errorf("lookup.headers[%d]: %s needs a value or a file, one of the two", i, h.Name)
		case h.File != "" && !filepath.IsAbs(h.File):
			return fmt.Errorf("lookup.headers[%d].file: %q: must be an absolute path", i, h.File)
		case !httpguts.ValidHeaderFieldValue(h.Value):
			return fmt.Errorf("lookup.headers[%d].value: holds a character that no header may hold", i)
		}
	}
	return nil
}

// lookup is a Lookup that is ready to be used.
type lookup struct {
	*Lookup
	succeeded, processing, absent, refused *expression // nil: never
	id, result                             *expression // nil: none
}

func (l *Lookup) compile() (*lookup, error) {
	c := &lookup{Lookup: l}
	for _, e := range []struct {
		field, text string
		to          **expression
	}{
		{"succeeded", l.Succeeded, &c.succeeded}, {"processing", l.Processing, &c.processing},
		{"absent", l.Absent, &c.absent}, {"refused", l.Refused, &c.refused},
	} {
		if e.text == "" {
			continue
		}
		var err error
		if *e.to, err = compile(e.text, replyCost, lookupVariables, cel.BoolType); err != nil {
			var wrong *wrongType
			if errors.As(err, &wrong) {
				err = fmt.Errorf("%w, it must be true or false: compare it with something", err)
			}
			return nil, fmt.Errorf("lookup.%s: %w", e.field, err)
		}
	}
	var err error
	if l.ProviderID != "" {
		if c.id, err = compileID(l.ProviderID, lookupVariables); err != nil {
			return nil, fmt.Errorf("lookup.providerId: %w", err)
		}
	}
	if l.Result != "" {
		if c.result, err = compile(l.Result, replyCost, lookupVariables); err != nil {
			return nil, fmt.Errorf("lookup.result: %w", err)
		}
	}
	return c, nil
}

// body is the template with the key as part of a JSON text.
func (l *Lookup) bodyFor(key, sentKey string) string {
	return fill(l.Body, key, sentKey, func(s string) string {
		quoted, _ := json.Marshal(s)
		return string(quoted[1 : len(quoted)-1])
	})
}

func fill(template, key, sentKey string, escape func(string) string) string {
	return strings.NewReplacer(placeKey, escape(key), placeSentKey, escape(sentKey)).Replace(template)
}
