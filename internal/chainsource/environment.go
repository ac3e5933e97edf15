// SPDX-License-Identifier: Apache-2.0

package chainsource

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/queueworker/operator/api/v1alpha1"
)

// Environment is the worker's environment as far as it is known outside of a
// cluster.
type Environment struct {
	// Set are the variables, as NAME=value.
	Set []string
	// Unseen is what only the cluster knows, each with where it comes from.
	Unseen []string

	known      map[string]string
	hidden     map[string]bool // variables whose value only the cluster knows
	standIns   map[string]string
	fromOthers bool // whole ConfigMaps or Secrets are part of it
}

// WorkerEnvironment resolves the environment of the worker's container: the
// template's values, with their references as the kubelet resolves them, and
// the reservation that the operator adds. What only the cluster knows is taken
// from the stand-ins, NAME=value, where they hold it.
func WorkerEnvironment(qw *v1alpha1.QueueWorker, standIns []string) *Environment {
	e := &Environment{known: map[string]string{}, hidden: map[string]bool{}, standIns: map[string]string{}}
	for _, v := range standIns {
		name, value, _ := strings.Cut(v, "=")
		e.standIns[name] = value
	}
	if container, _ := workerContainer(&qw.Spec.Template.Spec); container != nil {
		for i := range container.EnvFrom {
			e.fromOthers = true
			e.Unseen = append(e.Unseen, "all of "+originOfAll(&container.EnvFrom[i]))
		}
		for i := range container.Env {
			e.add(&container.Env[i])
		}
	}
	name := RetryAfterEnv(qw.Spec.EffectiveRuntime(), qw.Spec.EffectiveDriver())
	if retryAfter := qw.Spec.Timeouts.RetryAfterSeconds; name != "" && retryAfter != nil {
		e.set(name, strconv.Itoa(int(*retryAfter)))
	}
	return e
}

// add resolves a variable. A reference reaches only what stands before it.
func (e *Environment) add(v *corev1.EnvVar) {
	value, missing := e.expand(v.Value)
	switch {
	case v.ValueFrom != nil:
		e.standIn(v.Name, origin(v.ValueFrom))
	case missing != "":
		e.standIn(v.Name, "refers to "+missing)
	default:
		e.set(v.Name, value)
	}
}

func (e *Environment) set(name, value string) {
	e.known[name] = value
	e.Set = append(e.Set, name+"="+value)
}

func (e *Environment) standIn(name, from string) {
	if value, given := e.standIns[name]; given {
		e.set(name, value)
		return
	}
	delete(e.known, name)
	e.hidden[name] = true
	e.Unseen = append(e.Unseen, fmt.Sprintf("%s (%s)", name, from))
}

// Expand resolves references in the words of a command.
func (e *Environment) Expand(words []string) []string {
	words = slices.Clone(words)
	for i, word := range words {
		value, missing := e.expand(word)
		if missing != "" {
			e.Unseen = append(e.Unseen, fmt.Sprintf("the word %s of the command", word))
		}
		words[i] = value
	}
	return words
}

// expand replaces each $(NAME) by the variable's value, and $$ by $. A name that
// is no variable stays as it is written. It also returns the first name of which
// only the cluster knows whether it is one.
func (e *Environment) expand(text string) (expanded, missing string) {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, "$")
		out.WriteString(before)
		if !found {
			return out.String(), missing
		}
		name, rest, closed := strings.Cut(strings.TrimPrefix(after, "("), ")")
		switch {
		case strings.HasPrefix(after, "$"):
			out.WriteString("$")
			text = after[1:]
		case strings.HasPrefix(after, "(") && closed:
			value, known := e.value(name)
			if !known {
				missing = cmp.Or(missing, name)
			}
			out.WriteString(value)
			text = rest
		default:
			out.WriteString("$")
			text = after
		}
	}
}

// serviceVariable is the form of the variables that a pod gets for each Service
// of its namespace.
var serviceVariable = regexp.MustCompile(`^[A-Z][A-Z0-9_]*_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// value is what a reference stands for.
func (e *Environment) value(name string) (value string, known bool) {
	if value, ok := e.known[name]; ok {
		return value, true
	}
	if e.hidden[name] || e.fromOthers || serviceVariable.MatchString(name) {
		value, given := e.standIns[name]
		return value, given
	}
	return "$(" + name + ")", true
}

// origin is where a variable has its value from.
func origin(from *corev1.EnvVarSource) string {
	switch {
	case from.ConfigMapKeyRef != nil:
		return "ConfigMap " + from.ConfigMapKeyRef.Name
	case from.SecretKeyRef != nil:
		return "Secret " + from.SecretKeyRef.Name
	case from.FieldRef != nil:
		return "the pod's " + from.FieldRef.FieldPath
	case from.ResourceFieldRef != nil:
		return "the container's " + from.ResourceFieldRef.Resource
	default:
		return "valueFrom"
	}
}

func originOfAll(from *corev1.EnvFromSource) string {
	switch {
	case from.ConfigMapRef != nil:
		return "ConfigMap " + from.ConfigMapRef.Name
	case from.SecretRef != nil:
		return "Secret " + from.SecretRef.Name
	default:
		return "an envFrom"
	}
}
