// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// follow shows every state of the namespace's objects of a kind until ctx ends
// or the API server cannot be read. It returns once the watch is on. A watch
// that the API server ends, as it does when we are too slow, is begun anew.
func follow(ctx context.Context, c client.WithWatch, list client.ObjectList, see func(runtime.Object), failed func(error)) error {
	changes, err := begin(ctx, c, list, see)
	if err != nil {
		return err
	}
	go func() {
		for {
			for change := range changes.ResultChan() {
				if change.Type == watch.Added || change.Type == watch.Modified {
					see(change.Object)
				}
			}
			changes.Stop()
			if ctx.Err() != nil {
				return
			}
			if changes, err = begin(ctx, c, list, see); err != nil {
				failed(err)
				return
			}
		}
	}()
	return nil
}

func begin(ctx context.Context, c client.WithWatch, list client.ObjectList, see func(runtime.Object)) (watch.Interface, error) {
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	if err := meta.EachListItem(list, func(object runtime.Object) error { see(object); return nil }); err != nil {
		return nil, err
	}
	from := &client.ListOptions{Namespace: namespace, Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}}
	return c.Watch(ctx, list, from)
}
