// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/metrics"
	"github.com/queueworker/operator/internal/timeoutchain"
)

func TestFindingsFollowTheObjects(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := metrics.New(reg)
	broken := timeoutchain.Finding{Rule: "job-not-below-retry-after", Severity: timeoutchain.Error}
	risky := timeoutchain.Finding{Rule: "thin-margin", Severity: timeoutchain.Warning}

	m.SetFindings("shop", "mail", []timeoutchain.Finding{broken, risky, risky})
	m.SetFindings("shop", "pay", []timeoutchain.Finding{risky})
	m.SetFindings("crm", "pay", []timeoutchain.Finding{broken})
	expect(t, reg, `
queueworker_chain_findings{namespace="crm",rule="job-not-below-retry-after",severity="error"} 1
queueworker_chain_findings{namespace="shop",rule="job-not-below-retry-after",severity="error"} 1
queueworker_chain_findings{namespace="shop",rule="thin-margin",severity="warning"} 2
`)

	m.SetFindings("shop", "mail", []timeoutchain.Finding{risky}) // repaired in part
	m.Forget("crm", "pay")                                       // deleted
	m.SetFindings("shop", "pay", nil)                            // repaired
	expect(t, reg, `
queueworker_chain_findings{namespace="shop",rule="thin-margin",severity="warning"} 1
`)
}

func expect(t *testing.T, reg *prometheus.Registry, series string) {
	t.Helper()
	text := "# HELP queueworker_chain_findings QueueWorkers in which the rule finds something now, by rule, severity (error or warning) and namespace. No series where a rule finds nothing.\n" +
		"# TYPE queueworker_chain_findings gauge\n" + strings.TrimLeft(series, "\n")
	if err := testutil.GatherAndCompare(reg, strings.NewReader(text), "queueworker_chain_findings"); err != nil {
		t.Error(err)
	}
}

func TestRulesOutsideTheRegistryShareOneSeries(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := metrics.New(reg)
	before := count(t, reg, "queueworker_admission_refused_total")
	if want := len(timeoutchain.Rules()); before != want {
		t.Errorf("%d series before the first refusal, want one at 0 for each of %d rules", before, want)
	}
	m.Refused("made-up-1")
	m.Refused("made-up-2")
	m.Refused("thin-margin")
	if after := count(t, reg, "queueworker_admission_refused_total"); after != before+1 {
		t.Errorf("%d series after two unknown rules, want %d", after, before+1)
	}
}

func TestRolloutsAreCountedFromZero(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := metrics.New(reg)
	m.RolloutStarted("Recreate")
	want := `# HELP queueworker_rollouts_total Rollouts of a new pod template that were started, by the strategy they use.
# TYPE queueworker_rollouts_total counter
queueworker_rollouts_total{strategy="Recreate"} 1
queueworker_rollouts_total{strategy="RollingUpdate"} 0
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "queueworker_rollouts_total"); err != nil {
		t.Error(err)
	}
}

func TestEndingsGoWithTheirWorker(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := metrics.New(reg)
	for _, name := range []string{"queueworker_kills_total", "queueworker_drain_duration_seconds", "queueworker_unobserved_endings_total"} {
		if n := count(t, reg, name); n != 0 {
			t.Errorf("%s has %d series before any worker has ended", name, n)
		}
	}
	m.Killed("shop", "mail", v1alpha1.KillGraceCut)
	m.Killed("shop", "mail", v1alpha1.KillGraceCut)
	m.Killed("shop", "mail", v1alpha1.KillCrashed)
	m.Killed("crm", "mail", v1alpha1.KillCrashed)
	m.Drained("shop", "mail", 40*time.Second)
	m.Unobserved("shop", "mail", 3)
	want := `# HELP queueworker_kills_total Workers that were killed or crashed, by QueueWorker and reason (GraceEnded, GraceCut, Overran, OOMKilled, Evicted, Crashed). At least so many: see queueworker_unobserved_endings_total.
# TYPE queueworker_kills_total counter
queueworker_kills_total{name="mail",namespace="crm",reason="Crashed"} 1
queueworker_kills_total{name="mail",namespace="shop",reason="Crashed"} 1
queueworker_kills_total{name="mail",namespace="shop",reason="GraceCut"} 2
# HELP queueworker_unobserved_endings_total Workers that are gone and of which nobody saw how they ended: deleted by force, lost with their node, or gone while no manager ran.
# TYPE queueworker_unobserved_endings_total counter
queueworker_unobserved_endings_total{name="mail",namespace="shop"} 3
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "queueworker_kills_total", "queueworker_unobserved_endings_total"); err != nil {
		t.Error(err)
	}
	m.Forget("shop", "mail")
	if kills, drains, unobserved := count(t, reg, "queueworker_kills_total"), count(t, reg, "queueworker_drain_duration_seconds"),
		count(t, reg, "queueworker_unobserved_endings_total"); kills != 1 || drains+unobserved != 0 {
		t.Errorf("%d kills, %d drains, %d unobserved are left", kills, drains, unobserved)
	}
}

func TestAPreflightIsCountedWhileItIsKnown(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := metrics.New(reg)
	m.SetPreflight("shop", "mail", metav1.ConditionTrue)
	m.SetPreflight("shop", "pay", metav1.ConditionFalse)
	m.SetPreflight("crm", "pay", metav1.ConditionUnknown)
	want := `# HELP queueworker_preflight_passed Whether the image of a QueueWorker's newest template keeps what is declared: 1 it does, 0 it does not. No series while that is not known.
# TYPE queueworker_preflight_passed gauge
queueworker_preflight_passed{name="mail",namespace="shop"} 1
queueworker_preflight_passed{name="pay",namespace="shop"} 0
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "queueworker_preflight_passed"); err != nil {
		t.Error(err)
	}
	m.SetPreflight("shop", "mail", metav1.ConditionUnknown)
	m.Forget("shop", "pay")
	if n := count(t, reg, "queueworker_preflight_passed"); n != 0 {
		t.Errorf("%d series are left", n)
	}
}

func TestMetricsAreWellNamed(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := metrics.New(reg)
	m.Refused("thin-margin")
	m.CertificateExpires(time.Unix(1_800_000_000, 0))
	m.SetFindings("shop", "mail", []timeoutchain.Finding{{Rule: "thin-margin", Severity: timeoutchain.Warning}})
	m.Killed("shop", "mail", v1alpha1.KillEvicted)
	m.Drained("shop", "mail", time.Second)
	m.Unobserved("shop", "mail", 1)
	m.SetPreflight("shop", "mail", metav1.ConditionTrue)
	m.SetStatus(&v1alpha1.QueueWorker{}, &v1alpha1.QueueWorkerStatus{Conditions: []metav1.Condition{
		{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonChainBroken},
		{Type: v1alpha1.ConditionGraceHonored, Status: metav1.ConditionTrue},
	}})
	problems, err := testutil.GatherAndLint(reg)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	for _, name := range []string{
		"queueworker_chain_findings", "queueworker_admission_refused_total", "queueworker_rollouts_total",
		"queueworker_webhook_certificate_expiry_timestamp_seconds", "queueworker_kills_total",
		"queueworker_drain_duration_seconds", "queueworker_unobserved_endings_total", "queueworker_preflight_passed",
		"queueworker_workers", "queueworker_stalled", "queueworker_grace_honored",
	} {
		if count(t, reg, name) == 0 {
			t.Errorf("%s has no series", name)
		}
	}
}

func count(t *testing.T, reg *prometheus.Registry, name string) int {
	t.Helper()
	n, err := testutil.GatherAndCount(reg, name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
