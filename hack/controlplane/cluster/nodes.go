// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Annotations that steer one simulated pod.
const (
	// TerminatingForAnnotation is how long this pod stays Terminating once deleted, as a Go duration such as "20s".
	TerminatingForAnnotation = "simulated.queueworker.dev/terminating-for"
	// ManualAnnotation, with any value, leaves the pod's status to the test: the pod is not made Ready.
	// Deletion still works.
	ManualAnnotation = "simulated.queueworker.dev/manual"
	// PreflightAnnotation is the termination message of this pod's preflight, in place of one that passed.
	PreflightAnnotation = "simulated.queueworker.dev/preflight"
	// PreflightExitAnnotation is the exit code with which it fails: the pod does not become Ready.
	PreflightExitAnnotation = "simulated.queueworker.dev/preflight-exit"
)

// What a simulated preflight is called, and what it says when it has found nothing.
const (
	preflightContainer = "queueworker-preflight"
	preflightPassed    = "preflight Passed: 0 errors, 0 warnings, 0 not verified"
)

// stages describe to kwok how nodes and pods move on.
//
//go:embed stages.yaml
var stages string

func (c *Cluster) stagesPath() string { return filepath.Join(c.dir, "stages.yaml") }

func writeStages(path string, terminatingFor time.Duration) error {
	content := strings.NewReplacer(
		"TERMINATING_MILLISECONDS", fmt.Sprint(terminatingFor.Milliseconds()),
		"TERMINATING_ANNOTATION", TerminatingForAnnotation,
		"MANUAL_ANNOTATION", ManualAnnotation,
		"PREFLIGHT_EXIT_ANNOTATION", PreflightExitAnnotation,
		"PREFLIGHT_ANNOTATION", PreflightAnnotation,
		"PREFLIGHT_CONTAINER", preflightContainer,
		"PREFLIGHT_PASSED", preflightPassed,
	).Replace(stages)
	return os.WriteFile(path, []byte(content), 0o600)
}

func (c *Cluster) createNodes(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return err
	}
	for i := range c.options.Nodes {
		name := fmt.Sprintf("simulated-%d", i)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
			},
		}}
		if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating node %s: %w", name, err)
		}
	}
	return nil
}

func (c *Cluster) nodesReady(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return err
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, node := range nodes.Items {
		if !isReady(node) {
			return fmt.Errorf("node %s is not Ready yet", node.Name)
		}
	}
	return nil
}

func isReady(node corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
