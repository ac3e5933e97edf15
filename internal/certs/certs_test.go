// SPDX-License-Identifier: Apache-2.0

package certs_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/certs"
)

const (
	host = "queueworker-operator-webhook.queueworker-system.svc"
	day  = 24 * time.Hour
)

var start = time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)

func TestRenewKeepsWhatIsGood(t *testing.T) {
	data := renew(t, nil, host, start, true)
	mustServe(t, data, host, start)
	mustServe(t, data, host, start.Add(-30*time.Minute)) // another clock
	again := renew(t, data, host, start.Add(275*day-time.Hour), false)
	if !maps.EqualFunc(data, again, bytes.Equal) {
		t.Error("a good certificate was replaced")
	}
}

func TestRenewReplacesWhatIsNot(t *testing.T) {
	good := renew(t, nil, host, start, true)
	other := renew(t, nil, host, start, true)
	for name, c := range map[string]struct {
		change        func(map[string][]byte)
		host          string
		at            time.Time
		sameAuthority bool
	}{
		"certificate ends soon":    {func(map[string][]byte) {}, host, start.Add(275*day + time.Hour), true},
		"certificate has ended":    {func(map[string][]byte) {}, host, start.Add(400 * day), true},
		"authority ends soon":      {func(map[string][]byte) {}, host, start.Add((3650-90)*day + time.Hour), false},
		"another host":             {func(map[string][]byte) {}, "localhost", start, true},
		"no certificate":           {func(d map[string][]byte) { delete(d, "tls.crt") }, host, start, true},
		"key of another":           {func(d map[string][]byte) { d["tls.key"] = other["tls.key"] }, host, start, true},
		"signed by another":        {func(d map[string][]byte) { d["tls.crt"], d["tls.key"] = other["tls.crt"], other["tls.key"] }, host, start, true},
		"no authority":             {func(d map[string][]byte) { delete(d, "ca.crt") }, host, start, false},
		"no key of the authority":  {func(d map[string][]byte) { delete(d, "ca.key") }, host, start, false},
		"key of another authority": {func(d map[string][]byte) { d["ca.key"] = other["ca.key"] }, host, start, false},
		"nonsense":                 {func(d map[string][]byte) { d["ca.crt"], d["tls.crt"] = []byte("x"), []byte("y") }, host, start, false},
	} {
		t.Run(name, func(t *testing.T) {
			data := maps.Clone(good)
			data["note"] = []byte("not ours")
			c.change(data)
			before := maps.Clone(data)
			renewed := renew(t, data, c.host, c.at, true)
			mustServe(t, renewed, c.host, c.at)
			if same := bytes.Equal(renewed["ca.crt"], good["ca.crt"]); same != c.sameAuthority {
				t.Errorf("authority kept: %t, want %t", same, c.sameAuthority)
			}
			if string(renewed["note"]) != "not ours" {
				t.Error("a key of somebody else is gone")
			}
			if !maps.EqualFunc(before, data, bytes.Equal) {
				t.Error("the input was changed")
			}
		})
	}
}

func TestStore(t *testing.T) {
	var store certs.Store
	if _, err := store.GetCertificate(nil); !errors.Is(err, certs.ErrNoCertificate) {
		t.Errorf("an empty store answers %v", err)
	}
	if err := store.Ready(start); !errors.Is(err, certs.ErrNoCertificate) {
		t.Errorf("an empty store is ready: %v", err)
	}
	for range 2 {
		cert, err := certs.Parse(renew(t, nil, host, start, true))
		if err != nil {
			t.Fatal(err)
		}
		store.Set(cert)
		got, err := store.GetCertificate(nil)
		if err != nil || !bytes.Equal(got.Certificate[0], cert.Certificate[0]) {
			t.Errorf("the store does not serve what was put in last: %v", err)
		}
	}
	if err := store.Ready(start.Add(364 * day)); err != nil {
		t.Errorf("not ready with a valid certificate: %v", err)
	}
	if err := store.Ready(start.Add(366 * day)); err == nil {
		t.Error("ready with an expired certificate")
	}
}

func renew(t *testing.T, data map[string][]byte, host string, at time.Time, wantChanged bool) map[string][]byte {
	t.Helper()
	renewed, changed, err := certs.Renew(data, host, at)
	if err != nil {
		t.Fatal(err)
	}
	if changed != wantChanged {
		t.Fatalf("changed: %t, want %t", changed, wantChanged)
	}
	return renewed
}

// mustServe judges as an API server would: the chain ends in the authority, for
// this host, now and for two months.
func mustServe(t *testing.T, data map[string][]byte, host string, at time.Time) {
	t.Helper()
	cert, err := certs.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data[certs.CACertKey]) {
		t.Fatal("no authority")
	}
	for _, when := range []time.Time{at, at.Add(60 * day)} {
		if _, err := leaf(t, cert).Verify(x509.VerifyOptions{DNSName: host, Roots: pool, CurrentTime: when}); err != nil {
			t.Errorf("at %s: %v", when, err)
		}
	}
}

func leaf(t *testing.T, cert tls.Certificate) *x509.Certificate {
	t.Helper()
	parsed, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}
