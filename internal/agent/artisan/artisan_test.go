// SPDX-License-Identifier: Apache-2.0

package artisan_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/queueworker/operator/internal/agent/artisan"
	"github.com/queueworker/operator/internal/timeoutchain"
)

func TestRead(t *testing.T) {
	for _, c := range []struct {
		runtime timeoutchain.Runtime
		words   string
		want    artisan.Command
		says    string
	}{
		{timeoutchain.Laravel, "php artisan queue:work redis", artisan.Command{[]string{"php"}, "artisan", []string{"queue:work", "redis"}}, ""},
		{timeoutchain.Laravel, "wrap php -d x=1 bin/artisan queue:work", artisan.Command{[]string{"wrap", "php", "-d", "x=1"}, "bin/artisan", []string{"queue:work"}}, ""},
		{timeoutchain.Horizon, "php artisan horizon", artisan.Command{[]string{"php"}, "artisan", []string{"horizon"}}, ""},
		{timeoutchain.Laravel, "php artisan horizon", artisan.Command{}, `["php" "artisan" "horizon"] has no words ` + "`php artisan queue:work`"},
		{timeoutchain.Laravel, "artisan queue:work", artisan.Command{}, "no words"},
		{timeoutchain.Laravel, "", artisan.Command{}, "no words"},
	} {
		got, err := artisan.Read(c.runtime, strings.Fields(c.words))
		if !reflect.DeepEqual(got, c.want) || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s, %q: %+v, %v", c.runtime, c.words, got, err)
		}
	}
}
