// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/queueworker/operator/hack/operator"
)

// Everything that the operator does is done once, while the API server writes
// down what it is asked. What the chart grants is then what was asked for: no
// right is left over, and none is missing.
func TestWhatIsGrantedIsWhatIsUsed(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	folder := t.TempDir()
	policy, log := filepath.Join(folder, "policy.yaml"), filepath.Join(folder, "audit.log")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	const values = "metrics: {readers: [{namespace: shop, name: prometheus}]}"
	l := newLab(t, []string{"--audit-policy-file=" + policy, "--audit-log-path=" + log}, "shop")
	l.installFirst(values)
	l.doEverything()

	asked := readAudit(t, log)
	if len(asked.refused) > 0 {
		t.Errorf("refused for lack of a right:\n  %s", strings.Join(asked.refused, "\n  "))
	}
	objects := rendered(t, values).Objects
	everywhere := find[rbacv1.ClusterRole](t, objects, "ClusterRole", installed).Rules
	own := find[rbacv1.Role](t, objects, "Role", installed).Rules
	if granted := len(grants(everywhere...)) + len(grants(own...)); granted < 20 {
		t.Fatalf("%d grants in the chart's roles: they were not read", granted)
	}
	for _, grant := range grants(everywhere...) {
		if !asked.anywhere[grant] && grant != holdsUpOwners && grant != passesOn {
			t.Errorf("granted in the ClusterRole and never used: %s", grant)
		}
	}
	for _, grant := range grants(own...) {
		if !asked.inOwnNamespace[grant] {
			t.Errorf("granted in the Role and never used: %s", grant)
		}
	}
	l.ownersNeedTheRight()
}

// auditPolicy writes down what the operator asks, and no content.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    users: ["` + operator.User + `"]
  - level: None
`

// holdsUpOwners is asked for by no request: the API server looks for it where an
// owner's deletion is to be held up (OwnerReferencesPermissionEnforcement).
const holdsUpOwners = "queueworker.dev/queueworkers/finalizers[*] update"

// passesOn is asked for by monitors only: the API server lets nobody grant what they have not, so without it no monitor gets
// its Role, and the test waits for one.
const passesOn = "queueworker.dev/queueworkers/status[*] get"

// ownersNeedTheRight shows that it does.
func (l *lab) ownersNeedTheRight() {
	l.t.Helper()
	l.run("-n shop create role deployer --verb=create --resource=deployments.apps")
	l.run("-n shop create rolebinding deployer --role=deployer --serviceaccount=shop:prometheus")
	l.eventually("the refusal of an owner without "+holdsUpOwners, func() bool {
		_, err := l.kubectl.Run(l.ctx, "create --dry-run=server --as=system:serviceaccount:shop:prometheus -f "+l.path("owned.yaml"))
		return err != nil && strings.Contains(err.Error(), "cannot set blockOwnerDeletion")
	})
}

// doEverything has two replicas do what the operator is there for.
func (l *lab) doEverything() {
	l.t.Helper()
	l.run("-n shop create serviceaccount prometheus")
	leader := l.startManager()
	standby := l.startManager()

	l.run("-n shop apply -f config/samples/payments.yaml")
	l.ready("payments")
	l.run("-n shop scale qw payments --replicas=1")
	l.is("payments", "{.status.ready}", "1/1")
	l.patch("payments", `{"spec":{"podDisruptionBudget":{"maxUnavailable":1}}}`)
	l.eventually("a budget", func() bool { return l.run("-n shop get pdb -o name") != "" })
	l.patch("payments", `{"spec":{"podDisruptionBudget":{"maxUnavailable":2}}}`)
	l.patch("payments", `{"spec":{"podDisruptionBudget":null}}`)
	l.eventually("no budget", func() bool { return l.run("-n shop get pdb -o name") == "" })
	l.eventually("a monitor and its Role", func() bool { return l.monitors() == 4 })
	l.patch("payments", `{"spec":{"monitor":{"enabled":false}}}`)
	l.eventually("no monitor", func() bool { return l.monitors() == 0 })
	l.patch("payments", `{"spec":{"monitor":{"enabled":true}}}`)
	l.eventually("a monitor again", func() bool { return l.monitors() == 4 })
	for range 2 { // the second time events are the same
		l.patch("payments", image("bad", true))
		l.is("payments", `{.status.conditions[?(@.type=="Stalled")].reason}`, "PreflightRefused")
		l.patch("payments", image("good", false))
		l.is("payments", `{.status.conditions[?(@.type=="Reconciling")].reason}`, "Settled")
	}
	l.run("-n shop apply -f config/samples/fence-proxy.yaml")
	l.ready("fenced-charges")

	// A trial of the preflight goes before a Recreate.
	l.run("-n shop apply -f config/samples/one-at-a-time.yaml")
	l.ready("one-at-a-time")
	l.patch("one-at-a-time", image("next", false))
	l.is("one-at-a-time", `{.status.conditions[?(@.type=="Reconciling")].reason}`, "Settled")
	l.eventually("no trial's pod", func() bool {
		return l.run("-n shop get pods -l queueworker.dev/preflight -o name") == ""
	})

	l.scrape(leader)
	l.renewCertificate()
	if err := leader.Stop(); err != nil {
		l.t.Error(err)
	}
	l.run("-n shop scale qw payments --replicas=2")
	l.is("payments", "{.status.ready}", "2/2")
	l.run("-n shop delete qw --all --wait=false")
	l.eventually("no Deployment", func() bool { return l.run("-n shop get deployments -o name") == "" })
	if err := standby.Stop(); err != nil {
		l.t.Error(err)
	}
}

// monitors is how many objects are there for the monitor of payments.
func (l *lab) monitors() int {
	return len(strings.Fields(l.run("-n shop get deployment,serviceaccount,role,rolebinding payments-monitor --ignore-not-found -o name")))
}

// image is a patch to another image; refused: whose preflight finds a fault.
func image(tag string, refused bool) string {
	said, exit := "null", "null"
	if refused {
		said = `"preflight Refused: 1 errors, 0 warnings, 0 not verified\nerror job-not-below-retry-after: App\\Jobs\\Export: $timeout 600 must be below retryAfterSeconds 90"`
		exit = `"1"`
	}
	return fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"simulated.queueworker.dev/preflight":%s,"simulated.queueworker.dev/preflight-exit":%s}},`+
		`"spec":{"containers":[{"name":"worker","image":"registry.example/shop:%s"}]}}}}`, said, exit, tag)
}

func (l *lab) patch(worker, patch string) {
	l.t.Helper()
	l.run("-n shop patch qw " + worker + " --type=merge --patch-file " + l.write("patch.json", patch))
}

func (l *lab) ready(worker string) {
	l.t.Helper()
	l.run("-n shop wait qw/" + worker + " --for=condition=Ready --timeout=120s")
}

// is waits for a value of a QueueWorker that was looked at.
func (l *lab) is(worker, path, want string) {
	l.t.Helper()
	l.eventually(worker+" has "+path+" "+want, func() bool {
		return l.run("-n shop get qw "+worker+" -o jsonpath={.metadata.generation},{.status.observedGeneration},"+path) == l.generation(worker)+want
	})
}

func (l *lab) generation(worker string) string {
	generation := l.run("-n shop get qw " + worker + " -o jsonpath={.metadata.generation}")
	return generation + "," + generation + ","
}

// scrape reads the metrics as the chart's reader.
func (l *lab) scrape(from *operator.Manager) {
	l.t.Helper()
	request, err := http.NewRequestWithContext(l.ctx, http.MethodGet, "https://"+from.Metrics+"/metrics", http.NoBody)
	if err != nil {
		l.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(l.run("-n shop create token prometheus")))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := client.Do(request)
	if err != nil {
		l.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || !bytes.Contains(text, []byte("controller_runtime_reconcile_total")) {
		l.t.Errorf("the metrics answer %s (%v): %.200s", response.Status, err, text)
	}
}

// renewCertificate empties the Secret, and waits until the API server trusts what
// is made anew.
func (l *lab) renewCertificate() {
	l.t.Helper()
	const authority = "get validatingwebhookconfiguration " + operator.Name + " -o jsonpath={.webhooks[0].clientConfig.caBundle}"
	before := l.run(authority)
	l.run("-n " + operator.Namespace + ` patch secret queueworker-operator-webhook-cert --type=merge -p {"data":null}`)
	l.eventually("another authority", func() bool { return l.run(authority) != before })
}

// audited is what the operator asked the API server.
type audited struct {
	anywhere, inOwnNamespace map[string]bool // grants, written as those of the chart
	refused                  []string
}

type auditEvent struct {
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	ObjectRef  *struct {
		APIGroup, Resource, Subresource, Namespace, Name string
	} `json:"objectRef"`
	ResponseStatus struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"responseStatus"`
	Annotations map[string]string `json:"annotations"`
}

func readAudit(t *testing.T, log string) audited {
	t.Helper()
	time.Sleep(time.Second) // the API server writes an event after it has answered
	file, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	asked := audited{anywhere: map[string]bool{}, inOwnNamespace: map[string]bool{}}
	refused := map[string]bool{}
	for reader := bufio.NewReader(file); ; {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		var event auditEvent
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if event.ResponseStatus.Code == http.StatusForbidden || event.Annotations["authorization.k8s.io/decision"] == "forbid" {
			refused[event.Verb+" "+event.RequestURI+": "+event.ResponseStatus.Message] = true
			continue
		}
		asked.add(event)
	}
	asked.refused = slices.Sorted(maps.Keys(refused))
	if len(asked.anywhere) == 0 {
		t.Fatal("the audit log holds nothing that the operator asked")
	}
	return asked
}

func (a *audited) add(event auditEvent) {
	of := event.ObjectRef
	if of == nil {
		return // discovery, which everybody may do
	}
	resource := of.APIGroup + "/" + of.Resource
	if of.Subresource != "" {
		resource += "/" + of.Subresource
	}
	verbs := []string{event.Verb}
	switch {
	case event.Verb == "patch" && event.ResponseStatus.Code == http.StatusCreated:
		verbs = append(verbs, "create") // an apply that makes the object is asked for both
	case event.Verb == "watch" && strings.Contains(event.RequestURI, "sendInitialEvents=true"):
		verbs = append(verbs, "list") // which is how the same is asked for before Kubernetes 1.34
	}
	for _, verb := range verbs {
		for _, name := range []string{"*", of.Name} {
			a.anywhere[resource+"["+name+"] "+verb] = true
			if of.Namespace == operator.Namespace {
				a.inOwnNamespace[resource+"["+name+"] "+verb] = true
			}
		}
	}
}
