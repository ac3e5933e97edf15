// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/internal/managerconfig"
)

const path = "/validate"

func TestRegister(t *testing.T) {
	service := func(namespace, name string) *admissionv1.ServiceReference {
		return &admissionv1.ServiceReference{Namespace: namespace, Name: name, Path: ptr.To(path), Port: ptr.To[int32](443)}
	}
	in := func(namespaces ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpIn, Values: namespaces}}}
	}
	ca := []byte("authority")
	for name, c := range map[string]struct {
		installed admissionv1.ValidatingWebhook
		configure func(*managerconfig.Config)
		authority []byte
		want      admissionv1.ValidatingWebhook
	}{
		"own certificate, Service of the manifest": {
			installed: admissionv1.ValidatingWebhook{ClientConfig: admissionv1.WebhookClientConfig{Service: service("system", "other")}},
			authority: ca,
			want: admissionv1.ValidatingWebhook{ClientConfig: admissionv1.WebhookClientConfig{
				CABundle: ca, Service: service("ours", "queueworker-operator-webhook")}},
		},
		"own certificate, outside the cluster": {
			installed: admissionv1.ValidatingWebhook{ClientConfig: admissionv1.WebhookClientConfig{Service: service("system", "other")}},
			configure: func(c *managerconfig.Config) { c.Webhook.URL = "https://localhost:9443/" },
			authority: ca,
			want: admissionv1.ValidatingWebhook{ClientConfig: admissionv1.WebhookClientConfig{
				CABundle: ca, URL: ptr.To("https://localhost:9443" + path)}},
		},
		"own certificate, back into the cluster": {
			installed: admissionv1.ValidatingWebhook{ClientConfig: admissionv1.WebhookClientConfig{
				CABundle: []byte("old"), URL: ptr.To("https://localhost:9443" + path)}},
			authority: ca,
			want: admissionv1.ValidatingWebhook{ClientConfig: admissionv1.WebhookClientConfig{
				CABundle: ca, Service: &admissionv1.ServiceReference{Namespace: "ours", Name: "queueworker-operator-webhook", Path: ptr.To(path)}}},
		},
		"provided certificate: the authority and the Service are not ours": {
			installed: admissionv1.ValidatingWebhook{ClientConfig: admissionv1.WebhookClientConfig{
				CABundle: []byte("theirs"), Service: service("ours", "their-service")}},
			configure: func(c *managerconfig.Config) { c.Webhook.FailurePolicy = "Fail" },
			want: admissionv1.ValidatingWebhook{
				FailurePolicy: ptr.To(admissionv1.Fail),
				ClientConfig:  admissionv1.WebhookClientConfig{CABundle: []byte("theirs"), Service: service("ours", "their-service")}},
		},
		"failure policy as installed, some namespaces": {
			installed: admissionv1.ValidatingWebhook{FailurePolicy: ptr.To(admissionv1.Fail)},
			configure: func(c *managerconfig.Config) { c.WatchNamespaces = []string{"crm", "shop"} },
			want:      admissionv1.ValidatingWebhook{FailurePolicy: ptr.To(admissionv1.Fail), NamespaceSelector: in("crm", "shop")},
		},
		"all namespaces again": {
			installed: admissionv1.ValidatingWebhook{NamespaceSelector: in("crm", "shop")},
			want:      admissionv1.ValidatingWebhook{NamespaceSelector: &metav1.LabelSelector{}},
		},
		"all namespaces, a selector of somebody else": {
			installed: admissionv1.ValidatingWebhook{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}},
			want:      admissionv1.ValidatingWebhook{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := managerconfig.Default()
			config.Namespace = "ours"
			if c.configure != nil {
				c.configure(&config)
			}
			got := c.installed.DeepCopy()
			for range 2 { // the second time changes nothing
				register(got, &config, c.authority)
				if diff := cmp.Diff(&c.want, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestServingHost(t *testing.T) {
	config := managerconfig.Default()
	config.Namespace = "ours"
	if got := servingHost(&config); got != "queueworker-operator-webhook.ours.svc" {
		t.Error(got)
	}
	config.Webhook.URL = "https://operator.internal:8443"
	if got := servingHost(&config); got != "operator.internal" {
		t.Error(got)
	}
}
