// SPDX-License-Identifier: Apache-2.0

package fencesource_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/queueworker/operator/api/v1alpha1"
	"github.com/queueworker/operator/internal/chainsource"
	"github.com/queueworker/operator/internal/fence/fenceconfig"
	"github.com/queueworker/operator/internal/fencesource"
	"github.com/queueworker/operator/internal/timeoutchain"
)

func fenced() *v1alpha1.QueueWorkerSpec {
	return &v1alpha1.QueueWorkerSpec{
		Timeouts: v1alpha1.Timeouts{HTTPSeconds: ptr.To[int32](20)},
		Fence: v1alpha1.Fence{
			Mode:  v1alpha1.FenceModeProxy,
			Table: &v1alpha1.FenceTable{Name: "shop.charges"},
			Store: &v1alpha1.FenceStore{Type: v1alpha1.FenceStoreMySQL, Schema: v1alpha1.FenceSchemaExisting},
			Providers: []v1alpha1.FenceProvider{
				{
					Name: "stripe", URL: "https://api.stripe.com/v1", Key: `string(body.id) + "/charge"`,
					TimeoutSeconds: ptr.To[int32](15), MaxInFlightSeconds: ptr.To[int32](60), KeyTTLSeconds: ptr.To[int32](86400),
					StoresErrors: true, ActsOn5xx: ptr.To(false), ResendLimit: ptr.To[int32](2), DidNotAct: []int32{401, 503},
				},
				{Name: "bank", URL: "http://bank", ProviderID: "body.id", LookupLagSeconds: ptr.To[int32](0), Lookup: &v1alpha1.FenceLookup{
					Path: "/payouts?reference={key}", Succeeded: "status == 200", Processing: "status == 202", Absent: "status == 404", Refused: "status == 410",
					ProviderID: "body.id", Result: "body",
					Headers: []v1alpha1.FenceLookupHeader{
						{Name: "Accept", Value: "application/json"}, {Name: "Authorization", SecretRef: &v1alpha1.FenceSecretRef{Name: "bank", Key: "token"}},
					},
				}},
				{Name: "quick", URL: "http://quick", KeyTTLSeconds: ptr.To[int32](3600), ActsOn5xx: ptr.To(false), KeyHeader: "X-Key"},
				{Name: "vague", URL: "http://vague", KeyTTLSeconds: ptr.To[int32](3600)},
			},
			Claims:    []v1alpha1.FenceClaims{{Name: "stock", DoWithinSeconds: ptr.To[int32](280)}, {Name: "numbers", CanCheck: true}},
			Retention: v1alpha1.FenceRetention{DoneSeconds: ptr.To[int32](900_000)},
		},
	}
}

func chain(spec *v1alpha1.QueueWorkerSpec) *timeoutchain.Chain {
	c := chainsource.FromQueueWorker(&v1alpha1.QueueWorker{Spec: *spec}, chainsource.Options{})
	return &c
}

// TestTheSidecarReadsWhatIsWritten: every field reaches the protocol.
func TestTheSidecarReadsWhatIsWritten(t *testing.T) {
	text := fencesource.File(fenced(), chain(fenced()))
	c, err := fenceconfig.Decode([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	wantStore := fenceconfig.Store{Driver: "MySQL", DSNFile: "/etc/queueworker/dsn", Table: "shop.charges", Schema: "Existing"}
	if c.HTTPSeconds != 20 || c.Store != wantStore || c.Retention.DoneSeconds != 900_000 {
		t.Errorf("%+v", c)
	}
	p := c.Declared()
	first := p[0]
	if first.Scope != "stripe" || first.Base.String() != "https://api.stripe.com/v1" || first.Key == "" || first.KeyHeader != "Idempotency-Key" ||
		first.Times.ProviderTimeout != 15*time.Second || first.Times.InFlight != time.Minute || first.Times.KeyLife != 24*time.Hour ||
		first.MaxResends != 2 || len(first.DidNotAct) != 2 {
		t.Errorf("stripe: %+v", first)
	}
	if p[1].KeyHeader != "" || p[1].Keyed() || p[1].Times.ProviderTimeout != 17*time.Second || p[1].Times.InFlight != 300*time.Second {
		t.Errorf("bank: %+v", p[1])
	}
	want := fenceconfig.Lookup{
		Path: "/payouts?reference={key}", Succeeded: "status == 200", Processing: "status == 202", Absent: "status == 404", Refused: "status == 410",
		ProviderID: "body.id", Result: "body",
		Headers: []fenceconfig.LookupHeader{{Name: "Accept", Value: "application/json"}, {Name: "Authorization", File: "/etc/queueworker/bank-header-1"}},
	}
	if got := c.Providers[1].Lookup; !reflect.DeepEqual(*got, want) || !p[1].LagDeclared || p[1].ProviderID != "body.id" {
		t.Errorf("bank: %+v", got)
	}
	wantFiles := []fencesource.SecretFile{
		{Ref: &fenced().Fence.Store.SecretRef, File: "dsn"}, {Ref: &v1alpha1.FenceSecretRef{Name: "bank", Key: "token"}, File: "bank-header-1"},
	}
	if got := fencesource.SecretFiles(&fenced().Fence); !reflect.DeepEqual(got, wantFiles) {
		t.Errorf("files: %+v", got)
	}
	if got := c.Claims; len(got) != 2 || got[0].DoWithinSeconds != 280 || got[0].MaxInFlightSeconds != 310 || got[0].CanCheck ||
		got[1].DoWithinSeconds != 60 || got[1].MaxInFlightSeconds != 300 || !got[1].CanCheck {
		t.Errorf("claims: %+v", got)
	}
	if p[2].KeyHeader != "X-Key" || !p[2].Keyed() || p[3].Keyed() {
		t.Errorf("quick: %+v\nvague: %+v", p[2], p[3])
	}
}

func TestTables(t *testing.T) {
	long := strings.Repeat("a", 48)
	for name, want := range map[string]bool{
		"queueworker_fence": true, "shop.charges": true, "_": true, "a1": true, long: true, long + "." + long: true,
		"Charges": false, "shop.Charges": false, "Shop.charges": false, "1a": false, "shop.1a": false, "a.b.c": false, ".a": false, "a.": false,
		"": false, long + "a": false, long + "a." + long: false, long + "." + long + "a": false, "a-b": false, "a\n": false,
	} {
		if got := fencesource.TakesTable(name); got != want {
			t.Errorf("%q: %t, want %t", name, got, want)
		}
	}
}

func TestDefaults(t *testing.T) {
	spec := fenced()
	spec.Fence.Table, spec.Fence.Store.Schema, spec.Fence.Retention = nil, "", v1alpha1.FenceRetention{}
	c, err := fenceconfig.Decode([]byte(fencesource.File(spec, chain(spec))))
	if err != nil {
		t.Fatal(err)
	}
	if c.Store.Table != fenceconfig.Default().Store.Table || c.Store.Schema != fenceconfig.Default().Store.Schema || c.Retention.DoneSeconds != 30*86_400 {
		t.Errorf("%+v", c)
	}
}

func TestKinds(t *testing.T) {
	spec := fenced()
	is := func(want string) {
		t.Helper()
		if got := fencesource.Kinds(spec); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	is("stripe=A,bank=C,quick=B,vague=B',stock=D,numbers=D")
	p := spec.Fence.Providers
	for i := range p {
		p[i].Lookup = p[1].Lookup
	}
	p[1].LookupLagSeconds, p[2].LookupLagSeconds = nil, ptr.To[int32](60)
	is("stripe=A+C-strict,bank=C-strict,quick=B+C,vague=C-strict,stock=D,numbers=D")
	p[1].Lookup = nil
	is("stripe=A+C-strict,bank=D,quick=B+C,vague=C-strict,stock=D,numbers=D")
	for mode, want := range map[v1alpha1.FenceMode]string{v1alpha1.FenceModeTable: "Table", v1alpha1.FenceModeNone: "", "": ""} {
		spec.Fence.Mode = mode
		if got := fencesource.Kinds(spec); got != want {
			t.Errorf("%s: %q, want %q", mode, got, want)
		}
	}
}

// TestFaults: what the sidecar would refuse is told with its field and place.
func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*v1alpha1.FenceProvider)
		want string
	}{
		"none":           {func(*v1alpha1.FenceProvider) {}, ": "},
		"key":            {func(p *v1alpha1.FenceProvider) { p.Key = "body.id +" }, "key: line 1, column 10: Syntax error"},
		"id":             {func(p *v1alpha1.FenceProvider) { p.ProviderID = "boddy.id" }, "providerID: line 1, column 1: undeclared reference"},
		"succeeded":      {func(p *v1alpha1.FenceProvider) { p.Lookup.Succeeded = "status" }, "lookup.succeeded: "},
		"absent":         {func(p *v1alpha1.FenceProvider) { p.Lookup.Absent = "status ==" }, "lookup.absent: line 1, column 10: Syntax error"},
		"id of a lookup": {func(p *v1alpha1.FenceProvider) { p.Lookup.ProviderID = "(" }, "lookup.providerID: line 1, column 2: Syntax error"},
		"every key":      {func(p *v1alpha1.FenceProvider) { p.Lookup.Path = "/payouts" }, "lookup.path: "},
		"no header":      {func(p *v1alpha1.FenceProvider) { p.Lookup.Path = "/{sentKey}" }, "lookup.path: "},
		"lag of nothing": {func(p *v1alpha1.FenceProvider) { p.Lookup = nil }, "lookupLagSeconds: "},
		"never absent":   {func(p *v1alpha1.FenceProvider) { p.Lookup.Absent = "" }, "lookupLagSeconds: "},
	} {
		p := fenced().Fence.Providers[1]
		c.edit(&p)
		field, why := fencesource.Fault(&p)
		if got := field + ": " + why; !strings.HasPrefix(got, c.want) || name != "none" && why == "" || strings.Contains(why, "\n") {
			t.Errorf("%s: %q, want %s", name, got, c.want)
		}
	}
}
