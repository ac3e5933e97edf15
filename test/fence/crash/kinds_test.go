// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"fmt"
	"strings"
)

// kind is a provider of docs/fence.md: what it offers, and what is declared.
type kind struct {
	name              string
	keys              bool // repeated keys get the first answer
	storesErrors      bool
	errorsMeanNothing bool // an error is never behind an effect
	declared          string
	parks             bool // an unknown outcome may end with a person
	claims            bool // no provider: the app itself works, under a claim
}

const (
	keyed  = "keyHeader: Idempotency-Key, keyTTLSeconds: 86400, "
	lookup = `lookup: {path: '/lookup?run={key}', succeeded: 'body.state == "booked"', refused: 'body.state == "failed"', absent: 'body.state == "none"', providerId: body.id}`
	lag    = ", lookupLagSeconds: 60"
)

var kinds = []kind{
	{"results-and-errors", true, true, false, keyed + "storesErrors: true", false, false},
	{"results-and-errors-asked", true, true, false, keyed + "storesErrors: true, " + lookup + lag, false, false},
	{"successes", true, false, true, keyed + "actsOn5xx: false", false, false},
	{"successes-asked", true, false, true, keyed + "actsOn5xx: false, " + lookup + lag, false, false},
	{"keys-that-do-not-protect", true, false, false, keyed + "actsOn5xx: true", true, false},
	{"asked", false, false, false, lookup + lag, false, false},
	{"asked-lag-not-declared", false, false, false, lookup, true, false},
	{"nothing", false, false, false, "keyHeader: ''", true, false},
	{"claims", false, false, false, "", true, true},
	{"claims-checked", false, false, false, ", canCheck: true", true, true},
}

func kindOf(name string) kind {
	for _, k := range kinds {
		if k.name == name {
			return k
		}
	}
	return kind{}
}

// configuration of a fence for these kinds: two seconds to send, two to wait for
// a reply, three to work, which a loaded machine does not use up. Time that is
// longer is made to pass in the table.
func configuration(d *database, dsnFile, bank string, upkeep int, of []kind) string {
	var providers, claims strings.Builder
	for _, k := range of {
		if k.claims {
			fmt.Fprintf(&claims, "- {name: %s, doWithinSeconds: 3, maxInFlightSeconds: 33%s}\n", k.name, k.declared)
			continue
		}
		fmt.Fprintf(&providers, "- {name: %[1]s, url: %[2]q, sendWindowSeconds: 2, timeoutSeconds: 2, statementSeconds: 4, maxInFlightSeconds: 32, didNotAct: [429], %[3]s}\n", k.name, bank+"/"+k.name, k.declared)
	}
	return fmt.Sprintf(`apiVersion: config.queueworker.dev/v1alpha1
kind: FenceConfig
bindAddress: 127.0.0.1:0
statusAddress: 127.0.0.1:0
httpSeconds: 12
store: {driver: %s, dsnFile: %s, table: %s}
retention: {doneSeconds: 604800}
upkeep: {everySeconds: %d, recheckSeconds: 1}
providers:
%sclaims:
%s`, d.driver, dsnFile, d.tableName, upkeep, providers.String(), claims.String())
}
