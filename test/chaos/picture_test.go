// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/workload"
)

// picture is what there is of one QueueWorker, without times, UIDs and the name
// of the namespace, so that the pictures of two runs can be compared.
type picture struct {
	Worker, Deployment, Budget *object
	Status                     v1alpha1.QueueWorkerStatus
	ReplicaSets                map[string]int32 // by template hash: replicas
	Pods                       map[string]int   // by template hash
}

// object is an object that somebody wrote.
type object struct {
	Labels, Annotations map[string]string
	// Generation is how often the spec was written with a difference.
	Generation int64
	// Owner is the kind and name of the controller, if that is the one which
	// is there now.
	Owner string
	Spec  any
	// Fields are the field sets by manager.
	Fields map[string]string
}

// ends are the fields that tell of a worker's end. Which of many was the last is
// chance, and a manager that is down sees none.
var ends = regexp.MustCompile(`"f:last(?:Drain|Kill)":\{(?:"f:\w+":\{\},?)*\},?`)

// takePictures makes one of each QueueWorker of which anything is there.
func takePictures(ctx context.Context, namespace string) (map[string]*picture, error) {
	var workers v1alpha1.QueueWorkerList
	var deployments appsv1.DeploymentList
	var budgets policyv1.PodDisruptionBudgetList
	var sets appsv1.ReplicaSetList
	var pods corev1.PodList
	var errs []error
	for _, list := range []client.ObjectList{&workers, &deployments, &budgets, &sets, &pods} {
		errs = append(errs, k8s.List(ctx, list, client.InNamespace(namespace)))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	pictures := map[string]*picture{}
	of := func(meta metav1.Object) *picture {
		name := meta.GetLabels()[v1alpha1.LabelName]
		if name == "" {
			name = meta.GetName()
		}
		if pictures[name] == nil {
			pictures[name] = &picture{ReplicaSets: map[string]int32{}, Pods: map[string]int{}}
		}
		return pictures[name]
	}
	owners := map[string]metav1.Object{} // by UID
	for i := range workers.Items {
		qw := &workers.Items[i]
		owners[string(qw.UID)] = qw
		p := of(qw)
		p.Status = *qw.Status.DeepCopy()
		p.Status.LastDrain, p.Status.LastKill = nil, nil // as with the fields of ends
		for j := range p.Status.Conditions {
			p.Status.Conditions[j].LastTransitionTime = metav1.Time{}
		}
		p.Worker = objectOf(qw, qw.Spec, owners)
	}
	for i := range deployments.Items {
		if workload.MonitorName(deployments.Items[i].Labels[v1alpha1.LabelName]) == deployments.Items[i].Name {
			continue // it names its namespace, in which the two runs differ
		}
		of(&deployments.Items[i]).Deployment = objectOf(&deployments.Items[i], deployments.Items[i].Spec, owners)
	}
	for i := range budgets.Items {
		of(&budgets.Items[i]).Budget = objectOf(&budgets.Items[i], budgets.Items[i].Spec, owners)
	}
	for i := range sets.Items {
		of(&sets.Items[i]).ReplicaSets[sets.Items[i].Labels[appsv1.DefaultDeploymentUniqueLabelKey]] = *sets.Items[i].Spec.Replicas
	}
	for i := range pods.Items {
		of(&pods.Items[i]).Pods[pods.Items[i].Labels[appsv1.DefaultDeploymentUniqueLabelKey]]++
	}
	return pictures, nil
}

func objectOf(meta metav1.Object, spec any, owners map[string]metav1.Object) *object {
	o := &object{
		Labels: meta.GetLabels(), Annotations: meta.GetAnnotations(), Generation: meta.GetGeneration(),
		Spec: plain(spec), Fields: map[string]string{},
	}
	if controller := metav1.GetControllerOf(meta); controller != nil {
		o.Owner = "somebody who is gone"
		if owner := owners[string(controller.UID)]; owner != nil {
			o.Owner = controller.Kind + " " + owner.GetName()
		}
	}
	for _, entry := range meta.GetManagedFields() {
		if entry.Manager == "kube-controller-manager" || entry.FieldsV1 == nil {
			continue
		}
		fields := ends.ReplaceAllString(string(entry.FieldsV1.GetRawBytes()), "")
		for uid := range owners {
			fields = strings.ReplaceAll(fields, uid, "OWNER")
		}
		o.Fields[fmt.Sprint(entry.Manager, " ", entry.Operation, " ", entry.Subresource)] = fields
	}
	return o
}

// plain turns a value into maps and lists, whose differences read well.
func plain(value any) (out any) {
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		panic(err) // of our own types
	}
	return out
}
