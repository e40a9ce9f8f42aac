{{- define "babelftp.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* 52 characters leave room for a suffix: the pods of a StatefulSet have a label with its name and a hash of ten characters. */}}
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

{{/* The labels that select the pods of the server. They must never change, because a StatefulSet does not allow it. */}}
{{- define "babelftp.selectorLabels" -}}
app.kubernetes.io/name: {{ include "babelftp.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: server
{{- end -}}

{{/* The selector for kubectl. */}}
{{- define "babelftp.selector" -}}
app.kubernetes.io/instance={{ .Release.Name }},app.kubernetes.io/component=server
{{- end -}}

{{/* The labels of objects. Pods do not have them, because a new version of the chart changes them and would replace each pod. */}}
{{- define "babelftp.labels" -}}
{{- with .Values.commonLabels }}
{{- toYaml . }}
{{ end -}}
app.kubernetes.io/name: {{ include "babelftp.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* The labels for the pods of a hook. .root is the chart, and .component is the purpose of the pod. */}}
{{- define "babelftp.hookLabels" -}}
{{- with .root.Values.commonLabels }}
{{- toYaml . }}
{{ end -}}
app.kubernetes.io/name: {{ include "babelftp.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
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
{{- fail "image.repository is empty: name the image, for example one that you built with the Dockerfile and pushed to a registry" -}}
{{- end -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* The name of the Secret for an entry of .Values.secrets. */}}
{{- define "babelftp.secretName" -}}
{{- .secret.existingSecret | default (printf "%s-%s" (include "babelftp.fullname" .root) .name) -}}
{{- end -}}

{{/* The name of the Secret with the certificate of the server, or empty without TLS. */}}
{{- define "babelftp.certificateSecret" -}}
{{- $tls := .Values.tls -}}
{{- if and $tls.existingSecret $tls.certificate.enabled -}}
{{- fail "tls.existingSecret conflicts with tls.certificate.enabled: remove one of them" -}}
{{- end -}}
{{- if $tls.certificate.enabled -}}
{{- if not $tls.certificate.issuerRef.name -}}
{{- fail "tls.certificate.issuerRef.name is empty: name the Issuer or ClusterIssuer of cert-manager" -}}
{{- end -}}
{{- if not $tls.certificate.dnsNames -}}
{{- fail "tls.certificate.dnsNames is empty: list the names that clients connect to" -}}
{{- end -}}
{{- printf "%s-tls" (include "babelftp.fullname" .) -}}
{{- else -}}
{{- $tls.existingSecret -}}
{{- end -}}
{{- end -}}

{{/* The ports inside the container, above 1023 because the process does not have the capability to bind lower ports. */}}
{{- define "babelftp.containerPorts" -}}
ftp: 2121
ftps: 9990
metrics: 9121
admin: 9122
{{- end -}}

{{/* The port of an address such as :8080 or 10.0.0.1:8080. */}}
{{- define "babelftp.portOf" -}}
{{- regexFind "[0-9]+$" (toString .) -}}
{{- end -}}

{{/* The port of config.admin.listen, or empty if no other pod can reach it. */}}
{{- define "babelftp.adminPort" -}}
{{- $listen := dig "listen" "" (.Values.config.admin | default dict) -}}
{{- if not (regexMatch "^(127[.]|localhost:|\\[::1\\]:|$)" $listen) -}}
{{- include "babelftp.portOf" $listen -}}
{{- end -}}
{{- end -}}

{{/* The ports for ACME challenges, of the Service and of the container. */}}
{{- define "babelftp.acmePorts" -}}
{{- $acme := dig "acme" dict (.Values.config.tls | default dict) | default dict -}}
{{- range $name, $port := dict "http" 80 "tls" 443 -}}
{{- with get $acme (printf "%s_listen" $name) -}}
{{- $target := include "babelftp.portOf" . | int -}}
{{- if lt $target 1024 -}}
{{- fail (printf "config.tls.acme.%s_listen: %s is below port 1024, which the pod may not open: write \":%d\"; the Service forwards port %d to it" $name . (add 8000 $port) $port) -}}
{{- end }}
{{ $name }}: {port: {{ $port }}, target: {{ $target }}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The passive ports, separated by spaces. */}}
{{- define "babelftp.passivePorts" -}}
{{- $range := toString .Values.passive.ports -}}
{{- if not (regexMatch "^[1-9][0-9]{0,4}-[1-9][0-9]{0,4}$" $range) -}}
{{- fail (printf "passive.ports: %q is not a range of ports: write it like 30000-30019" $range) -}}
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
{{- fail (printf "passive.ports: %s has %d ports, more than the maximum of 100: clients at different addresses share ports, so each pod needs only twice as many ports as the data connections that one address opens at the same moment" $range $count) -}}
{{- end -}}
{{- range $name, $port := include "babelftp.containerPorts" . | fromYaml -}}
{{- if and (le $first (int $port)) (le (int $port) $last) -}}
{{- fail (printf "passive.ports: %s contains port %d, where the container listens for %s" $range (int $port) $name) -}}
{{- end -}}
{{- end -}}
{{- untilStep $first (int (add1 $last)) 1 | join " " -}}
{{- end -}}

{{/* The parts of the configuration that need a restart, except those in environment variables of the pod. */}}
{{- define "babelftp.fixed" -}}
{{- $config := .Values.config -}}
{{- $fixed := pick $config "memory" "abandoned_uploads" "audit" "proxy_protocol" "state" -}}
{{- $_ := set $fixed "log" (pick ($config.log | default dict) "format") -}}
{{- $_ := set $fixed "admin" (pick ($config.admin | default dict) "listen") -}}
{{- $_ := set $fixed "acme" (omit (dig "acme" dict ($config.tls | default dict) | default dict) "hosts") -}}
{{- toYaml $fixed -}}
{{- end -}}

{{/* "true" if there can be several pods. */}}
{{- define "babelftp.cluster" -}}
{{- $max := int .Values.maxReplicas -}}
{{- $least := .Values.autoscaling.enabled | ternary .Values.autoscaling.minReplicas .Values.replicas | int -}}
{{- if gt $least $max -}}
{{- fail (printf "maxReplicas: %d is less than the number of replicas, %d: raise it, with room to grow, because each change moves the ports of all pods" $max $least) -}}
{{- end -}}
{{- if and .Values.hostNetwork (gt (.Values.autoscaling.enabled | ternary .Values.maxReplicas .Values.replicas | int) 1) -}}
{{- fail "hostNetwork needs replicas: 1 and no autoscaling: several pods trust the addresses of each other, which would be the addresses of the nodes; for several pods use service.type: LoadBalancer without hostNetwork" -}}
{{- end -}}
{{- $ports := len (include "babelftp.passivePorts" . | splitList " ") -}}
{{- if gt $max $ports -}}
{{- fail (printf "passive.ports: %d ports are too few for %d pods (maxReplicas): each needs its own" $ports $max) -}}
{{- end -}}
{{- if gt $max 1 -}}true{{- end -}}
{{- end -}}

{{/* The number of bytes in a size as in Kubernetes (768Mi) or in the configuration (256MiB). Empty for other forms, such as 0.5Gi. */}}
{{- define "babelftp.bytes" -}}
{{- $text := toString . | trimSuffix "B" -}}
{{- if kindIs "float64" . -}}
{{- $text = toString (int64 .) -}}
{{- end -}}
{{- if regexMatch "^[0-9]+([kKMGT]i?)?$" $text -}}
{{- $units := dict "" 1 "k" 1000 "K" 1000 "Ki" 1024 "M" 1000000 "Mi" 1048576 "G" 1000000000 "Gi" 1073741824 "T" 1000000000000 "Ti" 1099511627776 -}}
{{- mul (regexFind "^[0-9]+" $text | int64) (get $units (regexReplaceAll "^[0-9]+" $text "") | int64) -}}
{{- end -}}
{{- end -}}

{{/* GOMEMLIMIT: 90 % of the container's limit minus config.memory, which the Go runtime does not count. Empty if one of them is unknown. */}}
{{- define "babelftp.goMemoryLimit" -}}
{{- $limit := include "babelftp.bytes" (dig "limits" "memory" "" (.Values.resources | default dict)) -}}
{{- $memory := include "babelftp.bytes" (.Values.config.memory | default "256MiB") -}}
{{- if and $limit $memory (not .Values.existingSecret) -}}
{{- $rest := sub (div (mul 9 (int64 $limit)) 10) (int64 $memory) -}}
{{- if lt $rest 67108864 -}}
{{- fail (printf "resources.limits.memory: %s leaves less than 64Mi beside config.memory (%s): raise the limit or lower config.memory" (toString .Values.resources.limits.memory) (toString (.Values.config.memory | default "256MiB"))) -}}
{{- end -}}
{{- $rest -}}
{{- end -}}
{{- end -}}

{{/* The resources of a pod. By default, it requests the memory that docs/guides/sizing-and-limits.md calculates: 50 MiB for the process, 64 MiB for
1,000 TLS sessions with 200 active transfers, and 22/16 of config.memory. */}}
{{- define "babelftp.resources" -}}
{{- $resources := deepCopy (.Values.resources | default dict) -}}
{{- $memory := include "babelftp.bytes" (.Values.config.memory | default "256MiB") -}}
{{- if and $memory (not (dig "requests" "memory" "" $resources)) -}}
{{- $request := add (mul 114 1048576) (div (mul 22 (int64 $memory)) 16) -}}
{{- $limit := include "babelftp.bytes" (dig "limits" "memory" "" $resources) -}}
{{- if $limit -}}
{{- $request = min $request (int64 $limit) -}}
{{- end -}}
{{- $_ := set $resources "requests" (merge (dict "memory" (printf "%dMi" (div $request 1048576))) ($resources.requests | default dict)) -}}
{{- end -}}
{{- toYaml $resources -}}
{{- end -}}

{{/* The content of babelftp.yaml: .Values.config, which must not contain keys that the chart sets. */}}
{{- define "babelftp.config" -}}
{{- $config := .Values.config -}}
{{- $owned := dict
  "listen" "service.ports.ftp"
  "metrics_listen" "metrics"
  "admin_socket" "kubectl exec POD -- babelftp sessions"
  "drain_timeout" "drainTimeoutSeconds"
  "cluster" "replicas and maxReplicas" -}}
{{- range $key, $value := $owned -}}
{{- if hasKey $config $key -}}
{{- fail (printf "config.%s is set by the chart: use %s" $key $value) -}}
{{- end -}}
{{- end -}}
{{- if .Values.admin.enabled -}}
{{- range $key := list "listen" "users" "users_file" "tls" -}}
{{- if hasKey ($config.admin | default dict) $key -}}
{{- fail (printf "config.admin.%s conflicts with admin.enabled: remove one of them" $key) -}}
{{- end -}}
{{- end -}}
{{- if not (or (hasKey .Values.secrets "admin") (dig "oidc" "" ($config.admin | default dict))) -}}
{{- fail "admin.enabled needs administrators: name a Secret with the key users in secrets.admin.existingSecret, or set config.admin.oidc" -}}
{{- end -}}
{{- end -}}
{{- $tls := $config.tls | default dict -}}
{{- $ownedTLS := dict "cert_file" "tls.existingSecret" "key_file" "tls.existingSecret" "implicit_listen" "tls.implicit" -}}
{{- range $key, $value := $ownedTLS -}}
{{- if hasKey $tls $key -}}
{{- fail (printf "config.tls.%s is set by the chart: use %s" $key $value) -}}
{{- end -}}
{{- end -}}
{{- range $key, $value := dict "ports" "passive.ports" "public_address" "passive.publicAddress" -}}
{{- if hasKey ($config.passive | default dict) $key -}}
{{- fail (printf "config.passive.%s is set by the chart: use %s" $key $value) -}}
{{- end -}}
{{- end -}}
{{- if hasKey $config "kubernetes" -}}
{{- fail "config.kubernetes is set by the chart: use customResources.namespaces" -}}
{{- end -}}
{{- if not (or $config.tenants $config.tenants_dir .Values.customResources.enabled) -}}
{{- fail "config.tenants is empty: add a tenant with its bucket and users, or set config.tenants_dir, customResources.enabled or existingSecret" -}}
{{- end -}}
{{- if and $tls.required (not $tls.acme) (not (include "babelftp.certificateSecret" .)) -}}
{{- fail "config.tls.required needs a certificate: name its Secret in tls.existingSecret, or set tls.certificate.enabled or config.tls.acme" -}}
{{- end -}}
{{- $open := not (or $tls.acme (include "babelftp.certificateSecret" .) (eq (toString $tls.required) "false")) -}}
{{- if and $open (ne .Values.service.type "ClusterIP") -}}
{{- fail (printf "service.type: %s without a certificate exposes passwords and files to the network: set tls.existingSecret, tls.certificate.enabled or config.tls.acme, or set config.tls.required: false to allow it" .Values.service.type) -}}
{{- end -}}
{{- if and $tls.acme (or $tls.acme.folder (not $config.state)) -}}
{{- $folder := $tls.acme.folder | default "acme" -}}
{{- if not (isAbs $folder) -}}
{{- $folder = printf "/var/lib/babelftp/%s" $folder | clean -}}
{{- end -}}
{{- $mounted := false -}}
{{- range .Values.extraVolumeMounts -}}
{{- if or (eq $folder .mountPath) (hasPrefix (printf "%s/" .mountPath) $folder) -}}
{{- $mounted = true -}}
{{- end -}}
{{- end -}}
{{- if not $mounted -}}
{{- fail (printf "config.tls.acme needs a persistent volume that all pods share: mount one at %s with extraVolumes and extraVolumeMounts, share the certificates in a bucket with config.state, or let cert-manager obtain the certificate with tls.certificate" $folder) -}}
{{- end -}}
{{- end -}}
{{- if .Values.customResources.enabled -}}
{{- $namespaces := dict -}}
{{- range $name, $namespace := .Values.customResources.namespaces -}}
{{- $_ := set $namespaces $name ($namespace | default dict) -}}
{{- end -}}
{{- $kubernetes := dict "folder" (include "babelftp.kubernetesFolder" .) "namespaces" $namespaces -}}
{{- $config = merge (dict "kubernetes" $kubernetes) $config -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* The folder for Secrets that custom resources refer to. */}}
{{- define "babelftp.kubernetesFolder" -}}
/run/babelftp/kubernetes
{{- end -}}

{{/* The folder with the copy of the shared state. It is empty without config.state, and if extraVolumeMounts has it. */}}
{{- define "babelftp.stateFolder" -}}
{{- with .Values.config.state -}}
{{- $folder := .folder | default "state" -}}
{{- if not (isAbs $folder) -}}
{{- $folder = printf "/var/lib/babelftp/%s" $folder | clean -}}
{{- end -}}
{{- range $.Values.extraVolumeMounts -}}
{{- if or (eq $folder .mountPath) (hasPrefix (printf "%s/" .mountPath) $folder) -}}
{{- $folder = "" -}}
{{- end -}}
{{- end -}}
{{- $folder -}}
{{- end -}}
{{- end -}}

{{/* The part of the spec that all Services for clients have in common. */}}
{{- define "babelftp.serviceSpec" -}}
type: {{ .Values.service.type }}
{{- with .Values.service.ipFamilyPolicy }}
ipFamilyPolicy: {{ . }}
{{- end }}
{{- with .Values.service.ipFamilies }}
ipFamilies:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if ne .Values.service.type "ClusterIP" }}
externalTrafficPolicy: {{ .Values.service.externalTrafficPolicy }}
{{- end }}
{{- if eq .Values.service.type "LoadBalancer" }}
allocateLoadBalancerNodePorts: {{ .Values.service.allocateLoadBalancerNodePorts }}
{{- with .Values.service.loadBalancerIP }}
loadBalancerIP: {{ . | quote }}
{{- end }}
{{- with .Values.service.loadBalancerClass }}
loadBalancerClass: {{ . | quote }}
{{- end }}
{{- with .Values.service.loadBalancerSourceRanges }}
loadBalancerSourceRanges:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The labels and annotations of these Services. .annotations are additional ones for one Service. */}}
{{- define "babelftp.serviceMetadata" -}}
labels:
  {{- include "babelftp.labels" .root | nindent 2 }}
  {{- with .root.Values.service.labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge .annotations (.root.Values.service.annotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The job label of the metrics, which the alerts and the dashboard use. A PodMonitor sets it by itself. */}}
{{- define "babelftp.job" -}}
{{- printf "%s/%s" .Release.Namespace (include "babelftp.fullname" .) -}}
{{- end -}}

{{/* The metadata and the selector of a PodMonitor or ServiceMonitor. Only the headless Service has these labels. */}}
{{- define "babelftp.monitor" }}
metadata:
  name: {{ include "babelftp.fullname" .root }}
  labels:
    {{- include "babelftp.labels" .root | nindent 4 }}
    {{- with .monitor.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  selector:
    matchLabels:
      {{- include "babelftp.selectorLabels" .root | nindent 6 }}
{{- end -}}

{{/* The endpoint from which a monitor reads the metrics, without relabelings. */}}
{{- define "babelftp.metricsEndpoint" -}}
port: metrics
path: /metrics
interval: {{ .interval }}
{{- with .scrapeTimeout }}
scrapeTimeout: {{ . }}
{{- end }}
{{- with .metricRelabelings }}
metricRelabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Fails if the network policy blocks the health checks of a Network Load Balancer, which come from its own addresses. .root is the chart, and
.check is the port of the health check in the annotation. */}}
{{- define "babelftp.healthChecksPass" -}}
{{- $policy := .root.Values.networkPolicy -}}
{{- $metrics := eq (toString .check) (toString (include "babelftp.containerPorts" .root | fromYaml).metrics) -}}
{{- $list := ternary "metrics" "clients" $metrics -}}
{{- $listed := get $policy $list | default list -}}
{{- $peers := concat $listed ($policy.loadBalancers | default list) -}}
{{- $open := empty $listed -}}
{{- range $policy.ingress -}}
{{- $peers = concat $peers (.from | default list) -}}
{{- $open = or $open (empty .from) -}}
{{- end -}}
{{- range $peers -}}
{{- $open = or $open (hasKey . "ipBlock") -}}
{{- end -}}
{{- if not $open -}}
{{- fail (printf "networkPolicy.loadBalancers is empty, and networkPolicy.%s allows no addresses: the load balancer checks the pods from its subnets, and would consider all of them unhealthy: list these subnets, such as [{ipBlock: {cidr: 192.168.0.0/19}}]" $list) -}}
{{- end -}}
{{- end -}}
