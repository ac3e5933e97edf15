// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/queueworker/operator/internal/freeport"
)

// With the real API server: test/integration/manager.
func TestMetricsStayClosedWithoutAnAnswer(t *testing.T) {
	address, err := freeport.TakeAddress()
	if err != nil {
		t.Fatal(err)
	}
	away := &rest.Config{Host: "https://" + address}
	filter, err := onlyScrapers(away, &http.Client{})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := filter(logr.Discard(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the metrics were shown")
	}))
	if err != nil {
		t.Fatal(err)
	}
	for header, code := range map[string]int{
		"":                http.StatusUnauthorized,
		"Bearer":          http.StatusUnauthorized,
		"Bearer ":         http.StatusUnauthorized,
		"Basic dTpw":      http.StatusUnauthorized,
		"Bearer a-token":  http.StatusServiceUnavailable,
		"bearer  a-token": http.StatusServiceUnavailable,
	} {
		request := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
		request.Header.Set("Authorization", header)
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		if answer.Code != code {
			t.Errorf("Authorization %q: %d, not %d: %s", header, answer.Code, code, answer.Body)
		}
	}
}
