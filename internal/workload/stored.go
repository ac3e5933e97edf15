// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"

	appsv1 "k8s.io/api/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/queueworker/operator/api/v1alpha1"
)

// maxStored bounds what a stored template may unpack to, in bytes: more than
// the API server accepts as an object.
const maxStored = 4 << 20

// Recall returns the template that was last applied to a Deployment. It fails
// where there is none or somebody damaged it; the template is then rendered
// anew.
func Recall(deployment *appsv1.Deployment) (Template, error) {
	stored := deployment.Annotations[v1alpha1.AnnotationAppliedTemplate]
	pod, err := unpack(stored)
	if err != nil {
		return Template{}, fmt.Errorf("annotation %s: %w", v1alpha1.AnnotationAppliedTemplate, err)
	}
	return Template{Pod: pod, InputHash: deployment.Annotations[v1alpha1.AnnotationInputHash], Stored: stored}, nil
}

func store(pod *corev1ac.PodTemplateSpecApplyConfiguration) (string, error) {
	text, err := json.Marshal(pod)
	if err != nil {
		return "", err
	}
	var packed bytes.Buffer
	zip, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return "", err
	}
	if _, err := zip.Write(text); err != nil {
		return "", err
	}
	if err := zip.Close(); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(packed.Bytes()), nil
}

func unpack(stored string) (*corev1ac.PodTemplateSpecApplyConfiguration, error) {
	packed, err := base64.StdEncoding.DecodeString(stored)
	if err != nil {
		return nil, err
	}
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(zip, maxStored))
	if err != nil {
		return nil, err
	}
	pod := &corev1ac.PodTemplateSpecApplyConfiguration{}
	if err := json.Unmarshal(text, pod); err != nil {
		return nil, err
	}
	if pod.Spec == nil || len(pod.Spec.Containers) == 0 {
		return nil, fmt.Errorf("a template without containers")
	}
	return pod, nil
}
