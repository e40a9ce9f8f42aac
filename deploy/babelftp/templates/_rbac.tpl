{{/* The name of roles outside of the release's namespace, where other releases may have the same name. */}}
{{- define "babelftp.roleName" -}}
{{- printf "%s-%s" .Release.Namespace (include "babelftp.fullname" .) -}}
{{- end -}}

{{/* The metadata of the role of the pods and its binding. .namespace is empty for all namespaces. */}}
{{- define "babelftp.roleMetadata" -}}
name: {{ include "babelftp.roleName" .root }}
{{- with .namespace }}
namespace: {{ . }}
{{- end }}
labels:
  {{- include "babelftp.labels" .root | nindent 2 }}
{{- end -}}

{{/* The binding of a role to the service account of the pods. .name is empty for the role with babelftp.roleMetadata. */}}
{{- define "babelftp.roleBinding" }}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .namespace | empty | ternary "ClusterRoleBinding" "RoleBinding" }}
metadata:
  {{- if .name }}
  name: {{ .name }}
  labels:
    {{- include "babelftp.labels" .root | nindent 4 }}
  {{- else }}
  {{- include "babelftp.roleMetadata" . | nindent 2 }}
  {{- end }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .namespace | empty | ternary "ClusterRole" "Role" }}
  name: {{ .name | default (include "babelftp.roleName" .root) }}
subjects:
  - kind: ServiceAccount
    name: {{ include "babelftp.serviceAccountName" .root }}
    namespace: {{ .root.Release.Namespace }}
{{- end -}}

{{/* The rules for those who edit FTPTenants and FTPUsers, but not their status. */}}
{{- define "babelftp.editorRules" -}}
- apiGroups: [babelftp.io]
  resources: [ftptenants, ftpusers]
  verbs: [get, list, watch, create, update, patch, delete, deletecollection]
{{- end -}}
