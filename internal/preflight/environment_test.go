// SPDX-License-Identifier: Apache-2.0

package preflight_test

import (
	"strings"
	"testing"

	"github.com/queueworker/operator/internal/preflight"
)

// What a pod would know and this machine does not is said.
func TestUnseenEnvironment(t *testing.T) {
	facts := sound()
	facts.UnseenEnv = []string{"A (Secret s)", "all of ConfigMap c"}
	v := judge(facts)
	if v.Outcome != preflight.Passed || len(v.Findings) != 1 || v.Findings[0].Severity != preflight.Unverified ||
		!strings.HasSuffix(v.Findings[0].Problem, ": A (Secret s), all of ConfigMap c") {
		t.Errorf("got %s %+v", v.Outcome, v.Findings)
	}
}
