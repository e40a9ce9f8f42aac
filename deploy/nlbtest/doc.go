// Package nlbtest checks the Service of the chart with the AWS Load Balancer Controller, which creates the
// Network Load Balancer in docs/guides/kubernetes.md.
//
// The test runs the controller's own code to build the load balancer for the golden rendering of
// aws-values.yaml, without an AWS account. It compares the result with testdata/nlb.yaml and with the default
// quotas of AWS. The controller ignores unknown annotations, so the test also checks the annotations against
// the controller's list.
//
// The package is a separate module, because the controller needs other versions of Kubernetes than kubetest.
// Building it takes minutes.
package nlbtest
