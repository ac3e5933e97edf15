// SPDX-License-Identifier: Apache-2.0

package laravel_test

import (
	"strings"
	"testing"

	"github.com/queueworker/operator/internal/laravel"
)

func TestQueueWorkCommand(t *testing.T) {
	least := laravel.QueueWork{
		PHP: "php", Artisan: "artisan", Connection: "redis",
		Timeout: 30, Tries: 1, Sleep: 3, Memory: 128,
	}
	full := least
	full.PHP, full.Artisan = "/usr/bin/php8.3", "/app/artisan"
	full.Queues = []string{"payments", "default"}
	full.Tries, full.Backoff = 3, []int32{10, 60}
	full.MaxTime, full.MaxJobs, full.Rest = 3600, 1000, 1
	full.ExtraArgs = []string{"--force", "-v"}
	unlimited := least
	unlimited.Tries, unlimited.Backoff, unlimited.Sleep = 0, []int32{0}, 0

	for name, c := range map[string]struct {
		work laravel.QueueWork
		want string
	}{
		"least": {least, "php artisan queue:work redis --timeout=30 --tries=1 --sleep=3 --memory=128"},
		"full": {full, "/usr/bin/php8.3 /app/artisan queue:work redis --queue=payments,default --timeout=30 --tries=3 " +
			"--backoff=10,60 --sleep=3 --memory=128 --max-time=3600 --max-jobs=1000 --rest=1 --force -v"},
		"a declared zero is told": {unlimited, "php artisan queue:work redis --timeout=30 --tries=0 --backoff=0 --sleep=0 --memory=128"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(c.work.Command(), " "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestHorizonCommand(t *testing.T) {
	got := laravel.Horizon{PHP: "php", Artisan: "artisan", ExtraArgs: []string{"--environment=production"}}.Command()
	if want := "php artisan horizon --environment=production"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
