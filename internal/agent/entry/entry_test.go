// SPDX-License-Identifier: Apache-2.0

package entry_test

import (
	"strings"
	"testing"

	"github.com/queueworker/operator/internal/agent/entry"
	"github.com/queueworker/operator/internal/timeoutchain"
)

func TestWrap(t *testing.T) {
	for name, c := range map[string]struct {
		runtime timeoutchain.Runtime
		command string
		scan    string
		want    string
		env     string
	}{
		"queue:work": {"Laravel", "php artisan queue:work redis --queue=a", "",
			"php /q/php/entry.php queue:work redis --queue=a", "QUEUEWORKER_DIR=/q/run QUEUEWORKER_ARTISAN=artisan"},
		"behind a wrapper": {"Laravel", "/entry.sh php -d x=1 /app/artisan queue:work", "",
			"/entry.sh php -d x=1 /q/php/entry.php queue:work", "QUEUEWORKER_DIR=/q/run QUEUEWORKER_ARTISAN=/app/artisan"},
		"horizon": {"Horizon", "php artisan horizon", "",
			"php artisan horizon", "QUEUEWORKER_DIR=/q/run PHP_INI_SCAN_DIR=:/q/php/ini"},
		"horizon with ini files of its own": {"Horizon", "php artisan horizon", "/etc/x",
			"php artisan horizon", "QUEUEWORKER_DIR=/q/run PHP_INI_SCAN_DIR=/etc/x:/q/php/ini"},
	} {
		t.Run(name, func(t *testing.T) {
			command := strings.Fields(c.command)
			words, env, err := entry.Wrap("/q", c.runtime, command, func(string) string { return c.scan })
			if err != nil || strings.Join(words, " ") != c.want || strings.Join(env, " ") != c.env {
				t.Errorf("got %q, %q, %v", words, env, err)
			}
			if strings.Join(command, " ") != c.command {
				t.Error("the argument was changed")
			}
		})
	}
	for _, command := range []string{"sh -c php\u00a0artisan\u00a0queue:work", "php artisan list", "queue:work", "artisan queue:work"} {
		if _, _, err := entry.Wrap("/q", "Laravel", strings.Fields(strings.ReplaceAll(command, "\u00a0", "_")), nil); err == nil {
			t.Errorf("%q was accepted", command)
		}
	}
}
