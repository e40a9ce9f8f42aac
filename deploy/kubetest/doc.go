// Package kubetest checks the manifests of deploy by the rules of the API server of Kubernetes, and of the programs
// that read the rest.
//
// Its tests read quickstart.yaml, and the chart as Helm renders it with each file of values. They decode each object strictly, and
// validate it as the API server does when the object is created: with its registry strategies and validation,
// warnings included. Pods must meet the level restricted of the Pod Security Standards. Custom resources are decoded
// strictly with the types of their operators, and expressions are parsed by Prometheus.
//
// It is a module of its own, because these programs have many modules that babelftp does not need.
package kubetest
