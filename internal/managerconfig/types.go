// SPDX-License-Identifier: Apache-2.0

// Package managerconfig is the manager's configuration file: its type, its
// defaults, its strict decoder and its validation. It reads no flag, no
// environment and no cluster.
package managerconfig

// The version and kind that a configuration file states.
const (
	APIVersion = "config.queueworker.dev/v1alpha1"
	Kind       = "ManagerConfig"
)

// Config configures the manager. Every field may be left out.
type Config struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	// Namespace is the operator's own namespace: it holds the lease and the
	// Secret of the certificate. Empty: the pod's own; outside a cluster,
	// queueworker-system.
	Namespace string `json:"namespace"`
	// WatchNamespaces are the namespaces whose QueueWorkers are handled.
	// Empty: all.
	WatchNamespaces []string `json:"watchNamespaces"`
	// Caps are limits of the platform that the rules warn about.
	Caps Caps `json:"caps"`
	// Agent is the program that is added to each worker pod.
	Agent Agent `json:"agent"`
	// Controller tunes the controller.
	Controller Controller `json:"controller"`
	// Webhook is the validating webhook.
	Webhook Webhook `json:"webhook"`
	// Metrics is the metrics endpoint.
	Metrics Metrics `json:"metrics"`
	// Health is the endpoint of /healthz and /readyz.
	Health Health `json:"health"`
	// LeaderElection lets one of several replicas act.
	LeaderElection LeaderElection `json:"leaderElection"`
	// Logging is what is written to standard error.
	Logging Logging `json:"logging"`
	// ShutdownTimeoutSeconds is how long a stop may take before the process
	// ends with an error; below the pod's own grace period. Default 20.
	ShutdownTimeoutSeconds int32 `json:"shutdownTimeoutSeconds"`
}

// Caps are limits of the platform.
type Caps struct {
	// GracePeriodSeconds is the longest termination grace period that the
	// platform honours, in seconds; a longer one is warned about. Default 600,
	// the limit of a node drain by the cluster autoscaler.
	GracePeriodSeconds int64 `json:"gracePeriodSeconds"`
}

// Agent is the program that is added to each worker pod.
type Agent struct {
	// Image is the image that has it, as /agent, and a numeric user that is not
	// root; worker pods of every namespace must be able to pull it. Another image
	// reaches a worker with its user's next change. Empty: queueworker/operator
	// with the manager's own version as its tag.
	Image string `json:"image"`
}

// Controller tunes the controller.
type Controller struct {
	// MaxConcurrentReconciles is how many QueueWorkers are handled at a time.
	// Default 4.
	MaxConcurrentReconciles int `json:"maxConcurrentReconciles"`
}

// Webhook is the validating webhook.
type Webhook struct {
	// BindAddress is where it listens. Default :9443.
	BindAddress string `json:"bindAddress"`
	// ConfigurationName is the ValidatingWebhookConfiguration that registers
	// it. Default queueworker-operator.
	ConfigurationName string `json:"configurationName"`
	// ServiceName is the Service in front of it, in the operator's namespace;
	// the certificate is made out to it. Default queueworker-operator-webhook.
	ServiceName string `json:"serviceName"`
	// URL replaces the Service for a manager outside the cluster: an https
	// address under which the API server reaches it, such as
	// https://localhost:9443. It is written into the webhook configuration.
	URL string `json:"url"`
	// FailurePolicy says what the API server does while the webhook is down:
	// Ignore or Fail. It is written into the webhook configuration; empty: left
	// as installed, which is Ignore unless changed. Broken chains are refused
	// by the CRD's own rules either way.
	FailurePolicy string `json:"failurePolicy"`
	// Certificates says where its certificate comes from.
	Certificates Certificates `json:"certificates"`
}

// CertificateMode says who makes the webhook's certificate.
type CertificateMode string

// The certificate modes.
const (
	// CertificatesSelf: the manager makes and renews it, keeps it in a Secret
	// and puts the authority into the webhook configuration.
	CertificatesSelf CertificateMode = "Self"
	// CertificatesProvided: somebody else, such as cert-manager, mounts
	// tls.crt and tls.key and fills in the webhook configuration.
	CertificatesProvided CertificateMode = "Provided"
)

// Certificates says where the webhook's certificate comes from.
type Certificates struct {
	// Mode is Self or Provided. Default Self.
	Mode CertificateMode `json:"mode"`
	// SecretName is the Secret that keeps the certificate (Self); it is made
	// if missing. Default queueworker-operator-webhook-cert.
	SecretName string `json:"secretName"`
	// Directory holds tls.crt and tls.key (Provided). Default
	// /etc/queueworker/webhook-certs.
	Directory string `json:"directory"`
}

// Metrics is the metrics endpoint: https, and only for callers that the API
// server authenticates and lets get /metrics.
type Metrics struct {
	// BindAddress is where it listens; "0" turns it off. Default :8443.
	BindAddress string `json:"bindAddress"`
}

// Health is the endpoint of /healthz and /readyz.
type Health struct {
	// BindAddress is where it listens. Default :8081.
	BindAddress string `json:"bindAddress"`
}

// LeaderElection lets one of several replicas act.
type LeaderElection struct {
	// Enabled is needed as soon as there is more than one replica. Default
	// true.
	Enabled bool `json:"enabled"`
	// LeaseName is the Lease in the operator's namespace. Default
	// queueworker-operator.
	LeaseName string `json:"leaseName"`
	// LeaseDurationSeconds is how long others wait for a leader that went
	// silent. Default 15.
	LeaseDurationSeconds int32 `json:"leaseDurationSeconds"`
	// RenewDeadlineSeconds is how long the leader tries to renew before it
	// gives up; below LeaseDurationSeconds. Default 10.
	RenewDeadlineSeconds int32 `json:"renewDeadlineSeconds"`
	// RetryPeriodSeconds is the pause between two attempts, and so how fast
	// another replica takes over from a leader that stopped; below
	// RenewDeadlineSeconds. Default 2.
	RetryPeriodSeconds int32 `json:"retryPeriodSeconds"`
}

// Logging is what is written to standard error.
type Logging struct {
	// Format is json or console. Default json.
	Format string `json:"format"`
	// Level is debug, info or error. Default info.
	Level string `json:"level"`
}
