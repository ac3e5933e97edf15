// SPDX-License-Identifier: Apache-2.0

// Package kubeapi reads and writes the status of one QueueWorker, and nothing
// else, with the token that the kubelet mounts. Plain HTTPS: a client library
// would be a hundred times its size.
package kubeapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/queueworker/operator/internal/monitor"
)

const (
	apiVersion   = "queueworker.dev/v1alpha1"
	kind         = "QueueWorker"
	fieldManager = "queueworker-monitor"

	limit     = 10 * time.Second // of one request
	mostBytes = 4 << 20          // of one answer
)

// ServiceAccountDir is where the token and the authority are mounted.
const ServiceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// Client asks the API server about one object.
type Client struct {
	namespace, name string

	url       string
	dir       string // with token and ca.crt
	authority []byte // that http trusts
	http      *http.Client
}

// New makes a client from the pod's own environment.
func New(getenv func(string) string, dir, namespace, name string) (*Client, error) {
	host, port := getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, fmt.Errorf("KUBERNETES_SERVICE_HOST is %q and KUBERNETES_SERVICE_PORT %q: this is no pod", host, port)
	}
	path := "/apis/" + apiVersion + "/namespaces/" + url.PathEscape(namespace) + "/queueworkers/" + url.PathEscape(name) + "/status"
	return &Client{namespace: namespace, name: name, url: "https://" + net.JoinHostPort(host, port) + path, dir: dir}, nil
}

// Object is what the monitor reads of a QueueWorker.
type Object struct {
	Metadata struct {
		Generation int64 `json:"generation"`
	} `json:"metadata"`
	Spec struct {
		Replicas *int64 `json:"replicas"`
	} `json:"spec"`
	Status struct {
		ReadyReplicas int64               `json:"readyReplicas"`
		QueueState    *monitor.Status     `json:"queueState"`
		Conditions    []monitor.Condition `json:"conditions"`
	} `json:"status"`
}

// Workers is how many are wanted and alive.
func (o Object) Workers() monitor.Workers {
	w := monitor.Workers{Known: true, Wanted: 1, Alive: o.Status.ReadyReplicas}
	if o.Spec.Replicas != nil {
		w.Wanted = *o.Spec.Replicas
	}
	return w
}

// Consuming is the condition as it stands, empty where there is none.
func (o Object) Consuming() monitor.Condition {
	for _, c := range o.Status.Conditions {
		if c.Type == monitor.Consuming {
			return c
		}
	}
	return monitor.Condition{}
}

// Get reads the object.
func (c *Client) Get(ctx context.Context) (Object, error) {
	var object Object
	text, err := c.do(ctx, http.MethodGet, "", nil)
	if err == nil {
		err = json.Unmarshal(text, &object)
	}
	if err != nil {
		return Object{}, fmt.Errorf("read the QueueWorker: %w", err)
	}
	return object, nil
}

// document is what is applied: the fields that belong to the monitor.
type document struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
	Status     applied        `json:"status"`
}

type applied struct {
	QueueState monitor.Status      `json:"queueState"`
	Conditions []monitor.Condition `json:"conditions"`
}

// Apply writes the monitor's part of the status.
func (c *Client) Apply(ctx context.Context, status monitor.Status, condition monitor.Condition) error {
	body, err := json.Marshal(document{
		APIVersion: apiVersion, Kind: kind, Metadata: map[string]any{"name": c.name, "namespace": c.namespace},
		Status: applied{QueueState: status, Conditions: []monitor.Condition{condition}},
	})
	if err == nil {
		_, err = c.do(ctx, http.MethodPatch, "?fieldManager="+fieldManager+"&force=true", body)
	}
	if err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	return nil
}

func (c *Client) do(ctx context.Context, method, query string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	client, err := c.trusting()
	if err != nil {
		return nil, err
	}
	// The kubelet replaces the token before it expires.
	token, err := os.ReadFile(filepath.Join(c.dir, "token"))
	if err != nil {
		return nil, fmt.Errorf("read the service account's token: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.url+query, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", fieldManager)
	if body != nil {
		request.Header.Set("Content-Type", "application/apply-patch+yaml") // JSON is YAML
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, mostBytes))
	if err != nil {
		return nil, err
	}
	if response.StatusCode/100 != 2 {
		return nil, fmt.Errorf("%s: %s", response.Status, said(text))
	}
	return text, nil
}

// said is the API server's own reason.
func said(text []byte) string {
	var status struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(text, &status) == nil && status.Message != "" {
		return status.Message
	}
	return "no reason given"
}

// trusting is a client that trusts the mounted authority, whichever that is now.
func (c *Client) trusting() (*http.Client, error) {
	authority, err := os.ReadFile(filepath.Join(c.dir, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("read the cluster's authority: %w", err)
	}
	if c.http != nil && bytes.Equal(authority, c.authority) {
		return c.http, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s holds no certificate", filepath.Join(c.dir, "ca.crt"))
	}
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
	c.authority = authority
	c.http = &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the token is for nobody else
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
			MaxIdleConns:    1, IdleConnTimeout: time.Minute,
		},
	}
	return c.http, nil
}
