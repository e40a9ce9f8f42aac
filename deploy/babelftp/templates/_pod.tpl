{{/* The parts that the pods of the server, the check and the tests have in common. */}}

{{/* The settings that depend on the pod and the Service, as environment variables, which override the configuration. .root and .check are as
in babelftp.volumes. */}}
{{- define "babelftp.env" -}}
{{- $values := .root.Values -}}
{{- $ports := include "babelftp.containerPorts" .root | fromYaml -}}
{{- $passivePorts := include "babelftp.passivePorts" .root | splitList " " -}}
- name: BABELFTP_LISTEN
  value: ":{{ $ports.ftp }}"
- name: BABELFTP_METRICS_LISTEN
  value: ":{{ $ports.metrics }}"
- name: BABELFTP_ADMIN_SOCKET
  value: /run/babelftp/admin/admin.sock
{{- if $values.admin.enabled }}
- name: BABELFTP_ADMIN_LISTEN
  value: "127.0.0.1:{{ $ports.admin }}"
{{- if hasKey $values.secrets "admin" }}
- name: BABELFTP_ADMIN_USERS_FILE
  value: /run/babelftp/secrets/admin/users
{{- end }}
{{- end }}
- name: BABELFTP_DRAIN_TIMEOUT
  value: {{ printf "%ds" (int $values.drainTimeoutSeconds) }}
- name: BABELFTP_PASSIVE_PORTS
  value: {{ printf "%s-%s" (first $passivePorts) (last $passivePorts) }}
{{- with $values.passive.publicAddress }}
- name: BABELFTP_PASSIVE_PUBLIC_ADDRESS
  value: {{ . | quote }}
{{- end }}
{{- if include "babelftp.cluster" .root }}
- name: BABELFTP_CLUSTER_REPLICAS
  value: {{ $values.maxReplicas | quote }}
- name: BABELFTP_CLUSTER_PEERS
  value: {{ printf "%s-{replica}.%[1]s-headless" (include "babelftp.fullname" .root) | quote }}
{{- if .hook }}
- name: BABELFTP_CLUSTER_REPLICA # pods of the server have this number in their names
  value: "0"
{{- end }}
{{- end }}
{{- $certificate := include "babelftp.certificateSecret" .root }}
{{- if and $values.tls.implicit (not $certificate) (not (dig "acme" "" ($values.config.tls | default dict))) }}
{{- fail "tls.implicit needs a certificate: name its Secret in tls.existingSecret, or set tls.certificate.enabled or config.tls.acme" }}
{{- end }}
{{- if and .check $values.tls.certificate.enabled }}
- name: BABELFTP_TLS_REQUIRED # cert-manager obtains the certificate after this check
  value: "false"
{{- else }}
{{- if $certificate }}
- name: BABELFTP_TLS_CERT_FILE
  value: /run/babelftp/tls/tls.crt
- name: BABELFTP_TLS_KEY_FILE
  value: /run/babelftp/tls/tls.key
{{- end }}
{{- if $values.tls.implicit }}
- name: BABELFTP_TLS_IMPLICIT_LISTEN
  value: ":{{ $ports.ftps }}"
{{- end }}
{{- end }}
{{- with include "babelftp.goMemoryLimit" .root }}
- name: GOMEMLIMIT
  value: {{ . | quote }}
{{- end }}
{{- with $values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* .root and .check are as in babelftp.volumes. */}}
{{- define "babelftp.volumeMounts" -}}
- name: config
  mountPath: /etc/babelftp
  readOnly: true
- name: admin
  mountPath: /run/babelftp/admin
{{- with include "babelftp.stateFolder" .root }}
- name: state
  mountPath: {{ . }}
{{- end }}
{{- if and (include "babelftp.certificateSecret" .root) (not (and .check .root.Values.tls.certificate.enabled)) }}
- name: tls
  mountPath: /run/babelftp/tls
  readOnly: true
{{- end }}
{{- range $name, $secret := .root.Values.secrets }}
- name: secret-{{ $name }}
  mountPath: /run/babelftp/secrets/{{ $name }}
  readOnly: true
{{- end }}
{{- with .root.Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The volumes of a pod: .root is the chart. .check is set for the check, which does not need a certificate from cert-manager. .before is set for a
check that runs before the objects of the release exist. */}}
{{- define "babelftp.volumes" -}}
{{- $fullname := include "babelftp.fullname" .root -}}
{{- $made := .before | ternary (printf "%s-check" $fullname) $fullname -}}
- name: config
  secret:
    secretName: {{ .root.Values.existingSecret | default $made }}
    defaultMode: 0440
    {{- if and .before (not .root.Values.existingSecret) }}
    items:
      - key: babelftp.yaml
        path: babelftp.yaml
    {{- end }}
- name: admin # for admin_socket
  emptyDir: {}
{{- if include "babelftp.stateFolder" .root }}
- name: state # copy of the shared state, for restarts of the container while S3 is down
  emptyDir: {}
{{- end }}
{{- if not (and .check .root.Values.tls.certificate.enabled) }}
{{- with include "babelftp.certificateSecret" .root }}
- name: tls
  secret:
    secretName: {{ . }}
    defaultMode: 0440
{{- end }}
{{- end }}
{{- range $name, $secret := .root.Values.secrets }}
- name: secret-{{ $name }}
  secret:
    {{- if and $.before $secret.data }}
    secretName: {{ $made }}
    defaultMode: 0440
    items:
      {{- range $key, $value := $secret.data }}
      - key: {{ $name }}.{{ $key }}
        path: {{ $key }}
      {{- end }}
    {{- else }}
    secretName: {{ include "babelftp.secretName" (dict "root" $.root "name" $name "secret" $secret) }}
    defaultMode: 0440
    {{- end }}
{{- end }}
{{- with .root.Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* "true" if the check runs when the objects of the release exist, for example because extraObjects creates a Secret that the pods mount. */}}
{{- define "babelftp.checkAfter" -}}
{{- $after := eq .Values.check.when "after" -}}
{{- if not .Values.check.when -}}
{{- $mounted := list .Values.existingSecret .Values.tls.existingSecret -}}
{{- range .Values.secrets -}}
{{- $mounted = append $mounted .existingSecret -}}
{{- end -}}
{{- range .Values.extraObjects -}}
{{- range tpl (kindIs "string" . | ternary . (toYaml .)) $ | splitList "\n---" -}}
{{- $object := fromYaml . -}}
{{- $names := list (dig "metadata" "name" "" $object) (dig "spec" "target" "name" "" $object) (dig "spec" "secretName" "" $object) -}}
{{- range compact $names -}}
{{- if has . $mounted -}}
{{- $after = true -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $after -}}true{{- end -}}
{{- end -}}

{{/* The part of the pod spec about where pods run, and as which user. */}}
{{- define "babelftp.placement" -}}
automountServiceAccountToken: false
# Kubernetes would add variables for every Service, and variables that begin with BABELFTP_ are settings.
enableServiceLinks: false
{{- with .Values.dnsPolicy | default (.Values.hostNetwork | ternary "ClusterFirstWithHostNet" "") }}
dnsPolicy: {{ . }}
{{- end }}
{{- with .Values.dnsConfig }}
dnsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
