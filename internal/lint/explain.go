// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// explainer says what the schema refuses in the words of somebody who writes
// YAML: what was found and what was expected.
type explainer struct {
	value  map[string]any
	fields func(path string) []string
}

// faults explains the errors, each fault once. Their lines are not set.
func (e explainer) faults(errs field.ErrorList) []Fault {
	var faults []Fault
	known := map[string]bool{}
	add := func(f Fault, key string) {
		if !known[key] {
			faults = append(faults, f)
		}
		known[f.Field], known[f.Field+f.Message] = true, true
	}
	for _, err := range errs {
		if f := e.fault(err); !vague.MatchString(err.Detail) {
			add(f, f.Field+f.Message)
		}
	}
	for _, err := range errs {
		if f := e.fault(err); vague.MatchString(err.Detail) {
			add(f, f.Field)
		}
	}
	return faults
}

var (
	wrongType  = regexp.MustCompile(`must be of type (\w+): "\w*"$`)
	wrongRange = regexp.MustCompile(`^Checked value must be of type integer with format (\w+) in (\S+)$`)
	// vague errors say again what another one may have said better.
	vague    = regexp.MustCompile(`^(Checked value|json:) `)
	tooLarge = regexp.MustCompile(`should be less than or equal to (\S+)$`)
	tooSmall = regexp.MustCompile(`should be greater than or equal to (\S+)$`)
)

func (e explainer) fault(err *field.Error) Fault {
	path := err.Field
	if m := wrongRange.FindStringSubmatch(err.Detail); m != nil {
		path = m[2]
	}
	if path == "<nil>" {
		path = ""
	}
	message := e.message(path, err)
	if text, isText := e.at(path).(string); isText && isPlaceholder(text) {
		message += "; it holds a placeholder: " + renderFirst
	}
	return Fault{Field: path, Message: message}
}

func (e explainer) message(path string, err *field.Error) string {
	found := describe(e.at(path))
	detail := oneLine(strings.TrimPrefix(err.Detail, path+" in body "))
	switch {
	case detail == "unknown field":
		return e.unknown(path)
	case err.Type == field.ErrorTypeRequired:
		return strings.TrimSuffix("is missing: "+orElse(detail, "a value is required"), ": ")
	case err.Type == field.ErrorTypeNotSupported:
		return fmt.Sprintf("is %s: expected %s", found, strings.ReplaceAll(strings.TrimPrefix(detail, "supported values: "), `"`, ""))
	case err.Type == field.ErrorTypeDuplicate:
		return "is there twice: " + strings.TrimPrefix(oneLine(err.ErrorBody()), "Duplicate value: ")
	}
	for _, c := range []struct {
		pattern  *regexp.Regexp
		expected func(string) string
	}{
		{wrongType, typeName},
		{wrongRange, func(string) string { return "a whole number of at most 2147483647" }},
		{tooLarge, func(limit string) string { return "at most " + limit }},
		{tooSmall, func(limit string) string { return "at least " + limit }},
	} {
		if m := c.pattern.FindStringSubmatch(detail); m != nil {
			return fmt.Sprintf("is %s: expected %s", found, c.expected(m[1]))
		}
	}
	detail, _, _ = strings.Cut(orElse(shortened(detail), oneLine(err.ErrorBody())), " (e.g. ")
	if e.at(path) == nil || path == "" {
		return detail
	}
	return fmt.Sprintf("is %s: %s", found, detail)
}

// unknown names the field that was probably meant, else those that exist.
func (e explainer) unknown(path string) string {
	parent, name := "", path
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		parent, name = path[:i], path[i+1:]
	}
	known := e.fields(parent)
	best, least := "", 3
	for _, candidate := range known {
		if d := distance(strings.ToLower(candidate), strings.ToLower(name)); d < least {
			best, least = candidate, d
		}
	}
	switch {
	case best != "":
		return "unknown field: did you mean " + best + "?"
	case len(known) == 0 || len(known) > 20:
		return "unknown field"
	default:
		return "unknown field: expected one of " + strings.Join(known, ", ")
	}
}

// at finds the value of a path; nil where there is none.
func (e explainer) at(path string) any {
	var value any = e.value
	for _, step := range steps(path) {
		switch parent := value.(type) {
		case map[string]any:
			value = parent[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(parent) {
				return nil
			}
			value = parent[i]
		default:
			return nil
		}
	}
	return value
}

func typeName(name string) string {
	switch name {
	case "integer", "int32", "int64":
		return "a whole number"
	case "string":
		return "text"
	case "boolean":
		return "true or false"
	case "array":
		return "a list"
	case "object":
		return "a mapping"
	default:
		return name
	}
}

// isPlaceholder says whether a value waits for a template engine or a shell.
func isPlaceholder(text string) bool {
	return slices.ContainsFunc(placeholders, func(p string) bool { return strings.Contains(text, p) })
}

// longest is the most characters of a foreign text that are repeated.
const longest = 300

func shortened(text string) string {
	runes := []rune(text)
	if len(runes) <= longest {
		return text
	}
	return string(runes[:longest]) + "…"
}

func orElse(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}
