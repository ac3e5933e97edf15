// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/chainsource"
	"github.com/queueworker/operator/internal/rollout"
	"github.com/queueworker/operator/internal/timeoutchain"
	"github.com/queueworker/operator/internal/workload"
)

func newWorker() *v1alpha1.QueueWorker {
	return &v1alpha1.QueueWorker{
		ObjectMeta: metav1.ObjectMeta{Name: "mail", Namespace: "shop", UID: "worker-1"},
		Spec: v1alpha1.QueueWorkerSpec{
			Replicas: ptr.To[int32](3),
			Queue:    v1alpha1.Queue{Connection: "redis"},
			Timeouts: v1alpha1.Timeouts{HTTPSeconds: ptr.To[int32](20), JobSeconds: 30, RetryAfterSeconds: ptr.To[int32](90)},
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "worker", Image: "registry.example/shop:1"}},
			}},
		},
	}
}

// observe judges the QueueWorker as the controller does.
func observe(qw *v1alpha1.QueueWorker) *rollout.Observed {
	chain := chainsource.FromQueueWorker(qw, chainsource.Options{})
	return &rollout.Observed{QueueWorker: qw, Chain: chain, Findings: timeoutchain.Check(chain)}
}

func makePlan(t *testing.T, o *rollout.Observed, render workload.Renderer) rollout.Plan {
	t.Helper()
	plan, err := rollout.Make(o, render)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// applied is the Deployment that the API server makes of an apply
// configuration: the fields, and who owns them.
func applied(t *testing.T, ac *appsv1ac.DeploymentApplyConfiguration) *appsv1.Deployment {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(ac)
	if err != nil {
		t.Fatal(err)
	}
	deployment := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, deployment); err != nil {
		t.Fatal(err)
	}
	deployment.ManagedFields = []metav1.ManagedFieldsEntry{owns(t, v1alpha1.FieldManager, metav1.ManagedFieldsOperationApply, fields)}
	return deployment
}

func owns(t *testing.T, manager string, operation metav1.ManagedFieldsOperationType, fields map[string]any) metav1.ManagedFieldsEntry {
	t.Helper()
	text, err := json.Marshal(ownedFields(fields))
	if err != nil {
		t.Fatal(err)
	}
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, APIVersion: "apps/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(text)),
	}
}

// keys are the lists that are maps to the API server, with their key.
var keys = map[string][]string{
	"containers": {"name"}, "initContainers": {"name"}, "env": {"name"}, "volumes": {"name"}, "volumeMounts": {"mountPath"},
	"ports": {"containerPort", "protocol"}, "ownerReferences": {"uid"},
}

func ownedFields(fields map[string]any) map[string]any {
	owned := map[string]any{}
	for name, value := range fields {
		if name == "apiVersion" || name == "kind" || name == "name" && fields["labels"] != nil || name == "namespace" {
			continue
		}
		entry := map[string]any{}
		switch value := value.(type) {
		case map[string]any:
			entry = ownedFields(value)
		case []any:
			if key, ok := keys[name]; ok {
				for _, item := range value {
					item := item.(map[string]any)
					of := map[string]any{}
					for _, field := range key {
						of[field] = item[field]
					}
					id, err := json.Marshal(of)
					if err != nil {
						panic(err)
					}
					inner := ownedFields(item)
					inner["."] = map[string]any{}
					entry["k:"+string(id)] = inner
				}
			}
		}
		owned["f:"+name] = entry
	}
	return owned
}

func inSync(t *testing.T, plan rollout.Plan, live *appsv1.Deployment) bool {
	t.Helper()
	owned, err := rollout.OwnedDeployment(live)
	if err != nil {
		t.Fatal(err)
	}
	return rollout.Same(plan.Deployment, owned)
}

// render is how this operator renders.
var render = workload.WithAgent("registry.example/operator:1.0.0")

// renderNext is how a later operator might render.
func renderNext(qw *v1alpha1.QueueWorker, chain timeoutchain.Chain) corev1.PodTemplateSpec {
	pod := render(qw, chain)
	pod.Spec.Containers[0].Args = append(pod.Spec.Containers[0].Args, "--json")
	return pod
}

func TestSettledDeploymentIsInSync(t *testing.T) {
	o := observe(newWorker())
	o.Deployment = applied(t, makePlan(t, o, render).Deployment)
	plan := makePlan(t, o, render)
	if !inSync(t, plan, o.Deployment) || plan.NewTemplate || plan.Stall != nil {
		t.Errorf("a settled Deployment is to be written: %+v", plan)
	}
}

func TestUpgradedOperatorKeepsTheTemplate(t *testing.T) {
	qw := newWorker()
	o := observe(qw)
	o.Deployment = applied(t, makePlan(t, o, render).Deployment)

	if plan := makePlan(t, o, renderNext); !inSync(t, plan, o.Deployment) || plan.NewTemplate {
		t.Error("another rendering alone changes the Deployment")
	}
	qw.Spec.Replicas, qw.Generation = ptr.To[int32](9), 2
	plan := makePlan(t, observeWith(qw, o.Deployment), renderNext)
	if plan.NewTemplate || *plan.Deployment.Spec.Replicas != 9 || hasJSON(plan) {
		t.Error("scaling renders the template anew")
	}
	qw.Spec.Timeouts.JobSeconds = 40
	if plan := makePlan(t, observeWith(qw, o.Deployment), renderNext); !plan.NewTemplate || !hasJSON(plan) {
		t.Error("a change of the user's is not rendered")
	}
}

func observeWith(qw *v1alpha1.QueueWorker, live *appsv1.Deployment) *rollout.Observed {
	o := observe(qw)
	o.Deployment = live
	return o
}

func hasJSON(plan rollout.Plan) bool {
	return strings.Contains(strings.Join(plan.Deployment.Spec.Template.Spec.Containers[0].Args, " "), "--json")
}

func TestDamagedStoreIsRenderedAnew(t *testing.T) {
	o := observe(newWorker())
	o.Deployment = applied(t, makePlan(t, o, render).Deployment)
	o.Deployment.Annotations[v1alpha1.AnnotationAppliedTemplate] = "damaged"
	if plan := makePlan(t, o, render); plan.Deployment.Spec.Template == nil || inSync(t, plan, o.Deployment) {
		t.Error("a damaged store is left as it is")
	}
}

func TestDriftIsRepairedToWhatWasApplied(t *testing.T) {
	o := observe(newWorker())
	first := makePlan(t, o, render)
	o.Deployment = applied(t, first.Deployment)
	takeImage(o.Deployment)

	plan := makePlan(t, o, renderNext)
	if inSync(t, plan, o.Deployment) {
		t.Error("drift is not seen")
	}
	if !rollout.Same(plan.Deployment.Spec.Template, first.Deployment.Spec.Template) {
		t.Errorf("repaired to another template: %+v", plan.Deployment.Spec.Template)
	}
}

// takeImage makes the image somebody else's.
func takeImage(deployment *appsv1.Deployment) {
	deployment.Spec.Template.Spec.Containers[0].Image = "registry.example/other:1"
	entry := &deployment.ManagedFields[0]
	entry.FieldsV1 = metav1.NewFieldsV1(strings.Replace(entry.FieldsV1.GetRawString(), `"f:image":{},`, "", 1))
}

func TestBrokenChainStillRepairsDrift(t *testing.T) {
	qw := newWorker()
	first := makePlan(t, observe(qw), render)
	live := applied(t, first.Deployment)
	takeImage(live)
	qw.Spec.Timeouts.JobSeconds = 100
	if plan := makePlan(t, observeWith(qw, live), renderNext); !rollout.Same(plan.Deployment.Spec.Template, first.Deployment.Spec.Template) {
		t.Errorf("held at another template: %+v", plan.Deployment.Spec.Template)
	}
	live.Annotations = nil // nothing to repair from: what is still ours stays
	if plan := makePlan(t, observeWith(qw, live), renderNext); plan.Deployment.Spec.Template.Spec.Containers[0].Image != nil {
		t.Errorf("held at another template: %+v", plan.Deployment.Spec.Template)
	}
}

func TestBrokenChainNamesTheFirstErrorAndCountsTheRest(t *testing.T) {
	o := observe(newWorker())
	for n, want := range []string{1: "The chain is broken: a: b: c; d.", 2: "The chain is broken: a: b: c; d (and 1 more).", 3: "The chain is broken: a: b: c; d (and 2 more)."} {
		o.Findings = nil
		for range n {
			o.Findings = append(o.Findings, timeoutchain.Finding{
				Rule: "a", Severity: timeoutchain.Error, Problem: "b", Consequence: "c", Fix: timeoutchain.Fix{Text: "d"},
			})
		}
		if n == 0 {
			continue
		}
		if got := makePlan(t, o, render).Stall.Message; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestBrokenChainFreezesTheTemplate(t *testing.T) {
	qw := newWorker()
	o := observe(qw)
	live := applied(t, makePlan(t, o, render).Deployment)

	qw.Spec.Timeouts.JobSeconds, qw.Spec.Replicas = 100, ptr.To[int32](7)
	plan := makePlan(t, observeWith(qw, live), renderNext)
	if plan.Stall == nil || plan.Stall.Reason != v1alpha1.ReasonChainBroken || !strings.Contains(plan.Stall.Message, "job-not-below-retry-after") {
		t.Errorf("stall: %+v", plan.Stall)
	}
	want := applied(t, plan.Deployment)
	live.Spec.Replicas = ptr.To[int32](7)
	if !rollout.Same(want.Spec, live.Spec) {
		t.Errorf("more than the replicas changes: %+v", want.Spec)
	}
	if plan := makePlan(t, observe(qw), render); plan.Deployment != nil || plan.Stall == nil {
		t.Errorf("a broken chain makes a Deployment: %+v", plan)
	}
}

func TestRefusedPlanScalesOn(t *testing.T) {
	qw := newWorker()
	live := applied(t, makePlan(t, observe(qw), render).Deployment)
	qw.Spec.Template.Spec.Containers[0].Image, qw.Spec.Replicas = "registry.example/shop:2", ptr.To[int32](7)
	o := observeWith(qw, live)
	plan, err := makePlan(t, o, render).Refused(o, rollout.Stall{Reason: v1alpha1.ReasonDeploymentRefused, Message: "No."})
	if err != nil {
		t.Fatal(err)
	}
	if got := *plan.Deployment.Spec.Template.Spec.Containers[0].Image; got != "registry.example/shop:1" || *plan.Deployment.Spec.Replicas != 7 {
		t.Errorf("image %s, replicas %d", got, *plan.Deployment.Spec.Replicas)
	}
	o.Deployment = nil
	if plan, err = makePlan(t, o, render).Refused(o, rollout.Stall{}); err != nil || plan.Deployment != nil {
		t.Errorf("there is nothing to scale: %+v, %v", plan.Deployment, err)
	}
}

func TestWhoOwnsTheReplicas(t *testing.T) {
	replicas := map[string]any{"spec": map[string]any{"replicas": int64(1)}}
	for name, c := range map[string]struct {
		live     int32
		managers []metav1.ManagedFieldsEntry
		want     *int32 // nil = left out
		owner    string
	}{
		"nobody":                            {5, nil, ptr.To[int32](3), ""},
		"we":                                {5, []metav1.ManagedFieldsEntry{owns(t, v1alpha1.FieldManager, "Apply", replicas)}, ptr.To[int32](3), ""},
		"an autoscaler":                     {5, []metav1.ManagedFieldsEntry{owns(t, "autoscaler", "Update", replicas)}, nil, "autoscaler"},
		"an autoscaler and we":              {5, []metav1.ManagedFieldsEntry{owns(t, "autoscaler", "Update", replicas), owns(t, v1alpha1.FieldManager, "Apply", replicas)}, ptr.To[int32](3), ""},
		"an autoscaler that wants the same": {3, []metav1.ManagedFieldsEntry{owns(t, "autoscaler", "Update", replicas)}, ptr.To[int32](3), ""},
		"an update under our name":          {5, []metav1.ManagedFieldsEntry{owns(t, v1alpha1.FieldManager, "Update", replicas)}, nil, v1alpha1.FieldManager},
		"unreadable":                        {5, []metav1.ManagedFieldsEntry{{Manager: "x", FieldsV1: metav1.NewFieldsV1("{")}, {Manager: "y"}}, ptr.To[int32](3), ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(newWorker())
			o.Deployment = applied(t, makePlan(t, o, render).Deployment)
			o.Deployment.Spec.Replicas, o.Deployment.ManagedFields = ptr.To(c.live), c.managers
			plan := makePlan(t, o, render)
			if plan.ReplicasOwner != c.owner || !rollout.Same(plan.Deployment.Spec.Replicas, c.want) {
				t.Errorf("owner %q, replicas %v", plan.ReplicasOwner, ptr.Deref(plan.Deployment.Spec.Replicas, -1))
			}
		})
	}
}

func TestObjectsOfOthersAreLeftAlone(t *testing.T) {
	qw := newWorker()
	asked := newWorker()
	asked.Spec.PodDisruptionBudget = &v1alpha1.PodDisruptionBudget{MaxUnavailable: ptr.To(intstr.FromInt32(1))}
	theirs := metav1.ObjectMeta{Name: "mail", Namespace: "shop"}
	ours := theirs
	ours.Labels = workload.Labels(qw)
	ours.OwnerReferences = []metav1.OwnerReference{{UID: qw.UID, Controller: ptr.To(true)}}
	earlier := theirs
	earlier.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.Kind, Name: "mail", UID: "worker-0", Controller: ptr.To(true),
	}}
	leaving := ours
	leaving.DeletionTimestamp = &metav1.Time{}

	for name, c := range map[string]struct {
		worker     *v1alpha1.QueueWorker
		deployment *metav1.ObjectMeta
		budget     *metav1.ObjectMeta
		want       string // what the plan does
	}{
		"nothing there":             {asked, nil, nil, "deployment budget"},
		"nothing there, no budget":  {qw, nil, nil, "deployment"},
		"foreign Deployment":        {asked, &theirs, nil, "ForeignObject"},
		"foreign budget":            {asked, nil, &theirs, "deployment ForeignObject"},
		"foreign, unwanted budget":  {qw, nil, &theirs, "deployment"},
		"unwanted budget of ours":   {qw, nil, &ours, "deployment delete-budget"},
		"unwanted, leaving budget":  {qw, nil, &leaving, "deployment"},
		"budget of an earlier one":  {asked, nil, &earlier, "deployment"},
		"Deployment of earlier one": {qw, &earlier, nil, "waiting"},
		"leaving Deployment":        {qw, &leaving, nil, "waiting"},
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(c.worker)
			if c.deployment != nil {
				o.Deployment = &appsv1.Deployment{ObjectMeta: *c.deployment}
			}
			if c.budget != nil {
				o.Budget = &policyv1.PodDisruptionBudget{ObjectMeta: *c.budget}
			}
			if got := describe(makePlan(t, o, render)); got != c.want {
				t.Errorf("the plan is %q, want %q", got, c.want)
			}
		})
	}
}

func describe(plan rollout.Plan) string {
	var words []string
	for _, w := range []struct {
		there bool
		word  string
	}{
		{plan.Deployment != nil, "deployment"}, {plan.Budget != nil, "budget"},
		{plan.DeleteBudget, "delete-budget"}, {plan.Waiting != "", "waiting"},
	} {
		if w.there {
			words = append(words, w.word)
		}
	}
	if plan.Stall != nil {
		words = append(words, plan.Stall.Reason)
	}
	return strings.Join(words, " ")
}
