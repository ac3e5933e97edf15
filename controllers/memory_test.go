// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/queueworker/operator/api/v1alpha1"
)

func requestFor(name types.NamespacedName) reconcile.Request {
	return reconcile.Request{NamespacedName: name}
}

func TestNewest(t *testing.T) {
	at := func(uid, version string) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: version}}
	}
	for name, c := range map[string]struct {
		kept, cached, want *appsv1.Deployment
		remembered         bool // afterwards
	}{
		"the cache lags":          {at("a", "100"), at("a", "99"), at("a", "100"), true},
		"the cache caught up":     {at("a", "100"), at("a", "100"), at("a", "100"), false},
		"the cache is ahead":      {at("a", "99"), at("a", "100"), at("a", "100"), false},
		"made anew in between":    {at("a", "100"), at("b", "99"), at("b", "99"), false},
		"versions without order":  {at("a", "x"), at("a", "y"), at("a", "y"), false},
		"longer means later":      {at("a", "1000"), at("a", "999"), at("a", "1000"), true},
		"nothing was written yet": {nil, at("a", "1"), at("a", "1"), false},
	} {
		var kept ahead
		if c.kept != nil {
			kept = aheadOf(c.kept)
		}
		got := newest(&kept, c.cached)
		if got.UID != c.want.UID || got.ResourceVersion != c.want.ResourceVersion {
			t.Errorf("%s: %s/%s", name, got.UID, got.ResourceVersion)
		}
		if remembered := kept.text != nil; remembered != c.remembered {
			t.Errorf("%s: remembered: %v", name, remembered)
		}
	}
}

func TestReportedStatusIsRememberedUntilTheCacheHasIt(t *testing.T) {
	for name, c := range map[string]struct {
		uid, version string
		remembered   bool
	}{
		"the cache lags":      {"a", "99", true},
		"the cache caught up": {"a", "100", false},
		"the cache is ahead":  {"a", "101", false},
		"made anew":           {"b", "99", false},
	} {
		r := reported{uid: "a", version: "100", status: &v1alpha1.QueueWorkerStatus{Chain: "written"}}
		qw := r.on(&v1alpha1.QueueWorker{
			ObjectMeta: metav1.ObjectMeta{UID: types.UID(c.uid), ResourceVersion: c.version, Generation: 7},
			Status:     v1alpha1.QueueWorkerStatus{Chain: "cached"},
		})
		want, version := "cached", c.version
		if c.remembered {
			want, version = "written", "100"
		}
		if qw.Status.Chain != want || qw.ResourceVersion != version || qw.Generation != 7 || (r.status != nil) != c.remembered {
			t.Errorf("%s: status %q at %s, remembered: %v", name, qw.Status.Chain, qw.ResourceVersion, r.status != nil)
		}
	}
}
