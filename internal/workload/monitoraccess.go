// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/timeoutchain"
)

const (
	// tokenFolder is where programs look for a token.
	tokenFolder = "/var/run/secrets/kubernetes.io/serviceaccount"
	// tokenLife is how long a token is valid, in seconds; the kubelet renews it.
	tokenLife = 3600

	monitorSuffix = "-monitor"
	maxName       = 63
)

// MonitorName is the name of everything that belongs to a QueueWorker's monitor.
func MonitorName(worker string) string {
	if len(worker)+len(monitorSuffix) <= maxName {
		return worker + monitorSuffix
	}
	sum := sha256.Sum256([]byte(worker))
	short := "-" + hex.EncodeToString(sum[:4]) + monitorSuffix
	return worker[:maxName-len(short)] + short
}

// MonitorAccount is the name of the service account that the monitor has.
func MonitorAccount(qw *v1alpha1.QueueWorker) string {
	if name := qw.Spec.Monitor.ServiceAccountName; name != "" {
		return name
	}
	return MonitorName(qw.Name)
}

// MonitorServiceAccount is the account of the monitor, nil where the user names
// another. Nothing mounts its token by itself.
func MonitorServiceAccount(qw *v1alpha1.QueueWorker) *corev1ac.ServiceAccountApplyConfiguration {
	if qw.Spec.Monitor.ServiceAccountName != "" {
		return nil
	}
	return corev1ac.ServiceAccount(MonitorName(qw.Name), qw.Namespace).
		WithLabels(Labels(qw)).
		WithOwnerReferences(owner(qw)).
		WithAutomountServiceAccountToken(false)
}

// MonitorRole allows the status of this one object. It can be read, since that
// says how many workers there are, and applied.
func MonitorRole(qw *v1alpha1.QueueWorker) *rbacv1ac.RoleApplyConfiguration {
	return rbacv1ac.Role(MonitorName(qw.Name), qw.Namespace).
		WithLabels(Labels(qw)).
		WithOwnerReferences(owner(qw)).
		WithRules(rbacv1ac.PolicyRule().
			WithAPIGroups(v1alpha1.GroupName).
			WithResources("queueworkers/status").
			WithResourceNames(qw.Name).
			WithVerbs("get", "patch"))
}

// MonitorRoleBinding gives the role to the monitor's account, and to those of
// older monitors.
func MonitorRoleBinding(qw *v1alpha1.QueueWorker, older ...string) *rbacv1ac.RoleBindingApplyConfiguration {
	binding := rbacv1ac.RoleBinding(MonitorName(qw.Name), qw.Namespace).
		WithLabels(Labels(qw)).
		WithOwnerReferences(owner(qw)).
		WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("Role").WithName(MonitorName(qw.Name)))
	for _, account := range append([]string{MonitorAccount(qw)}, older...) {
		binding.WithSubjects(rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithName(account).WithNamespace(qw.Namespace))
	}
	return binding
}

// MonitorHash identifies what the user wrote and the monitor acts on.
func MonitorHash(qw *v1alpha1.QueueWorker) (string, error) {
	worker, err := InputHash(qw)
	if err != nil {
		return "", err
	}
	monitor := qw.Spec.Monitor
	monitor.Enabled = nil // turned off there is no monitor
	text, err := json.Marshal(struct {
		Worker  string           `json:"worker"`
		Monitor v1alpha1.Monitor `json:"monitor"`
	}{worker, monitor})
	if err != nil {
		return "", fmt.Errorf("writing the input: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}

// RenderMonitor renders the monitor's template anew. It pulls the application's
// image, so it has the secrets that the workers have from their own account.
func RenderMonitor(qw *v1alpha1.QueueWorker, render Renderer, pullSecrets []corev1.LocalObjectReference) (Template, error) {
	withSecrets := func(qw *v1alpha1.QueueWorker, chain timeoutchain.Chain) corev1.PodTemplateSpec {
		template := render(qw, chain)
		if len(template.Spec.ImagePullSecrets) == 0 {
			template.Spec.ImagePullSecrets = slices.Clone(pullSecrets)
		}
		return template
	}
	template, err := Render(qw, timeoutchain.Chain{}, withSecrets)
	if err != nil {
		return Template{}, err
	}
	template.InputHash, err = MonitorHash(qw)
	return template, err
}

// tokenVolume is what Kubernetes mounts into every container of a pod by itself.
func tokenVolume() corev1.Volume {
	return corev1.Volume{
		Name: v1alpha1.MonitorTokenVolume,
		VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: ptr.To[int64](tokenLife)}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
				Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"},
			}}}},
		}}},
	}
}

func tokenMount() corev1.VolumeMount {
	return corev1.VolumeMount{Name: v1alpha1.MonitorTokenVolume, MountPath: tokenFolder, ReadOnly: true}
}

// withoutToken leaves out a token of the worker's own at the place of ours.
func withoutToken(mounts []corev1.VolumeMount) []corev1.VolumeMount {
	return slices.DeleteFunc(mounts, func(m corev1.VolumeMount) bool { return m.MountPath == tokenFolder })
}
