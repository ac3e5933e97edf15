// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/queueworker/operator/api/v1alpha1"
)

// An application whose cached configuration holds a reservation that is too short for its jobs: the declared one applies.
func TestDeclaredReservationRulesOverACachedOne(t *testing.T) {
	beside(t)
	cached, declaredFor, long := int64(6), limits{job: 45, retryAfter: 60}, 20.0
	if full() {
		cached, declaredFor, long = 90, limits{job: 200, retryAfter: 300}, 120
	}
	for _, connection := range connections {
		t.Run(connection, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, connection)
			qw := s.queueWorker("cached", 2, declaredFor)
			// The entrypoint script of many an image, with a number of its own.
			wrapped("/bin/sh", "-c", fmt.Sprintf(`%s=%d php artisan config:cache >&2; exec "$@"`, s.retryAfterEnv(0).Name, cached), "sh")(qw)
			declared(t, qw)
			pods := workers(qw)
			for _, pod := range pods {
				if inCache := cachedReservation(t, pod.Name, connection); inCache != fmt.Sprint(cached) {
					t.Fatalf("the cached configuration says %s, wanted %d: this test shows nothing", inCache, cached)
				}
			}
			s.dispatch(t, "Long", "long", seconds(long))
			s.finished(t, "long")
			s.ranOnce(t, "long", long)
			s.nothingLeft(t)
		})
	}
}

func cachedReservation(t *testing.T, pod, connection string) string {
	t.Helper()
	return strings.TrimSpace(mustKubectl(t, "exec", pod, "-c", v1alpha1.WorkerContainer, "--", "php", "-r",
		`echo (require "bootstrap/cache/config.php")["queue"]["connections"]["`+connection+`"]["retry_after"];`))
}
