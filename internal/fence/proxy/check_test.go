// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"strings"
	"testing"

	"github.com/queueworker/operator/internal/fence/proxy"
)

func TestCheckKey(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "",
		`string(body.order_id) + "/charge"`: "",
		"body.order +":                      "line 1, column 13: Syntax error",
		"body.id +\n  boddy.id":             "line 2, column 3: undeclared reference to 'boddy'",
		"size(path)":                        "gives int, a key is a string",
	} {
		err := proxy.CheckKey(text)
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%q: got %v, want one line with %q", text, err, want)
		}
	}
}
