// SPDX-License-Identifier: Apache-2.0

//go:build linux

package install

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// A certificate is replaced as it is each year, while QueueWorkers are applied all the time and failurePolicy Fail would let the
// API server refuse them: none is refused, each is judged by the webhook, and no manager starts anew.
func TestCertificateRotates(t *testing.T) {
	installed(t, chart, "--set", "webhook.failurePolicy=Fail")
	before, serving := managers(t), certificates(t)
	load := startApplies(t)
	load.atLeast(t, 100)

	// What is missing is made anew by the authority that is there, as what is about to expire.
	mustKubectl(t, "-n", system, "patch", "secret", release+"-webhook-cert", "--type=json", "-p", `[{"op":"remove","path":"/data/tls.crt"}]`)
	eventually(t, "every manager serves another certificate", func() error {
		for pod, certificate := range certificates(t) {
			if certificate == serving[pod] {
				return errors.New(pod + " serves the old one")
			}
		}
		return nil
	})
	load.atLeast(t, 300)
	load.stop()
	if len(load.wrong) > 0 {
		t.Errorf("%d of %d were not judged by the webhook, such as: %s", len(load.wrong), load.answers, load.wrong[0])
	}
	t.Logf("%d applies, every one judged by the webhook", load.answers)
	if now := managers(t); now != before {
		t.Errorf("managers were restarted or replaced; they were\n%s\nand are\n%s", before, now)
	}
}

// certificates are those that the managers present, by pod.
func certificates(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for line := range strings.Lines(mustKubectl(t, "-n", system, "get", "pods", "-l", component, "-o",
		`jsonpath={range .items[*]}{.metadata.name} {.status.podIP}{"\n"}{end}`)) {
		words := strings.Fields(line)
		certificate, err := presented(t.Context(), words[1]+":9443")
		if err != nil {
			t.Fatalf("%s: %v", words[0], err)
		}
		found[words[0]] = certificate
	}
	if len(found) != 2 {
		t.Fatalf("%d managers, want two", len(found))
	}
	return found
}

// presented is the certificate that is served at an address of the pods' network.
func presented(ctx context.Context, address string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := suite.node.Command(ctx, "socat", "-", "TCP:"+address)
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	client := tls.Client(pipe{Reader: out, WriteCloser: in}, &tls.Config{InsecureSkipVerify: true})
	err = client.HandshakeContext(ctx)
	certificate := ""
	if err == nil {
		certificate = string(client.ConnectionState().PeerCertificates[0].Raw)
	}
	cancel()
	_ = cmd.Wait()
	return certificate, err
}

// pipe makes a connection of a program's input and output.
type pipe struct {
	io.Reader
	io.WriteCloser
}

func (pipe) LocalAddr() net.Addr              { return &net.UnixAddr{} }
func (pipe) RemoteAddr() net.Addr             { return &net.UnixAddr{} }
func (pipe) SetDeadline(time.Time) error      { return nil }
func (pipe) SetReadDeadline(time.Time) error  { return nil }
func (pipe) SetWriteDeadline(time.Time) error { return nil }

// applies are dry-run creates of a QueueWorker of which the webhook, and nobody else, warns.
type applies struct {
	stop    func()
	mu      sync.Mutex
	answers int
	wrong   []string
}

// startApplies sends them from several clients at a time, so that the API server keeps opening connections to the webhook.
func startApplies(t *testing.T) *applies {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "config", "samples", "warned", "http-timeout-missing.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	body, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	config := suite.node.RESTConfig()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	a := &applies{}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for ctx.Err() == nil {
				a.count(ctx, apply(ctx, client, config.Host, body))
			}
		})
	}
	a.stop = func() {
		cancel()
		all.Wait()
	}
	t.Cleanup(a.stop)
	return a
}

func apply(ctx context.Context, client *http.Client, host string, body []byte) error {
	url := host + "/apis/queueworker.dev/v1alpha1/namespaces/" + workers + "/queueworkers?dryRun=All"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	said, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if warnings := fmt.Sprint(response.Header["Warning"]); response.StatusCode != http.StatusCreated || !strings.Contains(warnings, "http-timeout-missing") {
		return fmt.Errorf("%s, warnings %s: %.500s", response.Status, warnings, said)
	}
	return nil
}

func (a *applies) count(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return // cut off by ourselves
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answers++
	if err != nil {
		a.wrong = append(a.wrong, err.Error())
	}
}

// atLeast waits for that many more answers.
func (a *applies) atLeast(t *testing.T, more int) {
	t.Helper()
	count := func() int {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.answers
	}
	until := count() + more
	eventually(t, fmt.Sprintf("%d answers", until), func() error {
		if n := count(); n < until {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
}
