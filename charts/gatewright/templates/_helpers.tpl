{{/* What the labels call us. */}}
{{- define "gatewright.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* The prefix of all names; short enough for <fullname>-controller-manager-metrics. */}}
{{- define "gatewright.fullname" -}}
{{- $name := include "gatewright.name" . }}
{{- $default := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) }}
{{- default $default .Values.fullnameOverride | trunc 36 | trimSuffix "-" }}
{{- end }}

{{- define "gatewright.controller.fullname" -}}
{{ include "gatewright.fullname" . }}-controller-manager
{{- end }}

{{- define "gatewright.webhook.fullname" -}}
{{ include "gatewright.fullname" . }}-webhook
{{- end }}

{{- define "gatewright.lease" -}}
{{ .Values.leaderElection.id | default (printf "%s-controller-lock" (include "gatewright.fullname" .)) }}
{{- end }}

{{/* The Secret with the CA and its key: only the controller may read it. */}}
{{- define "gatewright.caSecret" -}}
{{ include "gatewright.fullname" . }}-ca
{{- end }}

{{/* The Secret with the webhook's own certificate and key: the webhook mounts it. */}}
{{- define "gatewright.tlsSecret" -}}
{{ include "gatewright.webhook.fullname" . }}-tls
{{- end }}

{{- define "gatewright.policies" -}}
{{ include "gatewright.fullname" . }}-policies
{{- end }}

{{/*
A policy object with the release's action and failurePolicy where it sets none of its own; an exception stays as it is.
Takes a dict of policy, action and failurePolicy.
*/}}
{{- define "gatewright.policy" -}}
{{- $spec := deepCopy .policy.spec }}
{{- if ne .policy.kind "PolicyException" }}
{{- $spec = merge $spec (dict "validationActions" (list .action)) }}
{{- if eq .failurePolicy "Ignore" }}
{{- $spec = merge $spec (dict "failurePolicy" "Ignore") }}
{{- end }}
{{- end }}
{{- merge (dict "spec" $spec) .policy | toYaml }}
{{- end }}

{{/* "true" when cert-manager makes the certificates. */}}
{{- define "gatewright.certManager" -}}
{{- if and .Values.webhook.enabled (or .Values.certManager.enabled .Values.webhook.certManager.enabled) }}true{{ end }}
{{- end }}

{{/* Labels of what selects pods; takes a dict of root and component. */}}
{{- define "gatewright.selectorLabels" -}}
app.kubernetes.io/name: {{ include "gatewright.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* Labels of an object; takes a dict of root, component and, where it has some, more. Its own hold against common ones. */}}
{{- define "gatewright.labels" -}}
{{- $labels := include "gatewright.selectorLabels" . | fromYaml }}
{{- $_ := set $labels "app.kubernetes.io/version" .root.Chart.AppVersion }}
{{- merge $labels (.more | default dict) .root.Values.commonLabels | toYaml }}
{{- end }}

{{/*
Settings of one Deployment as YAML: the top-level keys, each overridden by the same key under `controller` or `webhook`
(image, resources, podSecurityContext and env key by key). Takes a dict of root and of, the name of the override.
*/}}
{{- define "gatewright.settings" -}}
{{- $own := index .root.Values .of }}
{{- $settings := dict }}
{{- range $key := list "replicaCount" "image" "imagePullSecrets" "resources" "podSecurityContext" "affinity" "nodeSelector" "tolerations" "topologySpreadConstraints" "priorityClassName" "podAnnotations" "podLabels" "env" }}
{{- $value := index $.root.Values $key }}
{{- if hasKey $own $key }}
{{- $override := index $own $key }}
{{- if has $key (list "image" "resources" "podSecurityContext" "env") }}
{{- $value = merge (deepCopy $override) $value }}
{{- else }}
{{- $value = $override }}
{{- end }}
{{- end }}
{{- $_ := set $settings $key $value }}
{{- end }}
{{- toYaml $settings }}
{{- end }}

{{/* The part of a pod's spec that both Deployments share; takes a dict of root and settings. */}}
{{- define "gatewright.pod" -}}
enableServiceLinks: false # variables of a Service called gatewright-… would look like settings
securityContext:
  {{- toYaml .settings.podSecurityContext | nindent 2 }}
{{- with .settings.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .settings.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .settings.affinity }}
affinity:
  {{- tpl (toYaml .) $.root | nindent 2 }}
{{- end }}
{{- with .settings.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .settings.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .settings.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- tpl (toYaml .) $.root | nindent 2 }}
{{- end }}
{{- end }}

{{/* The part of a container that both Deployments share; takes a dict of root and settings. */}}
{{- define "gatewright.container" -}}
{{- with .settings.image }}
image: "{{ .repository }}:{{ .tag | default $.root.Chart.AppVersion }}{{ with .digest }}@{{ . }}{{ end }}"
imagePullPolicy: {{ .pullPolicy }}
{{- end }}
{{- with .settings.env }}
env:
  {{- range $name, $value := . }}
  - name: {{ $name }}
    value: {{ $value | quote }}
  {{- end }}
{{- end }}
livenessProbe:
  httpGet:
    path: /healthz
    port: health
  initialDelaySeconds: 15
  periodSeconds: 20
  timeoutSeconds: 4
readinessProbe:
  httpGet:
    path: /readyz
    port: health
  periodSeconds: 5
  timeoutSeconds: 4
resources:
  {{- toYaml .settings.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  capabilities:
    drop: [ALL]
{{- end }}
