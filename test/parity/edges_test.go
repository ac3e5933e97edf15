// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/schema"
)

// sound is a QueueWorker without any error. The edges are patches of it, where
// null removes a field.
const sound = `
apiVersion: queueworker.dev/v1alpha1
kind: QueueWorker
metadata: {name: edge, namespace: default}
spec:
  queue: {connection: redis}
  timeouts: {httpSeconds: 20, jobSeconds: 30, retryAfterSeconds: 90}
  template: {spec: {containers: [{name: worker, image: registry.example/shop:1.4.2}]}}
`

// worker is a patch of the worker container.
func worker(patch string) string {
	return "template: {spec: {containers: [{name: worker, " + patch + "}]}}"
}

const (
	generic     = "runtime: Generic, template: {spec: {containers: [{name: worker, command: [run]}]}}"
	unlimited   = generic + ", timeouts: {httpSeconds: null, jobSeconds: 0, retryAfterSeconds: null, terminationGracePeriodSeconds: 30}"
	withHook    = "drain: {beforeStop: {command: [php], timeoutSeconds: 10}}"
	withPop     = "queue: {blockForSeconds: 4, names: [a, b]}"
	withKey     = "retries: {tries: 3, backoffSeconds: [10, 60]}" // a window of 2 x 90 + 70 + 30 = 280
	outlastsJob = "drain: {graceOutlasts: Job}"
	withSQS     = "queue: {connection: sqs}"
)

// edges are both sides of every edge of every error: the smallest change that
// breaks the rule. What keeps it is clean altogether.
var edges = []struct{ rule, keeps, breaks string }{
	{"job-timeout-unbounded", "timeouts: {httpSeconds: null, jobSeconds: 4}", "timeouts: {httpSeconds: null, jobSeconds: 0}"},
	{"job-timeout-unbounded", unlimited, generic + ", timeouts: {httpSeconds: null, jobSeconds: 0, retryAfterSeconds: 1, terminationGracePeriodSeconds: 30}"},
	{"retry-after-missing", "", "timeouts: {retryAfterSeconds: null}"},
	{"retry-after-missing", "runtime: Horizon", "runtime: Horizon, timeouts: {retryAfterSeconds: null}"},
	{"retry-after-missing", "", "timeouts: {retryAfterSeconds: 0}"},
	{"retry-after-missing", generic + ", timeouts: {retryAfterSeconds: null}", generic + ", timeouts: {retryAfterSeconds: 0}"},
	{"retry-after-missing", generic + ", timeouts: {retryAfterSeconds: null}", generic + ", timeouts: {retryAfterSeconds: null}, " + withSQS},
	{"grace-missing", generic + ", timeouts: {httpSeconds: null, jobSeconds: 1, retryAfterSeconds: null}", generic + ", timeouts: {httpSeconds: null, jobSeconds: 0, retryAfterSeconds: null}"},
	{"grace-missing", unlimited, generic + ", timeouts: {httpSeconds: null, jobSeconds: 0, retryAfterSeconds: null}"},
	{"connect-not-below-http", "timeouts: {httpConnectSeconds: 20}", "timeouts: {httpConnectSeconds: 21}"},
	{"http-not-below-job", "timeouts: {httpSeconds: 29}", "timeouts: {httpSeconds: 30}"},
	{"http-not-below-job", "timeouts: {httpSeconds: 9, httpAttempts: 3, httpRetryDelaySeconds: 1}", "timeouts: {httpSeconds: 9, httpAttempts: 3, httpRetryDelaySeconds: 2}"},
	{"job-not-below-retry-after", "timeouts: {jobSeconds: 89}", "timeouts: {jobSeconds: 90}"},
	{"job-timeout-unbounded", unlimited, generic + ", timeouts: {httpSeconds: null, jobSeconds: 0, retryAfterSeconds: 1}"},
	{"job-not-below-retry-after", "timeouts: {httpSeconds: null, jobSeconds: 4, retryAfterSeconds: 5}", "timeouts: {httpSeconds: null, jobSeconds: 4, retryAfterSeconds: 1}"},
	{"retry-after-not-below-grace", "timeouts: {terminationGracePeriodSeconds: 91}", "timeouts: {terminationGracePeriodSeconds: 90}"},
	{"retry-after-not-below-grace", outlastsJob + ", timeouts: {terminationGracePeriodSeconds: 31}", "timeouts: {terminationGracePeriodSeconds: 31}"},
	{"drain-exceeds-grace", outlastsJob + ", timeouts: {terminationGracePeriodSeconds: 31}", outlastsJob + ", timeouts: {terminationGracePeriodSeconds: 30}"},
	{"drain-exceeds-grace", withHook + ", timeouts: {jobSeconds: 85, terminationGracePeriodSeconds: 96}", withHook + ", timeouts: {jobSeconds: 86, terminationGracePeriodSeconds: 96}"},
	{"drain-exceeds-grace", withPop + ", timeouts: {jobSeconds: 85, terminationGracePeriodSeconds: 96}", withPop + ", timeouts: {jobSeconds: 86, terminationGracePeriodSeconds: 96}"},
	{"drain-exceeds-grace", outlastsJob + ", queue: {blockForSeconds: 1}, timeouts: {terminationGracePeriodSeconds: 33}", outlastsJob + ", queue: {blockForSeconds: 1}, timeouts: {terminationGracePeriodSeconds: 32}"},
	{"sleep-not-below-job", "timeouts: {httpSeconds: null, jobSeconds: 4}", "timeouts: {httpSeconds: null, jobSeconds: 3}"},
	{"sleep-not-below-job", "worker: {sleepSeconds: 29}", "worker: {sleepSeconds: 30}"},
	{"sleep-not-below-job", "worker: {restSeconds: 29}", "worker: {restSeconds: 30}"},
	{"sleep-not-below-job", "runtime: Horizon, worker: {sleepSeconds: 30}", "worker: {sleepSeconds: 30}"},
	{"retries-unbounded", "retries: {tries: 1}", "retries: {tries: 0}"},
	{"retries-unbounded", "retries: {tries: 0, retryUntilSeconds: 1}", "runtime: Horizon, retries: {tries: 0}"},
	{"backoff-exceeds-retention", "queue: {messageRetentionSeconds: 61}", "queue: {messageRetentionSeconds: 60}"},
	{"backoff-exceeds-retention", "queue: {messageRetentionSeconds: 11}, retries: {tries: 2}", "queue: {messageRetentionSeconds: 10}, retries: {tries: 2}"},
	{"backoff-exceeds-retention", "queue: {messageRetentionSeconds: 1}, retries: {tries: 1}", "queue: {messageRetentionSeconds: 1}, retries: {tries: 1, backoffSeconds: [1]}"},
	{"driver-unknown", "queue: {connection: fast, driver: Other}", "queue: {connection: fast}"},
	{"driver-limit", withSQS + ", timeouts: {retryAfterSeconds: 43200}", withSQS + ", timeouts: {retryAfterSeconds: 43201}"},
	{"driver-limit", "queue: {connection: sqs, driver: Redis}, timeouts: {retryAfterSeconds: 43201}", "queue: {connection: redis, driver: SQS}, timeouts: {retryAfterSeconds: 43201}"},
	{"driver-limit", "queue: {connection: sqs, driver: Redis}, retries: {backoffSeconds: [43201]}", "queue: {connection: redis, driver: SQS}, retries: {backoffSeconds: [43201]}"},
	{"driver-limit", "queue: {connection: redis, driver: SQS, messageRetentionSeconds: 60}, retries: {backoffSeconds: [1]}", "queue: {connection: redis, driver: SQS, messageRetentionSeconds: 59}, retries: {backoffSeconds: [1]}"},
	{"driver-limit", withSQS + ", retries: {backoffSeconds: [1, 43200]}", withSQS + ", retries: {backoffSeconds: [43201, 1]}"},
	{"driver-limit", "queue: {connection: sqs, messageRetentionSeconds: 61}", "queue: {connection: sqs, messageRetentionSeconds: 59}, retries: {backoffSeconds: [1]}"},
	{"driver-limit", "queue: {connection: sqs, messageRetentionSeconds: 1209600}", "queue: {connection: sqs, messageRetentionSeconds: 1209601}"},
	{"horizon-needs-redis", "runtime: Horizon, queue: {connection: fast}", "runtime: Horizon, queue: {connection: database}"},
	{"horizon-needs-redis", "runtime: Horizon, queue: {connection: database, driver: Redis}", "runtime: Horizon, queue: {connection: redis, driver: Other}"},
	{"key-ttl-below-retry-window", withKey + ", fence: {providerKeyTTLSeconds: 281}", withKey + ", fence: {providerKeyTTLSeconds: 280}"},
	{"key-ttl-below-retry-window", "retries: {tries: 5, backoffSeconds: [10]}, fence: {providerKeyTTLSeconds: 431}", "retries: {tries: 5, backoffSeconds: [10]}, fence: {providerKeyTTLSeconds: 430}"},
	{"key-ttl-below-retry-window", "retries: {tries: 2, backoffSeconds: [10, 60]}, fence: {providerKeyTTLSeconds: 131}", "retries: {tries: 2, backoffSeconds: [10, 60]}, fence: {providerKeyTTLSeconds: 130}"},
	{"key-ttl-below-retry-window", "retries: {tries: 3, backoffSeconds: [10]}, fence: {providerKeyTTLSeconds: 231}", "retries: {tries: 3, backoffSeconds: [10]}, fence: {providerKeyTTLSeconds: 230}"},
	{"key-ttl-below-retry-window", "fence: {providerKeyTTLSeconds: 1, mode: Table}", "fence: {providerKeyTTLSeconds: 1, mode: None}"},
	{"key-ttl-below-retry-window", "retries: {retryUntilSeconds: 100}, fence: {providerKeyTTLSeconds: 131}", "retries: {retryUntilSeconds: 100}, fence: {providerKeyTTLSeconds: 130}"},
	{"key-ttl-below-retry-window", "fence: {providerKeyTTLSeconds: 281}", "fence: {providerKeyTTLSeconds: 280}"},
	{"key-ttl-below-retry-window", "retries: {tries: 2}, fence: {providerKeyTTLSeconds: 131}", "retries: {tries: 2}, fence: {providerKeyTTLSeconds: 130}"},
	{"key-ttl-below-retry-window", generic + ", timeouts: {retryAfterSeconds: null}, retries: {tries: 0}, fence: {providerKeyTTLSeconds: 1}", generic + ", timeouts: {retryAfterSeconds: null}, retries: {tries: 1}, fence: {providerKeyTTLSeconds: 1}"},
	{"key-ttl-below-retry-window", generic + ", timeouts: {retryAfterSeconds: null}, retries: {tries: 2}, fence: {providerKeyTTLSeconds: 31}", generic + ", timeouts: {retryAfterSeconds: null}, retries: {tries: 2}, fence: {providerKeyTTLSeconds: 30}"},
	{"fence-incomplete", proxy("providers: [" + stripe + "]"), "fence: {mode: Proxy, providers: [" + stripe + "]}"},
	{"fence-incomplete", "fence: {mode: Table}", "fence: {mode: Proxy}"},
	{"fence-incomplete", "fence: {mode: None, providers: [" + stripe + "]}", proxy("providers: []")},
	{"fence-incomplete", proxy("claims: [{name: stock}]"), "fence: {mode: Proxy, claims: [{name: stock}]}"},
	{"fence-table-name", tableOf("_"), tableOf("Charges")},
	{"fence-table-name", tableOf(longName), tableOf(longName + "a")},
	{"fence-table-name", tableOf(longName + "." + longName), tableOf(longName + "a.fence")},
	{"fence-table-name", tableOf("s.t"), tableOf("shop." + longName + "a")},
	{"fence-table-name", tableOf("z0.z9"), tableOf("Shop.fence")},
	{"fence-table-name", "fence: {mode: Table, table: {name: Charges}}", tableOf("shop.fencE")},
	{"fence-table-name", proxy("table: {keyColumn: Key}, providers: [" + stripe + "]"), tableOf("shop.feNce")},
	{"http-timeout-missing", "timeouts: {httpSeconds: null}, fence: {mode: Table}", "timeouts: {httpSeconds: null}, " + proxy("providers: ["+stripe+"]")},
	{"provider-timeout-not-below-http", "timeouts: {httpSeconds: 4}, " + proxy("providers: ["+stripe+"]"), "timeouts: {httpSeconds: 3}, " + proxy("providers: ["+stripe+"]")},
	{"provider-timeout-not-below-http", proxy("providers: [{name: b, url: 'http://b', timeoutSeconds: 17}]"), proxy("providers: [{name: b, url: 'http://b', timeoutSeconds: 18}]")},
	{"provider-timeout-not-below-http", "", proxy("providers: [" + stripe + ", {name: b, url: 'http://b', timeoutSeconds: 30}]")},
	{"provider-timeout-not-below-http", "fence: {providers: [{name: b, url: 'http://b', timeoutSeconds: 18}]}", "timeouts: {httpSeconds: 2}, " + proxy("providers: [{name: b, url: 'http://b', timeoutSeconds: 1}]")},
	{"in-flight-too-short", proxy("providers: [{name: b, url: 'http://b', maxInFlightSeconds: 47}]"), proxy("providers: [{name: b, url: 'http://b', maxInFlightSeconds: 46}]")},
	{"in-flight-too-short", proxy("providers: [{name: b, url: 'http://b', timeoutSeconds: 1, maxInFlightSeconds: 31}]"), proxy("providers: [" + stripe + ", {name: b, url: 'http://b', timeoutSeconds: 1, maxInFlightSeconds: 30}]")},
	{"in-flight-too-short", "fence: {providers: [{name: b, url: 'http://b', maxInFlightSeconds: 1}]}", wideCall + proxy("providers: [{name: b, url: 'http://b', timeoutSeconds: 271}]")},
	{"in-flight-too-short", wideCall + proxy("providers: [{name: b, url: 'http://b', timeoutSeconds: 270}]"), "timeouts: {httpSeconds: 4}, " + proxy("providers: [{name: b, url: 'http://b', maxInFlightSeconds: 30}]")},
	{"key-ttl-too-short-to-resend", proxy("providers: [{name: b, url: 'http://b', storesErrors: true, keyTTLSeconds: 302}]"), proxy("providers: [{name: b, url: 'http://b', storesErrors: true, keyTTLSeconds: 301}]")},
	{"key-ttl-too-short-to-resend", proxy("providers: [{name: b, url: 'http://b', actsOn5xx: true, keyTTLSeconds: 301}]"), proxy("providers: [{name: b, url: 'http://b', actsOn5xx: false, keyTTLSeconds: 301}]")},
	{"key-ttl-too-short-to-resend", proxy("providers: [{name: b, url: 'http://b', keyTTLSeconds: 301}]"), proxy("providers: [" + stripe + ", {name: b, url: 'http://b', storesErrors: true, actsOn5xx: true, keyTTLSeconds: 101, maxInFlightSeconds: 100}]")},
	{"key-ttl-too-short-to-resend", "fence: {providers: [{name: b, url: 'http://b', storesErrors: true, keyTTLSeconds: 1}]}", proxy("providers: [{name: b, url: 'http://b', storesErrors: true, keyTTLSeconds: 1}]")},
	{"retention-below-retry-window", proxy("retention: {doneSeconds: 330, failedJobsSeconds: 0}, providers: [" + stripe + "]"), proxy("retention: {doneSeconds: 329, failedJobsSeconds: 0}, providers: [" + stripe + "]")},
	{"retention-below-retry-window", proxy("retention: {doneSeconds: 605130}, providers: [" + stripe + "]"), proxy("retention: {doneSeconds: 605129}, providers: [" + stripe + "]")},
	{"retention-below-retry-window", proxy("retention: {failedJobsSeconds: 2591670}, providers: [" + stripe + "]"), proxy("retention: {failedJobsSeconds: 2591671}, providers: [" + stripe + "]")},
	{"retention-below-retry-window", "fence: {retention: {doneSeconds: 1}}", "retries: {retryUntilSeconds: 100}, " + proxy("retention: {doneSeconds: 179, failedJobsSeconds: 0}, providers: ["+stripe+"]")},
	{"retention-below-retry-window", "retries: {retryUntilSeconds: 100}, " + proxy("retention: {doneSeconds: 180, failedJobsSeconds: 0}, providers: ["+stripe+"]"), "retries: {tries: 1}, " + proxy("retention: {doneSeconds: 79, failedJobsSeconds: 0}, providers: ["+stripe+"]")},
	{"retention-below-retry-window", generic + ", retries: {tries: 0}, " + proxy("retention: {doneSeconds: 1}, providers: ["+stripe+"]"), generic + ", retries: {tries: 1}, " + proxy("retention: {doneSeconds: 1}, providers: ["+stripe+"]")},
	{"retention-below-retry-window", generic + ", retries: {tries: null}, " + proxy("retention: {doneSeconds: 1}, providers: ["+stripe+"]"), generic + ", retries: {tries: 1}, " + proxy("retention: {doneSeconds: 1}, providers: ["+stripe+"]")},
	{"retention-below-retry-window", "retries: {tries: 2}, " + proxy("retention: {doneSeconds: 180, failedJobsSeconds: 0}, providers: ["+stripe+"]"), "retries: {tries: 2}, " + proxy("retention: {doneSeconds: 179, failedJobsSeconds: 0}, providers: ["+stripe+"]")},
	{"liveness-kills-early", withHook + ", " + worker("livenessProbe: {terminationGracePeriodSeconds: 40}"), withHook + ", " + worker("livenessProbe: {terminationGracePeriodSeconds: 39}")},
	{"liveness-kills-early", withHook + ", " + worker("startupProbe: {terminationGracePeriodSeconds: 40}"), withHook + ", " + worker("startupProbe: {terminationGracePeriodSeconds: 39}")},
	{"deadline-kills-early", "", "template: {spec: {activeDeadlineSeconds: 0}}"},
	{"template-worker-missing", "", "template: {spec: {containers: [{name: worker, $patch: delete}, {name: work}]}}"},
	{"template-worker-missing", "", "template: {spec: null}"},
	{"template-command", worker("command: []"), worker("command: [run]")},
	{"template-command", worker("args: []"), "runtime: Horizon, " + worker("args: [run]")},
	{"template-command", "template: {spec: {containers: [{name: proxy, command: [run]}]}}", worker("command: [run], args: [fast]")},
	{"template-command-missing", generic, "runtime: Generic"},
	{"template-command-missing", generic, "runtime: Generic, " + worker("args: [run]")},
	{"template-grace", "", "template: {spec: {terminationGracePeriodSeconds: 0}}"},
	{"template-pre-stop", worker("lifecycle: {postStart: {sleep: {seconds: 1}}}"), worker("lifecycle: {preStop: {sleep: {seconds: 1}}}")},
	{"template-restart-policy", "template: {spec: {restartPolicy: Always}}", "template: {spec: {restartPolicy: OnFailure}}"},
	{"template-owned-name", "template: {spec: {volumes: [{name: queueworkers}]}}", "template: {spec: {volumes: [{name: queueworker}]}}"},
	{"template-owned-name", "template: {spec: {containers: [{name: queue}]}}", "template: {spec: {containers: [{name: queueworker-x}]}}"},
	{"template-owned-name", "template: {spec: {initContainers: [{name: a}]}}", "template: {spec: {initContainers: [{name: queueworker-}]}}"},
	{"template-owned-name", worker("volumeMounts: [{name: d, mountPath: /queueworkers}]"), worker("volumeMounts: [{name: d, mountPath: /queueworker}]")},
	{"template-owned-name", "template: {spec: {initContainers: [{name: a, volumeMounts: [{name: d, mountPath: /b}]}]}}", "template: {spec: {initContainers: [{name: a, volumeMounts: [{name: d, mountPath: /queueworker}]}]}}"},
	{"template-owned-name", worker("volumeMounts: [{name: d, mountPath: /a/queueworker}]"), worker("volumeMounts: [{name: d, mountPath: /queueworker/a}]")},
	{"template-owned-name", "", "template: {spec: {initContainers: [{name: a, volumeMounts: [{name: d, mountPath: /queueworker/}]}]}}"},
	{"template-owned-name", worker("volumeMounts: [{name: queueworkers, mountPath: /a}]"), worker("volumeMounts: [{name: queueworker, mountPath: /a}]")},
	{"template-owned-name", "", "template: {spec: {initContainers: [{name: a, volumeMounts: [{name: queueworker-x, mountPath: /b}]}]}}"},
	{"env-owned", worker("env: [{name: QUEUEWORKER, value: x}]"), worker("env: [{name: QUEUEWORKER_, value: x}]")},
	{"env-owned", worker(`env: [{name: REDIS_QUEUE_RETRY_AFTER, value: "90"}]`), worker(`env: [{name: REDIS_QUEUE_RETRY_AFTER, value: "090"}]`)},
	{"env-owned", worker(`env: [{name: DB_QUEUE_RETRY_AFTER, value: "1"}]`), "queue: {connection: database}, " + worker(`env: [{name: DB_QUEUE_RETRY_AFTER, value: "1"}]`)},
	{"env-owned", "runtime: Generic, " + worker(`command: [run], env: [{name: REDIS_QUEUE_RETRY_AFTER}]`), worker("env: [{name: REDIS_QUEUE_RETRY_AFTER}]")},
	{"env-owned", worker(`env: [{name: BEANSTALKD_QUEUE_RETRY_AFTER}]`), "queue: {driver: Beanstalkd}, " + worker("env: [{name: BEANSTALKD_QUEUE_RETRY_AFTER, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]")},
	{"args-owned", "worker: {extraArgs: [--force]}", "worker: {extraArgs: [--force, --timeout=5]}"},
	{"args-owned", "worker: {extraArgs: [--timeouts, timeout=5, -timeout]}", "worker: {extraArgs: [--once]}"},
}

const (
	stripe   = "{name: stripe, url: 'https://api.stripe.com', storesErrors: true, keyTTLSeconds: 86400}"
	wideCall = "timeouts: {httpSeconds: 300, jobSeconds: 400, retryAfterSeconds: 900}, "
)

// longName is the longest that each part of a table's name may have.
const longName = "a2345678901234567890123456789012345678901234567_"

// tableOf is a fence with a sidecar whose table has this name.
func tableOf(name string) string {
	return proxy("table: {name: " + name + "}, providers: [" + stripe + "]")
}

// proxy is a fence with a sidecar and a store.
func proxy(fields string) string {
	return "fence: {mode: Proxy, store: {type: MySQL, secretRef: {name: shop}}, " + fields + "}"
}

func TestEveryRuleOnBothSidesOfItsEdge(t *testing.T) {
	s := loadSchema(t)
	covered := map[string]bool{}
	for _, edge := range edges {
		covered[edge.rule] = true
		t.Run(edge.rule, func(t *testing.T) {
			expectErrors(t, s, edge.keeps)
			expectErrors(t, s, edge.breaks, edge.rule)
		})
	}
	for _, id := range errorRules() {
		if !covered[id] {
			t.Errorf("no edge of %s", id)
		}
	}
}

func expectErrors(t *testing.T, s *schema.Schema, patch string, want ...string) {
	t.Helper()
	object := completed(t, s, patched(t, patch))
	byCEL, byGo := celIDs(celErrors(s, object)), goIDs(goErrors(t, object))
	if !slices.Equal(byCEL, want) || !slices.Equal(byGo, want) {
		t.Errorf("{%s}: CEL says %v, Go says %v, want %v", patch, byCEL, byGo, want)
	}
}

// patched applies a patch to the spec of the sound object.
func patched(t *testing.T, patch string) map[string]any {
	t.Helper()
	original, err := yaml.YAMLToJSON([]byte(sound))
	if err != nil {
		t.Fatal(err)
	}
	patchJSON, err := yaml.YAMLToJSONStrict([]byte("{spec: {" + patch + "}}"))
	if err != nil {
		t.Fatalf("{%s}: %v", patch, err)
	}
	merged, err := strategicpatch.StrategicMergePatch(original, patchJSON, v1alpha1.QueueWorker{})
	if err != nil {
		t.Fatalf("{%s}: %v", patch, err)
	}
	object, err := schema.Decode(merged)
	if err != nil {
		t.Fatal(err)
	}
	return object
}
