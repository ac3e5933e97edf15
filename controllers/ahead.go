// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ahead is an object that was written, until the cache has it. It is kept as
// text: decoded it takes several times the memory, and while thousands of
// QueueWorkers are new, each holds one until its next look.
type ahead struct {
	uid     types.UID
	version string
	text    []byte // nil = there is none
}

func aheadOf(object client.Object) ahead {
	text, err := json.Marshal(object)
	if err != nil { // the next look finds what the cache has
		return ahead{}
	}
	return ahead{uid: object.GetUID(), version: object.GetResourceVersion(), text: text}
}

// newest is the cached object, or the one that was written after it where the
// cache lags behind: deciding on what one has just changed would write it again.
func newest[T any, P interface {
	*T
	client.Object
}](a *ahead, cached P) P {
	if a.text == nil {
		return cached
	}
	written := P(new(T))
	if !lags(cached, a.uid, a.version) || json.Unmarshal(a.text, written) != nil {
		*a = ahead{}
		return cached
	}
	return written
}

// lags says whether the cached object is an older version of the one written.
func lags(cached client.Object, uid types.UID, version string) bool {
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), version)
	return err == nil && order < 0 && cached.GetUID() == uid
}
