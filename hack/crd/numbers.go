// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/timeoutchain"
)

// numbers are words for what Go knows already: the margins and limits of the
// rules, what applies where Laravel's fields are left out, and which names of
// connections say their driver.
var numbers = vocabulary{
	"margin":            strconv.Itoa(timeoutchain.Margin),
	"lead":              strconv.Itoa(timeoutchain.WatchdogLead),
	"sqsMaxVisibility":  strconv.Itoa(timeoutchain.SQSMaxVisibility),
	"sqsMinRetention":   strconv.Itoa(timeoutchain.SQSMinRetention),
	"sqsMaxRetention":   strconv.Itoa(timeoutchain.SQSMaxRetention),
	"defaultTries":      fmt.Sprint(laravelTries()),
	"defaultSleep":      fmt.Sprint(*laravel.EffectiveWorker().SleepSeconds),
	"defaultBackoff":    laravelBackoff(),
	"drivers":           drivers(),
	"telltales":         "['" + strings.Join(telltales(), "', '") + "']",
	"sendWindow":        strconv.Itoa(timeoutchain.DefaultSendWindow),
	"statements":        strconv.Itoa(2 * timeoutchain.DefaultStatementBudget),
	"around":            strconv.Itoa(timeoutchain.DefaultSendWindow + 2*timeoutchain.DefaultStatementBudget),
	"defaultInFlight":   strconv.Itoa(timeoutchain.DefaultInFlight),
	"leastInFlight":     strconv.Itoa(timeoutchain.LeastInFlight),
	"defaultKeepDone":   fmt.Sprint(*laravel.EffectiveFenceRetention().DoneSeconds),
	"defaultKeepFailed": fmt.Sprint(*laravel.EffectiveFenceRetention().FailedJobsSeconds),
}

func telltales() []string { return slices.Sorted(maps.Keys(v1alpha1.DriversByConnection)) }

func drivers() string {
	var entries []string
	for _, connection := range telltales() {
		entries = append(entries, fmt.Sprintf("'%s': '%s'", connection, v1alpha1.DriversByConnection[connection]))
	}
	return "{" + strings.Join(entries, ", ") + "}"
}

// laravel is a spec in which everything is left out.
var laravel = &v1alpha1.QueueWorkerSpec{Runtime: v1alpha1.RuntimeLaravel}

func laravelTries() int32 {
	tries, _ := laravel.EffectiveTries()
	return tries
}

// laravelBackoff gives few tries fewer steps; it follows an "or" and ends it.
func laravelBackoff() string {
	step := func(tries int32) string {
		spec := laravel.DeepCopy()
		spec.Retries.Tries = &tries
		return strings.ReplaceAll(fmt.Sprint(spec.EffectiveBackoff()), " ", ", ")
	}
	var b strings.Builder
	all := step(0)
	for tries := int32(1); step(tries) != all; tries++ {
		fmt.Fprintf(&b, "$tries == %d ? %s : ", tries, step(tries))
	}
	return b.String() + all
}
