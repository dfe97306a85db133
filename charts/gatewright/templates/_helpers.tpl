{{/* The chart's name in labels. */}}
{{- define "gatewright.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Prefix of all names; short enough for <fullname>-controller-manager-metrics. */}}
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

{{/* Secret with the CA and its key; only the controller may read it. */}}
{{- define "gatewright.caSecret" -}}
{{ include "gatewright.fullname" . }}-ca
{{- end }}

{{/* Secret with the webhook's certificate and key; the webhook watches it. */}}
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

{{/* "true" where cert-manager issues the certificates. */}}
{{- define "gatewright.certManager" -}}
{{- if and .Values.webhook.enabled (or .Values.certManager.enabled .Values.webhook.certManager.enabled) }}true{{ end }}
{{- end }}

{{/* The ConfigMaps with policies and cases. */}}
{{- define "gatewright.policyConfigMaps" -}}
{{- prepend .Values.policies.caseConfigMaps (include "gatewright.policies" .) | join ", " }}
{{- end }}

{{/* The arguments by which a process reads policies, and proves them by the cases of their presets. */}}
{{- define "gatewright.policyArguments" -}}
- --policies-config-map={{ include "gatewright.policyConfigMaps" . | replace ", " "," }}
{{- with without (.Values.policies.preset | join ", " | splitList ", ") "none" }}
- --preset-cases={{ join "," . }}
{{- end }}
{{- end }}

{{/* "true" where the controller or the webhook judges by policies. */}}
{{- define "gatewright.judges" -}}
{{- if or .Values.webhook.enabled .Values.audit.enabled }}true{{ end }}
{{- end }}

{{/* The Deployments by the key of their values, as JSON: their component. */}}
{{- define "gatewright.components" -}}
{{- $components := dict "controller" "controller-manager" }}
{{- if .Values.webhook.enabled }}
{{- $_ := set $components "webhook" "webhook" }}
{{- end }}
{{- toJson $components }}
{{- end }}

{{/* Labels that select the pods of a component; takes a dict of root and component. */}}
{{- define "gatewright.selectorLabels" -}}
app.kubernetes.io/name: {{ include "gatewright.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* Labels of an object; takes a dict of root, component and, where it has some, more. Its own labels win over common ones. */}}
{{- define "gatewright.labels" -}}
{{- $labels := include "gatewright.selectorLabels" . | fromYaml }}
{{- $_ := set $labels "app.kubernetes.io/version" .root.Chart.AppVersion }}
{{- merge $labels (.more | default dict) .root.Values.commonLabels | toYaml }}
{{- end }}

{{/*
Metadata of an object; takes a dict of root, component and name, and optionally cluster (it has no namespace), more
(labels) and annotations.
*/}}
{{- define "gatewright.metadata" -}}
name: {{ .name }}
{{- if not .cluster }}
namespace: {{ .root.Release.Namespace }}
{{- end }}
labels:
  {{- include "gatewright.labels" . | nindent 2 }}
{{- with merge dict (.annotations | default dict) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/*
Settings of one Deployment as YAML: the keys that values.schema.json has in $defs/settings (`make manifests` lists them in
files/settings.yaml), each overridden by the same key under `controller` or `webhook`; most mappings are overridden key by key (not by `merge`, which takes false for unset). Takes a dict of root and of, the name of the override.
*/}}
{{- define "gatewright.settings" -}}
{{- $own := index .root.Values .of }}
{{- $settings := dict }}
{{- $names := (.root.Files.Get "files/settings.yaml" | fromYaml).settings }}
{{- range $key := append $names "serviceAccount" }}
{{- if not (hasKey $.root.Values $key) }}
{{- fail (printf "the values have no %s: they are of another version of the chart; use helm upgrade --reset-then-reuse-values" $key) }}
{{- end }}
{{- $value := deepCopy (index $.root.Values $key) }}
{{- if and (eq $key "resources") (eq $.of "webhook") $value.limits }}
{{- $_ := unset $value.limits "cpu" }}
{{- end }}
{{- if hasKey $own $key }}
{{- $override := index $own $key }}
{{- if eq $key "resources" }}
{{- $value = merge (deepCopy $override) $value }}
{{- else if kindIs "map" $value | and (not (has $key (list "affinity" "nodeSelector" "podAnnotations" "podLabels"))) }}
{{- range $name, $field := $override }}
{{- $_ := set $value $name $field }}
{{- end }}
{{- else }}
{{- $value = $override }}
{{- end }}
{{- end }}
{{- $_ := set $settings $key $value }}
{{- end }}
{{- toYaml $settings }}
{{- end }}

{{/* Fails for options and variables that a process does not have; takes a dict of root, of and settings. */}}
{{- define "gatewright.check" -}}
{{- $known := .root.Files.Get "files/settings.yaml" | fromYaml }}
{{- range .settings.extraArgs }}
{{- $flag := toString . | splitList "=" | first }}
{{- if and (hasPrefix "-" $flag) (not (has $flag (get $known.flags $.of))) }}
{{- fail (printf "extraArgs: `gatewright %s` has no option %s; docs/reference/settings.md lists those it has" $.of $flag) }}
{{- end }}
{{- end }}
{{- $variables := keys .settings.env | sortAlpha }}
{{- range .settings.extraEnv }}
{{- $variables = append $variables .name }}
{{- end }}
{{- range $variables }}
{{- if and (hasPrefix "GATEWRIGHT_" .) (not (has . $known.variables)) }}
{{- fail (printf "env: there is no setting %s; docs/reference/settings.md lists the variables" .) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Name of the ServiceAccount of one Deployment; takes a dict of root and of, `controller` or `webhook`. */}}
{{- define "gatewright.account" -}}
{{- $names := list }}
{{- range $of := list "controller" "webhook" }}
{{- $names = append $names ((index $.root.Values $of).serviceAccount | default dict).name }}
{{- end }}
{{- if and (first $names) (eq (first $names) (last $names)) }}
{{- fail "controller.serviceAccount.name and webhook.serviceAccount.name must differ: the webhook would have the controller's rights" }}
{{- end }}
{{- $name := include (printf "gatewright.%s.fullname" .of) .root }}
{{- ((index .root.Values .of).serviceAccount | default dict).name | default $name }}
{{- end }}

{{/* The value of --kinds, empty for all of them. */}}
{{- define "gatewright.kinds" -}}
{{- with .Values.kinds }}
{{- concat (without . "none") $.Values.extraKinds | join "," | default "none" }}
{{- end }}
{{- end }}

{{/* The part of a pod's spec that both Deployments share; takes a dict of root, component and settings. */}}
{{- define "gatewright.pod" -}}
enableServiceLinks: false # the variables of a Service named gatewright-… look like settings
securityContext:
  {{- toYaml .settings.podSecurityContext | nindent 2 }}
{{- with .settings.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .settings.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .settings.schedulerName }}
schedulerName: {{ . }}
{{- end }}
{{- with .settings.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- with .settings.dnsPolicy | default (and (eq .component "webhook") .root.Values.webhook.hostNetwork | ternary "ClusterFirstWithHostNet" "") }}
dnsPolicy: {{ . }}
{{- end }}
{{- with .settings.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .settings.affinity }}
affinity:
  {{- tpl (toYaml .) (merge (dict "component" $.component) $.root) | nindent 2 }}
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
  {{- tpl (toYaml .) (merge (dict "component" $.component) $.root) | nindent 2 }}
{{- end }}
{{- end }}

{{/* Image and pull policy of a container; takes a dict of root and settings. */}}
{{- define "gatewright.image" -}}
{{- with .settings.image }}
image: "{{ with ($.root.Values.global | default dict).imageRegistry }}{{ . }}/{{ end }}{{ .repository }}:{{ .tag | default $.root.Chart.AppVersion }}{{ with .digest }}@{{ . }}{{ end }}"
imagePullPolicy: {{ .pullPolicy }}
{{- end }}
{{- end }}

{{/* The part of a container that both Deployments share; takes a dict of root and settings. */}}
{{- define "gatewright.container" -}}
{{- include "gatewright.image" . }}
{{- if or .settings.env .settings.extraEnv }}
env:
  {{- range $name, $value := .settings.env }}
  - name: {{ $name }}
    value: {{ $value | quote }}
  {{- end }}
  {{- with .settings.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
livenessProbe:
  httpGet:
    path: /healthz
    port: health
  {{- toYaml .settings.livenessProbe | nindent 2 }}
readinessProbe:
  httpGet:
    path: /readyz
    port: health
  {{- toYaml .settings.readinessProbe | nindent 2 }}
resources:
  {{- toYaml .settings.resources | nindent 2 }}
securityContext:
  {{- toYaml .settings.containerSecurityContext | nindent 2 }}
{{- end }}

{{/* Egress rules of a NetworkPolicy that reach the API server and DNS. */}}
{{- define "gatewright.egress" -}}
- ports: # the API server
    {{- range .Values.networkPolicy.apiServerPorts }}
    - port: {{ . }}
    {{- end }}
- ports: # DNS
    - port: 53
      protocol: UDP
    - port: 53
{{- end }}

{{/* The securityContext of the hooks' containers. */}}
{{- define "gatewright.restricted" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* Where a container mounts modules, the clients' CA and extra volumes; takes a dict of root, component and settings. */}}
{{- define "gatewright.mounts" -}}
{{- if include "gatewright.modules" .root }}
- name: modules
  mountPath: /etc/gatewright/modules
  readOnly: true
{{- end }}
{{- if and (eq .component "webhook") .root.Values.webhook.clientCA }}
- name: client-ca
  mountPath: /etc/gatewright/client-ca
  readOnly: true
{{- end }}
{{- if and (or (eq .component "webhook") .root.Values.audit.enabled) .root.Values.registries.credentials }}
- name: registries
  mountPath: /etc/gatewright/registries
  readOnly: true
{{- end }}
{{- if and (or (eq .component "webhook") .root.Values.audit.enabled) .root.Values.registries.ca }}
- name: registry-ca
  mountPath: /etc/gatewright/registry-ca
  readOnly: true
{{- end }}
{{- with .settings.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The volumes of `gatewright.mounts`; takes the same. */}}
{{- define "gatewright.volumes" -}}
{{- if include "gatewright.modules" .root }}
- name: modules
  configMap:
    name: {{ include "gatewright.policies" .root }}-modules
{{- end }}
{{- if and (eq .component "webhook") .root.Values.webhook.clientCA }}
- name: client-ca
  configMap:
    name: {{ .root.Values.webhook.clientCA }}
{{- end }}
{{- if and (or (eq .component "webhook") .root.Values.audit.enabled) .root.Values.registries.credentials }}
- name: registries
  secret:
    secretName: {{ .root.Values.registries.credentials }}
{{- end }}
{{- if and (or (eq .component "webhook") .root.Values.audit.enabled) .root.Values.registries.ca }}
- name: registry-ca
  configMap:
    name: {{ .root.Values.registries.ca }}
{{- end }}
{{- with .settings.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The arguments by which policies read registries. */}}
{{- define "gatewright.registries" -}}
{{- with .Values.registries }}
{{- if .credentials }}
- --registry-config=/etc/gatewright/registries/.dockerconfigjson
{{- end }}
{{- if .ca }}
- --registry-ca=/etc/gatewright/registry-ca/ca.crt
{{- end }}
{{- range .insecure }}
- --insecure-registries={{ . }}
{{- end }}
{{- end }}
{{- end }}

{{/* "true" where there are policy modules to mount. */}}
{{- define "gatewright.modules" -}}
{{- if and (include "gatewright.judges" .) .Values.policies.modules }}true{{ end }}
{{- end }}

{{/* The rule that lets an account watch the policies' ConfigMap, and no other. */}}
{{- define "gatewright.policiesRule" -}}
- apiGroups: [""]
  resources: [configmaps]
  resourceNames: [{{ include "gatewright.policyConfigMaps" . }}]
  verbs: [list, watch] # restricted by name: a watch of one object
{{- end }}
