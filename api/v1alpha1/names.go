// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Names that the operator writes to objects.
const (
	// LabelName holds the QueueWorker's name on every object made for it. It is
	// the whole selector of the Deployment, so it can never change.
	LabelName = GroupName + "/name"
	// LabelManagedBy marks the objects that the operator made.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedByValue is the value of LabelManagedBy.
	ManagedByValue = "queueworker-operator"
	// AnnotationInputHash, on a Deployment, identifies what the user wrote and
	// the pod acts on. The template is rendered anew only when it changes, so an
	// operator upgrade restarts no worker.
	AnnotationInputHash = GroupName + "/input-hash"
	// AnnotationAppliedTemplate, on a Deployment, holds the pod template as it
	// was last rendered, compressed. Drift is repaired to it, so that an
	// operator whose rendering differs repairs without changing a worker.
	AnnotationAppliedTemplate = GroupName + "/applied-template"
	// FieldManager owns the fields that the operator applies.
	FieldManager = "queueworker-operator"

	// WorkerContainer is the container of the template that runs the worker.
	WorkerContainer = "worker"
	// ReservedName, alone or followed by a dash, is kept for containers and
	// volumes that the operator adds.
	ReservedName = "queueworker"
	// ReservedMountPath is kept for the operator's volume.
	ReservedMountPath = "/queueworker"
	// AgentVolume holds the agent and what it shares with the worker.
	AgentVolume = ReservedName
	// AgentContainer is the init container that brings the agent along.
	AgentContainer = ReservedName + "-agent"
	// PreflightContainer is the init container that compares the application
	// with the spec.
	PreflightContainer = ReservedName + "-preflight"
	// LabelPreflight holds the QueueWorker's name on a pod that runs only its
	// preflight. LabelName is empty there: such a pod is no worker.
	LabelPreflight = GroupName + "/preflight"
	// FenceContainer is the native sidecar that calls the providers, and the
	// volume with its configuration.
	FenceContainer = ReservedName + "-fence"
	// FencePort is the name of the sidecar's port for probes and metrics.
	FencePort = "fence-status"
	// AnnotationFenceConfig, on a pod, is the configuration of its sidecar. It
	// holds no secret.
	AnnotationFenceConfig = GroupName + "/fence-config"
	// FenceURLEnv tells the application where the sidecar listens.
	FenceURLEnv = ReservedEnvPrefix + "FENCE_URL"
	// LabelMonitor holds the QueueWorker's name on the pod of its monitor. Such a
	// pod has no LabelName, so that nothing takes it for a worker.
	LabelMonitor = GroupName + "/monitor"
	// MonitorContainer is the monitor's container.
	MonitorContainer = "monitor"
	// MonitorFieldManager owns what the monitor writes to the status.
	MonitorFieldManager = "queueworker-monitor"
	// MonitorTokenVolume holds the token by which the monitor writes.
	MonitorTokenVolume = ReservedName + "-token"
	// MonitorPort and WorkerMetricsPort are the names of the ports at which the
	// monitor and the workers' agents are scraped.
	MonitorPort       = "metrics"
	WorkerMetricsPort = "qw-metrics"
	// MetricsEnv tells the agent of a worker where to serve its metrics.
	MetricsEnv = ReservedEnvPrefix + "METRICS"
	// ReservedEnvPrefix is kept for environment variables of the operator.
	ReservedEnvPrefix = "QUEUEWORKER_"
)
