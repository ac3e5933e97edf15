// SPDX-License-Identifier: Apache-2.0

package kubeapi_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/queueworker/operator/internal/agent/kubeapi"
	"github.com/queueworker/operator/internal/monitor"
)

// mounted is a service account directory, and the environment of a pod, for a
// server.
func mounted(t *testing.T, server *httptest.Server) (dir string, getenv func(string) string) {
	t.Helper()
	dir = t.TempDir()
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	write(t, dir, "token", "first\n")
	return dir, func(name string) string {
		return map[string]string{"KUBERNETES_SERVICE_HOST": at.Hostname(), "KUBERNETES_SERVICE_PORT": at.Port()}[name]
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestReadAndWrite(t *testing.T) {
	var asked []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, strings.Join([]string{r.Method, r.URL.RequestURI(), r.Header.Get("Authorization"), r.Header.Get("Content-Type"), string(body)}, " "))
		_, _ = io.WriteString(w, `{"kind":"QueueWorker","metadata":{"generation":7},"spec":{"replicas":3,"runtime":"Laravel"},"status":{"readyReplicas":2,`+
			`"queueState":{"state":"Busy","since":"2026-03-02T10:00:00Z","observedTime":"2026-03-02T10:01:00Z","depth":4},`+
			`"conditions":[{"type":"Ready","status":"True"},{"type":"Consuming","status":"True","reason":"Busy","lastTransitionTime":"2026-03-02T09:00:00Z"}]}}`)
	}))
	defer server.Close()
	dir, getenv := mounted(t, server)
	client, err := kubeapi.New(getenv, dir, "shop", "payments")
	if err != nil {
		t.Fatal(err)
	}
	object, err := client.Get(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if w := object.Workers(); w != (monitor.Workers{Known: true, Wanted: 3, Alive: 2}) {
		t.Errorf("%+v", w)
	}
	if object.Metadata.Generation != 7 || object.Consuming().Reason != "Busy" || object.Status.QueueState.State != monitor.Busy || *object.Status.QueueState.Depth != 4 {
		t.Errorf("%+v", object)
	}
	write(t, dir, "token", "second\n") // the kubelet does
	at := time.Date(2026, 3, 2, 10, 2, 0, 0, time.UTC)
	status := monitor.Status{State: monitor.Unknown, Since: at, ObservedTime: at, Message: "away"}
	if err := client.Apply(context.Background(), status, monitor.ConditionOf(status, object.Consuming(), 7)); err != nil {
		t.Fatal(err)
	}
	const path = "/apis/queueworker.dev/v1alpha1/namespaces/shop/queueworkers/payments/status"
	want := []string{
		"GET " + path + " Bearer first  ",
		"PATCH " + path + "?fieldManager=queueworker-monitor&force=true Bearer second application/apply-patch+yaml " +
			`{"apiVersion":"queueworker.dev/v1alpha1","kind":"QueueWorker","metadata":{"name":"payments","namespace":"shop"},"status":{` +
			`"queueState":{"state":"Unknown","since":"2026-03-02T10:02:00Z","observedTime":"2026-03-02T10:02:00Z","message":"away"},` +
			`"conditions":[{"type":"Consuming","status":"Unknown","reason":"Unknown","message":"away","lastTransitionTime":"2026-03-02T10:02:00Z","observedGeneration":7}]}}`,
	}
	if got, want := strings.Join(asked, "\n"), strings.Join(want, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAbsentNumbers(t *testing.T) {
	if w := (kubeapi.Object{}).Workers(); w != (monitor.Workers{Known: true, Wanted: 1}) {
		t.Errorf("%+v", w)
	}
}

func TestRefusals(t *testing.T) {
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the token went elsewhere") }))
	defer elsewhere.Close()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet:
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind":"Status","message":"queueworkers is forbidden"}`)
		default:
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}
	}))
	defer server.Close()
	dir, getenv := mounted(t, server)
	client, err := kubeapi.New(getenv, dir, "shop", "payments")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Get(context.Background()); err == nil || !strings.Contains(err.Error(), "403 Forbidden: queueworkers is forbidden") {
		t.Errorf("%v", err)
	}
	if err := client.Apply(context.Background(), monitor.Status{}, monitor.Condition{}); err == nil || !strings.Contains(err.Error(), "307") {
		t.Errorf("%v", err)
	}
	// Another authority is not trusted, from the moment that it is mounted.
	other, _ := mounted(t, other(t))
	text, err := os.ReadFile(filepath.Join(other, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "ca.crt", string(text))
	if _, err := client.Get(context.Background()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("%v", err)
	}
	for name, text := range map[string]string{"ca.crt": "nothing", "token": ""} {
		write(t, dir, name, text)
	}
	if _, err := client.Get(context.Background()); err == nil || !strings.Contains(err.Error(), "holds no certificate") {
		t.Errorf("%v", err)
	}
	if _, err := kubeapi.New(func(string) string { return "" }, dir, "a", "b"); err == nil || !strings.Contains(err.Error(), "no pod") {
		t.Errorf("%v", err)
	}
}

// other is a server with an authority of its own.
func other(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = selfSigned(t)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

func selfSigned(t *testing.T) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	text, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{text}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
}
