// Package kubetest checks what no API server of Kubernetes looks at in the manifests of deploy. Custom resources must
// decode as the types of their operators, and pods meet the level restricted of the Pod Security Standards. Prometheus's
// own engine evaluates the alerts. TestKube of deploy creates and changes all objects on an API server.
//
// It is a module of its own, because these programs have many modules that babelftp does not need.
package kubetest
