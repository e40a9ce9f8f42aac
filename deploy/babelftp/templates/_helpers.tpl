{{- define "babelftp.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* 52 characters leave room for a suffix: a StatefulSet's pods carry a label of its name and a hash of 10. */}}
{{- define "babelftp.fullname" -}}
{{- $name := include "babelftp.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "babelftp.selectorLabels" -}}
app.kubernetes.io/name: {{ include "babelftp.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "babelftp.labels" -}}
{{ include "babelftp.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "babelftp.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "babelftp.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{- define "babelftp.image" -}}
{{- if not .Values.image.repository -}}
{{- fail "image.repository is empty: build the image with the Dockerfile, push it to a registry of yours, and name it" -}}
{{- end -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* The name of the Secret of an entry of .Values.secrets. */}}
{{- define "babelftp.secretName" -}}
{{- .secret.existingSecret | default (printf "%s-%s" (include "babelftp.fullname" .root) .name) -}}
{{- end -}}

{{/* The ports inside the container, above 1023 because the process has no capability to bind those below. */}}
{{- define "babelftp.containerPorts" -}}
ftp: 2121
ftps: 9990
metrics: 9121
{{- end -}}

{{/* The passive ports, one word each. */}}
{{- define "babelftp.passivePorts" -}}
{{- $range := toString .Values.passive.ports -}}
{{- if not (regexMatch "^[1-9][0-9]{0,4}-[1-9][0-9]{0,4}$" $range) -}}
{{- fail (printf "passive.ports: %q is no range of ports: write it like 30000-30019" $range) -}}
{{- end -}}
{{- $first := splitList "-" $range | first | atoi -}}
{{- $last := splitList "-" $range | last | atoi -}}
{{- if gt $first $last -}}
{{- fail (printf "passive.ports: %s ends before it begins: write %d-%d" $range $last $first) -}}
{{- end -}}
{{- if or (lt $first 1024) (gt $last 65535) -}}
{{- fail (printf "passive.ports: %s is not between 1024 and 65535" $range) -}}
{{- end -}}
{{- $count := int (add 1 (sub $last $first)) -}}
{{- if gt $count 100 -}}
{{- fail (printf "passive.ports: %s is %d ports, and 100 is the most: clients at different addresses share ports, so write twice as many as connections that one address opens at the same moment" $range $count) -}}
{{- end -}}
{{- range $name, $port := include "babelftp.containerPorts" . | fromYaml -}}
{{- if and (le $first (int $port)) (le (int $port) $last) -}}
{{- fail (printf "passive.ports: %s contains port %d, where the container listens for %s" $range (int $port) $name) -}}
{{- end -}}
{{- end -}}
{{- untilStep $first (int (add1 $last)) 1 | join " " -}}
{{- end -}}

{{/* babelftp.yaml: .Values.config and what the chart sets. */}}
{{- define "babelftp.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $tls := $config.tls | default dict -}}
{{- $owned := dict
  "listen" "service.ports.ftp"
  "metrics_listen" "metrics"
  "drain_timeout" "drainTimeoutSeconds"
  "passive" "passive.ports and passive.publicAddress" -}}
{{- range $key, $value := $owned -}}
{{- if hasKey $config $key -}}
{{- fail (printf "config.%s is set by the chart: use %s" $key $value) -}}
{{- end -}}
{{- end -}}
{{- $ownedTLS := dict "cert_file" "tls.existingSecret" "key_file" "tls.existingSecret" "implicit_listen" "tls.implicit" -}}
{{- range $key, $value := $ownedTLS -}}
{{- if hasKey $tls $key -}}
{{- fail (printf "config.tls.%s is set by the chart: use %s" $key $value) -}}
{{- end -}}
{{- end -}}
{{- if not $config.tenants -}}
{{- fail "config.tenants is empty: write one tenant at least, with its bucket and users" -}}
{{- end -}}
{{- $ports := include "babelftp.containerPorts" . | fromYaml -}}
{{- $passivePorts := include "babelftp.passivePorts" . | splitList " " -}}
{{- $_ := set $config "listen" (printf ":%d" (int $ports.ftp)) -}}
{{- $_ := set $config "metrics_listen" (printf ":%d" (int $ports.metrics)) -}}
{{- $_ := set $config "admin_socket" "/run/babelftp/admin/admin.sock" -}}
{{- $_ := set $config "drain_timeout" (printf "%ds" (int .Values.drainTimeoutSeconds)) -}}
{{- $passive := dict "ports" (printf "%s-%s" (first $passivePorts) (last $passivePorts)) -}}
{{- with .Values.passive.publicAddress -}}
{{- $_ := set $passive "public_address" . -}}
{{- end -}}
{{- $_ := set $config "passive" $passive -}}
{{- if .Values.tls.existingSecret -}}
{{- $_ := set $tls "cert_file" "/run/babelftp/tls/tls.crt" -}}
{{- $_ := set $tls "key_file" "/run/babelftp/tls/tls.key" -}}
{{- if .Values.tls.implicit -}}
{{- $_ := set $tls "implicit_listen" (printf ":%d" (int $ports.ftps)) -}}
{{- end -}}
{{- else if .Values.tls.implicit -}}
{{- fail "tls.implicit needs a certificate: name its Secret in tls.existingSecret" -}}
{{- else if $tls.required -}}
{{- fail "config.tls.required needs a certificate: name its Secret in tls.existingSecret" -}}
{{- end -}}
{{- if $tls -}}
{{- $_ := set $config "tls" $tls -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}
