// Package kubetest checks manifests in ways that the Kubernetes API server does not. Custom resources must
// decode as the types of their operators, pods must meet the level "restricted" of the Pod Security
// Standards, the engine of Prometheus evaluates the alerts, and the code of the API server validates the
// definitions of FTPTenant and FTPUser. TestKube in deploy creates and changes all objects on an API server.
//
// The package is a separate module because of its many dependencies.
package kubetest
