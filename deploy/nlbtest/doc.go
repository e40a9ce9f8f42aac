// Package nlbtest checks the Service of the chart by the AWS Load Balancer Controller, which makes the Network Load
// Balancer of docs/guides/kubernetes.md.
//
// Its test has the controller's own code build the load balancer for the golden rendering of aws-values.yaml, without
// an account. It compares the result with testdata/nlb.yaml, and with the default quotas of AWS. The controller
// ignores annotations that it does not know, so the test looks each annotation up in the controller's list.
//
// It is a module of its own, because the controller needs other versions of Kubernetes than kubetest. To build it
// takes minutes.
package nlbtest
