// Package kubernetes reads tenants and users that are custom resources of Kubernetes, and writes their status.
//
// A [Source] follows the FTPTenants and FTPUsers of the watched namespaces, and the Secrets and ConfigMaps that they
// refer to. It knows nothing about their content: package config turns resources into a configuration, and package
// server applies it. If the API server is not available, the Source keeps what it knows, and after a restart of the
// container it starts from a copy in a file.
//
// This package needs k8s.io/client-go, so only babelftp-kubernetes imports it.
package kubernetes
