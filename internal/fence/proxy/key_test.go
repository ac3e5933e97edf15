// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/queueworker/operator/internal/fence"
	"github.com/queueworker/operator/internal/fence/proxy"
)

func TestKeyFromTheRequest(t *testing.T) {
	const byOrder = `string(body.order_id) + "/charge"`
	for name, c := range map[string]struct {
		expression, key, body string
		want                  string // the row's key
		status                int
		problem               string
	}{
		"number":            {byOrder, "", `{"order_id": 12345678901234567}`, "12345678901234567/charge", 201, ""},
		"text":              {byOrder, "", `{"order_id": "a-1"}`, "a-1/charge", 201, ""},
		"header wins":       {byOrder, "mine", `{"order_id": 1}`, "mine", 201, ""},
		"path and method":   {`method + path`, "", ``, "POST/orders/a b", 201, ""},
		"header's value":    {`headers["x-order"]`, "", ``, "o-7", 201, ""},
		"nested":            {`body.items[0].id`, "", `{"items":[{"id":"i"}]}`, "i", 201, ""},
		"no such field":     {byOrder, "", `{}`, "", 400, "key-invalid"},
		"no JSON":           {byOrder, "", `order_id=1`, "", 400, "key-invalid"},
		"number too large":  {byOrder, "", `{"order_id": 123456789012345678901}`, "", 400, "key-invalid"},
		"not a string":      {`body.order_id`, "", `{"order_id": 1}`, "", 400, "key-invalid"},
		"empty":             {`body.order_id`, "", `{"order_id": ""}`, "", 400, "key-invalid"},
		"control character": {`body.order_id`, "", `{"order_id": "a\nb"}`, "", 400, "key-invalid"},
		"endless": {
			`body.a.map(x, body.a.map(y, body.a.map(z, string(x) + string(y) + string(z)))).size() > 0 ? "k" : "l"`, "",
			`{"a": [` + strings.Repeat("1,", 200) + `1]}`, "", 400, "key-invalid",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := charging(t, 0)
			d := declared(t, p.URL)
			d.Key = c.expression
			f := start(t, inMemory(), d)
			a := f.callWith(t, "POST", "/stripe/orders/a%20b", c.body, map[string]string{"Idempotency-Key": c.key, "X-Order": "o-7"})
			a.want(t, c.status, c.problem)
			posts := 0
			if c.status == 201 {
				posts = 1
				if row := f.row(t, c.want); row.State != fence.Done {
					t.Errorf("the row under %q is %s", c.want, row.State)
				}
			}
			if int(p.posts.Load()) != posts {
				t.Errorf("%d requests", p.posts.Load())
			}
		})
	}
}

func TestKeyExpressionsThatAreRefused(t *testing.T) {
	for expression, want := range map[string]string{
		`body.order_id +`: "ERROR: <input>:1:16",
		`boddy.order_id`:  "undeclared reference to 'boddy'",
		`1 + 1`:           "gives int, a key is a string: put string(…) around it",
	} {
		d := declared(t, "http://127.0.0.1:1")
		d.Key = expression
		_, err := proxy.New(proxy.Config{Providers: []proxy.Provider{d}, Log: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", expression, err, want)
		}
	}
}
