{{- define "operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* 50, since names are made of it by adding to it. */}}
{{- define "operator.fullname" -}}
{{- $name := include "operator.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- /* Labels that select; they never change. */}}
{{- define "operator.selector" -}}
app.kubernetes.io/name: {{ include "operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "operator.labels" -}}
{{ include "operator.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: queueworker
{{- end }}

{{- define "operator.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "operator.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name: name the service account that exists, or set serviceAccount.create" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "operator.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{- define "operator.webhookService" -}}
{{ include "operator.fullname" . }}-webhook
{{- end }}

{{- /* cert-manager's has a name of its own: another type, and the other one goes when the mode changes. */}}
{{- define "operator.certificateSecret" -}}
{{- $suffix := ternary "cert" "tls" (eq .Values.webhook.certificates.mode "self") }}
{{- default (printf "%s-webhook-%s" (include "operator.fullname" .) $suffix) .Values.webhook.certificates.secretName }}
{{- end }}

{{- /* The manager writes its authority and its namespaces into its registration. What it writes is not in the template:
two writers of one field would be a conflict at the next upgrade. */}}
{{- define "operator.registers" -}}
{{- if or (eq .Values.webhook.certificates.mode "self") .Values.watchNamespaces }}true{{ end }}
{{- end }}

{{- define "operator.config" -}}
apiVersion: config.queueworker.dev/v1alpha1
kind: ManagerConfig
namespace: {{ .Release.Namespace }}
watchNamespaces: {{ toJson .Values.watchNamespaces }}
caps:
  gracePeriodSeconds: {{ .Values.caps.gracePeriodSeconds | int64 }}
agent:
  image: {{ default (include "operator.image" .) .Values.agent.image | quote }}
controller:
  maxConcurrentReconciles: {{ .Values.controller.maxConcurrentReconciles | int64 }}
webhook:
  configurationName: {{ include "operator.fullname" . }}
  serviceName: {{ include "operator.webhookService" . }}
  certificates:
    {{- if eq .Values.webhook.certificates.mode "self" }}
    mode: Self
    secretName: {{ include "operator.certificateSecret" . }}
    {{- else }}
    mode: Provided
    directory: /etc/queueworker/webhook-certs
    {{- end }}
metrics:
  bindAddress: {{ ternary ":8443" "0" .Values.metrics.enabled | quote }}
leaderElection:
  leaseName: {{ include "operator.fullname" . }}
  leaseDurationSeconds: {{ .Values.leaderElection.leaseDurationSeconds | int64 }}
  renewDeadlineSeconds: {{ .Values.leaderElection.renewDeadlineSeconds | int64 }}
  retryPeriodSeconds: {{ .Values.leaderElection.retryPeriodSeconds | int64 }}
logging:
  format: {{ .Values.logging.format }}
  level: {{ .Values.logging.level }}
{{- end }}

{{- /* What the controller does in a namespace: in a ClusterRole for all, in a Role of each where they are listed. */}}
{{- define "operator.workerRules" -}}
- apiGroups: [queueworker.dev]
  resources: [queueworkers]
  verbs: [get, list, watch]
- apiGroups: [queueworker.dev]
  resources: [queueworkers/status]
  verbs: [get, patch]
# Monitors get both on the status of their own QueueWorker, and nobody may give what they have not.
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  verbs: [get, list, watch, create, patch, delete]
# Owners of Deployments and budgets, where the API server wants to see that they may be held up.
- apiGroups: [queueworker.dev]
  resources: [queueworkers/finalizers]
  verbs: [update]
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [apps]
  resources: [replicasets]
  verbs: [list, watch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list, watch, create, patch, delete]
# Created: trials of a new image's preflight.
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch, create, delete]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end }}

{{- define "operator.workerNamespaces" -}}
namespaceSelector:
  {{- if .Values.watchNamespaces }}
  matchNames: {{- toYaml .Values.watchNamespaces | nindent 4 }}
  {{- else }}
  any: true
  {{- end }}
{{- end }}

{{- define "operator.bindTo" -}}
subjects:
  - kind: ServiceAccount
    name: {{ include "operator.serviceAccount" . }}
    namespace: {{ .Release.Namespace }}
{{- end }}
