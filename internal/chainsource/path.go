// SPDX-License-Identifier: Apache-2.0

package chainsource

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// fields are the links that always stand at the same place of the spec.
var fields = map[timeoutchain.Link][]string{
	timeoutchain.LinkHTTPConnect:    {"timeouts", "httpConnectSeconds"},
	timeoutchain.LinkHTTP:           {"timeouts", "httpSeconds"},
	timeoutchain.LinkTotalHTTP:      {"timeouts", "httpSeconds"},
	timeoutchain.LinkHTTPAttempts:   {"timeouts", "httpAttempts"},
	timeoutchain.LinkHTTPRetryDelay: {"timeouts", "httpRetryDelaySeconds"},
	timeoutchain.LinkJob:            {"timeouts", "jobSeconds"},
	timeoutchain.LinkRetryAfter:     {"timeouts", "retryAfterSeconds"},
	timeoutchain.LinkGrace:          {"timeouts", "terminationGracePeriodSeconds"},
	timeoutchain.LinkDrain:          {"timeouts", "terminationGracePeriodSeconds"},
	timeoutchain.LinkBlockFor:       {"queue", "blockForSeconds"},
	timeoutchain.LinkConnection:     {"queue", "connection"},
	timeoutchain.LinkDriver:         {"queue", "driver"},
	timeoutchain.LinkQueues:         {"queue", "names"},
	timeoutchain.LinkRetention:      {"queue", "messageRetentionSeconds"},
	timeoutchain.LinkTries:          {"retries", "tries"},
	timeoutchain.LinkBackoff:        {"retries", "backoffSeconds"},
	timeoutchain.LinkUniqueFor:      {"locks", "uniqueForSeconds"},
	timeoutchain.LinkOverlap:        {"locks", "overlapExpireAfterSeconds"},
	timeoutchain.LinkStuckAfter:     {"monitor", "stuckAfterSeconds"},
	timeoutchain.LinkSleep:          {"worker", "sleepSeconds"},
	timeoutchain.LinkRest:           {"worker", "restSeconds"},
	timeoutchain.LinkMemory:         {"worker", "memoryMegabytes"},
	timeoutchain.LinkMaxTime:        {"worker", "maxTimeSeconds"},
	timeoutchain.LinkMaxJobs:        {"worker", "maxJobs"},
	timeoutchain.LinkProcesses:      {"worker", "processes"},
	timeoutchain.LinkPHP:            {"worker", "php"},
	timeoutchain.LinkArtisan:        {"worker", "artisan"},
	timeoutchain.LinkWrapper:        {"worker", "wrapper"},
	timeoutchain.LinkSupervision:    {"worker", "supervision"},
	timeoutchain.LinkBeforeStop:     {"drain", "beforeStop", "timeoutSeconds"},
	timeoutchain.LinkGraceOutlasts:  {"drain", "graceOutlasts"},
	timeoutchain.LinkProviderKeyTTL: {"fence", "providerKeyTTLSeconds"},
	timeoutchain.LinkMaxUnavailable: {"strategy", "rollingUpdate", "maxUnavailable"},
	timeoutchain.LinkMaxSurge:       {"strategy", "rollingUpdate", "maxSurge"},
	timeoutchain.LinkFenceStore:     {"fence", "store"},
	timeoutchain.LinkFenceTable:     {"fence", "table", "name"},
	timeoutchain.LinkProviders:      {"fence", "providers"},
	timeoutchain.LinkClaims:         {"fence", "claims"},
	timeoutchain.LinkFenceRetention: {"fence", "retention"},
	timeoutchain.LinkKeepDone:       {"fence", "retention", "doneSeconds"},
	timeoutchain.LinkTemplateGrace:  {"template", "spec", "terminationGracePeriodSeconds"},
	timeoutchain.LinkRestartPolicy:  {"template", "spec", "restartPolicy"},
	timeoutchain.LinkActiveDeadline: {"template", "spec", "activeDeadlineSeconds"},
	timeoutchain.LinkContainers:     {"template", "spec", "containers"},
}

// Path is the field where a link of a QueueWorker is written.
func Path(qw *v1alpha1.QueueWorker, l timeoutchain.Link) *field.Path {
	path := field.NewPath("spec")
	if names, ok := fields[l]; ok {
		for _, name := range names {
			path = path.Child(name)
		}
		return path
	}
	template := path.Child("template", "spec")
	_, i := workerContainer(&qw.Spec.Template.Spec)
	if i < 0 {
		return template.Child("containers")
	}
	worker := template.Child("containers").Index(i)
	switch l {
	case timeoutchain.LinkWorkerCommand:
		if c := qw.Spec.Template.Spec.Containers[i]; len(c.Command) == 0 && len(c.Args) > 0 {
			return worker.Child("args")
		}
		return worker.Child("command")
	case timeoutchain.LinkWorkerPreStop:
		return worker.Child("lifecycle", "preStop")
	case timeoutchain.LinkLivenessGrace:
		return worker.Child("livenessProbe", "terminationGracePeriodSeconds")
	case timeoutchain.LinkStartupGrace:
		return worker.Child("startupProbe", "terminationGracePeriodSeconds")
	case timeoutchain.LinkMemoryLimit:
		return worker.Child("resources", "limits").Key("memory")
	case timeoutchain.LinkEnv:
		return worker.Child("env")
	default:
		return template
	}
}

// PathOf is the field where a finding shows, down to the list entry it names.
func PathOf(qw *v1alpha1.QueueWorker, f timeoutchain.Finding) *field.Path {
	template := &qw.Spec.Template.Spec
	if ofProvider(f.Link) {
		return providerPath(qw, f.Link, f.Subject)
	}
	switch f.Link {
	case timeoutchain.LinkExtraArgs:
		return indexed(field.NewPath("spec", "worker", "extraArgs"), slices.Index(qw.Spec.Worker.ExtraArgs, f.Subject))
	case timeoutchain.LinkContainers:
		isIt := func(c corev1.Container) bool { return c.Name == f.Subject }
		return indexed(Path(qw, f.Link), slices.IndexFunc(template.Containers, isIt))
	case timeoutchain.LinkTemplate:
		for _, name := range ownedNames(template) {
			if name.subject == f.Subject {
				return name.path
			}
		}
	case timeoutchain.LinkEnv:
		if container, _ := workerContainer(template); container != nil {
			for i := range container.Env {
				if container.Env[i].Name == f.Subject {
					return indexed(Path(qw, f.Link), i)
				}
			}
		}
	}
	return Path(qw, f.Link)
}

// PathOfChange is the field that a fix writes.
func PathOfChange(qw *v1alpha1.QueueWorker, a timeoutchain.Assignment) *field.Path {
	return PathOf(qw, timeoutchain.Finding{Link: a.Link, Subject: a.Subject})
}

func indexed(path *field.Path, i int) *field.Path {
	if i < 0 {
		return path
	}
	return path.Index(i)
}
