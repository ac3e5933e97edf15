// SPDX-License-Identifier: Apache-2.0

package fenceconfig_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/fence/fenceconfig"
)

const good = `apiVersion: config.queueworker.dev/v1alpha1
kind: FenceConfig
httpSeconds: 20
store: {driver: PostgreSQL, dsnFile: /etc/fence/dsn}
retention: {doneSeconds: 604800}
providers:
- name: stripe
  url: https://api.stripe.com
  keyHeader: Idempotency-Key
  keyTTLSeconds: 86400
  storesErrors: true
`

func TestDefaults(t *testing.T) {
	c, err := fenceconfig.Decode([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	if c.BindAddress != "127.0.0.1:8470" || c.ShutdownSeconds != 25 || c.Retention.BodySeconds != 604800 || c.Store.Table != "queueworker_fence" {
		t.Errorf("defaults: %+v", c)
	}
	p := c.Declared()[0]
	times := p.Times
	// The worked example of docs/fence.md: hp 17, L 19, quiet after 301 s where
	// nothing is looked up, keys sent again until 301 s before they end.
	if times.ProviderTimeout != 17*time.Second || times.Lease() != 19*time.Second || times.Quiet() != 301*time.Second || times.KeyLife != 24*time.Hour {
		t.Errorf("times: %+v", times)
	}
	if p.MaxResends != 3 || p.Base.String() != "https://api.stripe.com" {
		t.Errorf("provider: %+v", p)
	}
}

const lookup = `  lookup:
    path: /v1/charges?ref={key}
    headers: [{name: Authorization, file: /etc/fence/stripe}]
    succeeded: status == 200 && size(body.data) == 1
    absent: status == 200 && size(body.data) == 0
`

func TestLookupOfTheFile(t *testing.T) {
	c, err := fenceconfig.Decode([]byte(good + "  providerId: body.id\n  lookupLagSeconds: 60\n" + lookup + "    providerId: body.data[0].id\n"))
	if err != nil {
		t.Fatal(err)
	}
	p := c.Declared()[0]
	if !p.Lookup || !p.LagDeclared || p.Times.Quiet() != 361*time.Second || p.ProviderID != "body.id" {
		t.Errorf("%+v", p)
	}
	if p.Ask.Method != http.MethodGet || p.Ask.Headers[0].File != "/etc/fence/stripe" || p.Ask.ProviderID != "body.data[0].id" {
		t.Errorf("%+v", p.Ask)
	}
}

func TestLookupsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ old, replacement, want string }{
		"unknown field":   {"path:", "url:", `unknown field "providers[0].lookup.url"`},
		"relative path":   {"/v1/charges?", "v1/charges?", `lookup.path: "v1/charges?ref={key}": must begin with /`},
		"another path":    {"/v1/charges?", "/v1/../charges?", "nor . or .. as a segment"},
		"no key":          {"{key}", "1", "must hold {key}"},
		"both keys":       {"{key}", "{key}{sentKey}", "one of the two"},
		"no header":       {"  keyHeader: Idempotency-Key\n  keyTTLSeconds: 86400\n  storesErrors: true\n", "", "and no keyHeader is set"},
		"method":          {"path:", "method: PUT\n    path:", `lookup.method: "PUT": must be GET or POST`},
		"body of a GET":   {"path:", "body: '{}'\n    path:", "a GET has no body"},
		"no effect":       {"    succeeded: status == 200 && size(body.data) == 1\n", "", "lookup.succeeded"},
		"place":           {"size(body.data) == 1", "size(body.data", "lookup.succeeded: ERROR: <input>:1:"},
		"not a condition": {"absent: status == 200 && size(body.data) == 0", "absent: status", `lookup.absent: the expression "status" gives int, it must be true or false`},
		"id":              {"    succeeded", "    providerId: body.id +\n    succeeded", "lookup.providerId: ERROR"},
		"result":          {"    succeeded", "    result: bodi\n    succeeded", "lookup.result: ERROR"},
		"header, neither": {", file: /etc/fence/stripe", "", "lookup.headers[0]: Authorization needs a value or a file"},
		"header's file":   {"/etc/fence/stripe", "stripe", `lookup.headers[0].file: "stripe": must be an absolute path`},
		"header's name":   {"name: Authorization", "name: Connection", `lookup.headers[0].name: "Connection"`},
		"lag of nothing":  {lookup, "", "lookupLagSeconds: 60: says how late a lookup may be, and there is none"},
		"lag, no absent":  {"    absent: status == 200 && size(body.data) == 0\n", "", "lookup.absent is not set"},
		"negative lag":    {"lookupLagSeconds: 60", "lookupLagSeconds: -1", "cannot be negative"},
		"reply's id":      {"lookupLag", "providerId: body.\n  lookupLag", "providers[0]: provider stripe: providerId: ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			whole := strings.Replace(good+"  lookupLagSeconds: 60\n"+lookup, "{key}", "{sentKey}", map[bool]int{true: 1}[name == "no header"])
			text := strings.Replace(whole, c.old, c.replacement, 1)
			if text == whole {
				t.Fatal("nothing was changed")
			}
			_, err := fenceconfig.Decode([]byte(text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant …%s…", err, c.want)
			}
		})
	}
}

func TestKinds(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		kind  string
		keyed bool
	}{
		"stores all":       {"keyTTLSeconds: 86400\n  storesErrors: true\n", "stores results and errors", true},
		"stores successes": {"keyTTLSeconds: 86400\n  actsOn5xx: false\n", "stores successes only", true},
		"5xx hides":        {"keyTTLSeconds: 86400\n  actsOn5xx: true\n", "keys do not protect", false},
		"5xx not declared": {"keyTTLSeconds: 86400\n", "keys do not protect", false},
		"no keys":          {"\n", "nothing", false},
		"asked":            {"lookupLagSeconds: 60\n" + lookup, "can be asked", false},
		"lag not declared": {strings.TrimSpace(lookup) + "\n", "can be asked, lag not declared", false},
		"keys that do not": {"keyTTLSeconds: 86400\n  lookupLagSeconds: 0\n" + lookup, "can be asked", false},
		"keys and asked":   {"keyTTLSeconds: 86400\n  storesErrors: true\n  lookupLagSeconds: 60\n" + lookup, "stores results and errors, can be asked", true},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(good, "keyTTLSeconds: 86400\n  storesErrors: true\n", c.text, 1)
			config, err := fenceconfig.Decode([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			declared := config.Declared()[0]
			if kind := config.Providers[0].Kind(); kind != c.kind || declared.Keyed() != c.keyed {
				t.Errorf("kind %q, keyed %t", kind, declared.Keyed())
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, c := range map[string]struct{ old, replacement, want string }{
		"unknown field":    {"httpSeconds", "httpsSeconds", `unknown field "httpsSeconds"`},
		"unknown, nested":  {"keyHeader", "keyheader", `unknown field "providers[0].keyheader"`},
		"repeated field":   {"httpSeconds: 20", "httpSeconds: 20\nhttpSeconds: 21", `key "httpSeconds" already set`},
		"text":             {"httpSeconds: 20", "httpSeconds: 20s", "cannot unmarshal string"},
		"kind":             {"FenceConfig", "ManagerConfig", `kind: "ManagerConfig": set it to FenceConfig`},
		"version":          {"v1alpha1", "v1", "apiVersion:"},
		"no client limit":  {"httpSeconds: 20\n", "", "httpSeconds: 0: must be the app's limit"},
		"table's name":     {"/etc/fence/dsn}", "/etc/fence/dsn, table: Shop.Fence}", `store.table: table name "Shop.Fence": want name or schema.name`},
		"reachable":        {"httpSeconds", "bindAddress: 0.0.0.0:8470\nhttpSeconds", "must be a loopback address"},
		"no host":          {"httpSeconds", "bindAddress: :8470\nhttpSeconds", "must be a loopback address"},
		"driver":           {"PostgreSQL", "postgres", `store.driver: "postgres": must be PostgreSQL, MySQL or SQLite`},
		"relative":         {"/etc/fence/dsn", "dsn", "must be an absolute path"},
		"no retention":     {"doneSeconds: 604800", "", "retention.doneSeconds: 0"},
		"body":             {"doneSeconds: 604800", "doneSeconds: 10, bodySeconds: 11", "retention.bodySeconds: 11: must be from 0 to doneSeconds 10"},
		"stops too soon":   {"httpSeconds", "shutdownSeconds: 19\nhttpSeconds", "shutdownSeconds: 19: a call may take httpSeconds, so at least 20"},
		"no provider":      {good[strings.Index(good, "providers"):], "", "providers: at least one is needed, here or under claims"},
		"url":              {"https://api.stripe.com", "api.stripe.com", "providers[0]: provider stripe: the base URL"},
		"client too quick": {"keyHeader", "timeoutSeconds: 19\n  keyHeader", "the client gives up after 20s"},
		"no second try":    {"keyHeader", "timeoutSeconds: 18\n  keyHeader", "providers[0].timeoutSeconds: 18: a copy that finds the key free or unknown would have no time left to send: at most 17"},
		"client too short": {"httpSeconds: 20", "httpSeconds: 3", "the provider timeout is 0s, it must be positive"},
		"in flight":        {"keyHeader", "maxInFlightSeconds: 46\n  keyHeader", "providers[0].maxInFlightSeconds: 46: a request may act longer than its reply is waited for: at least 47"},
		"key life":         {"86400", "301", "no key could ever be sent again"},
		"key's CEL":        {"keyHeader", "key: body.order +\n  keyHeader", "providers[0]: provider stripe: the key's expression: ERROR: <input>:1:13"},
		"name of the API":  {"name: stripe", "name: v1", "provider v1: the name is the fence's own"},
		"twice":            {"providers:\n", "providers:\n- {name: stripe, url: 'https://x.example'}\n", "providers[1]: the name stripe is used twice"},
		"not final":        {"keyHeader", "finalRefusals: [409]\n  keyHeader", "status 409 cannot be a final refusal"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(good, c.old, c.replacement, 1)
			if text == good {
				t.Fatal("nothing was changed")
			}
			_, err := fenceconfig.Decode([]byte(text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant …%s…", err, c.want)
			}
		})
	}
	if _, err := fenceconfig.Decode([]byte(strings.Replace(good, "keyHeader", "maxInFlightSeconds: 47\n  keyHeader", 1))); err != nil {
		t.Errorf("the least in-flight time is refused: %v", err)
	}
}
