package s3client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"
	"github.com/aws/aws-sdk-go-v2/credentials/logincreds"
	"github.com/aws/aws-sdk-go-v2/credentials/processcreds"
	"github.com/aws/aws-sdk-go-v2/credentials/ssocreds"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/smithy-go"

	"github.com/babelftp/babelftp/internal/base/s3error"
)

// noCredentialsAdvice is the advice if no provider of credentials is configured. %s is a section of the configuration.
const noCredentialsAdvice = "set %s.access_key_id and its secret, or give the process credentials that the AWS SDK " +
	"finds (environment, profile, IRSA, instance role)"

// A provider is one way for the SDK to get credentials. The SDK uses the first provider that its environment and files
// configure, and tries no others.
type provider struct {
	name   string
	kind   aws.CredentialsProvider // nil pointer of the provider's type
	advice func(err error) string
}

func fixed(advice string) func(error) string { return func(error) string { return advice } }

// providers lists the providers that send a request or run a program. Keys in the environment or in a file need no
// provider.
func providers() []provider {
	return []provider{
		{"IRSA (AssumeRoleWithWebIdentity)", (*stscreds.WebIdentityRoleProvider)(nil), adviseWebIdentity},
		{"EKS Pod Identity or the container's role", (*endpointcreds.Provider)(nil), adviseContainer},
		{"SSO of the AWS profile", (*ssocreds.Provider)(nil), fixed("run aws sso login for that profile")},
		{"the login of the AWS profile", (*logincreds.Provider)(nil), fixed("run aws login for that profile")},
		{"credential_process of the AWS profile", (*processcreds.Provider)(nil), adviseProcess},
		{"the role of the AWS profile (AssumeRole)", (*stscreds.AssumeRoleProvider)(nil), adviseAssumedRole},
		{instanceRole, (*ec2rolecreds.Provider)(nil), adviseInstance},
	}
}

// instanceRole is the provider that the SDK tries if nothing is configured.
const instanceRole = "the instance role (IMDS)"

// named adds the name of the provider that the SDK chose to the errors of credentials.
func named(credentials, found aws.CredentialsProvider) aws.CredentialsProvider {
	for _, p := range providers() {
		if aws.IsCredentialsProvider(found, p.kind) {
			return &namedProvider{credentials, p}
		}
	}
	return credentials
}

type namedProvider struct {
	aws.CredentialsProvider
	provider provider
}

// Retrieve implements [aws.CredentialsProvider].
func (n *namedProvider) Retrieve(ctx context.Context) (aws.Credentials, error) {
	c, err := n.CredentialsProvider.Retrieve(ctx)
	if err != nil {
		err = &credentialsError{n.provider, err}
	}
	return c, err
}

// A credentialsError names the provider that failed to return credentials, and the cause.
type credentialsError struct {
	provider provider
	cause    error
}

func (e *credentialsError) Error() string { return e.provider.name + ": " + e.cause.Error() }
func (e *credentialsError) Unwrap() error { return e.cause }

// unconfigured reports whether no provider is configured at all: the SDK fell back to the instance role, and the
// machine has none.
func (e *credentialsError) unconfigured() bool {
	status := s3error.Status(e.cause)
	return e.provider.name == instanceRole && (status == 0 || status == http.StatusNotFound)
}

// explainCredentials says why there are no credentials, and what to do. section is the section of the configuration in
// which the operator can set keys.
func explainCredentials(err error, section string) (problem, advice string) {
	failed, ok := errors.AsType[*credentialsError](err)
	switch {
	case !ok:
		return "no credentials for S3: " + credentialsReason(err), ""
	case failed.unconfigured():
		return fmt.Sprintf("no credentials for S3 were found (%s: %s)", failed.provider.name, credentialsReason(failed.cause)),
			fmt.Sprintf(noCredentialsAdvice, section)
	}
	return fmt.Sprintf("no credentials for S3 from %s: %s", failed.provider.name, credentialsReason(failed.cause)),
		failed.provider.advice(failed.cause)
}

// credentialsReason returns the error of a provider on one line, with the code and the message of the server that the
// provider called.
func credentialsReason(err error) string {
	operation, asked := errors.AsType[*smithy.OperationError](err)
	api, answered := errors.AsType[smithy.APIError](err)
	switch {
	case answered && asked:
		return fmt.Sprintf("%s: %s (HTTP %d)", operation.OperationName, describe(api), s3error.Status(err))
	case answered:
		return describe(api)
	case s3error.Status(err) == 0 && asked:
		return operation.OperationName + ": " + reason(operation.Err, checkTimeout)
	}
	text := strings.Join(strings.Fields(err.Error()), " ")
	return strings.ReplaceAll(text, "failed to refresh cached credentials, ", "")
}

func adviseWebIdentity(err error) string {
	role, file := os.Getenv("AWS_ROLE_ARN"), os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE")
	switch {
	case !isReadable(file):
		return "mount the token of the service account, or correct AWS_WEB_IDENTITY_TOKEN_FILE"
	case s3error.HasCode(err, "AccessDenied"):
		return "allow sts:AssumeRoleWithWebIdentity to this service account in the trust policy of the role " + role
	case s3error.HasCode(err, "ExpiredTokenException", "ExpiredToken"):
		return "have the token in " + file + " renewed, and check the clock"
	case s3error.HasCode(err, "InvalidIdentityToken", "IDPRejectedClaim"):
		return "compare the issuer and the audience of the token with the identity provider in IAM"
	case s3error.HasCode(err, "ValidationError"):
		return "correct AWS_ROLE_ARN (" + role + ")"
	}
	return networkAdvice(err, "AWS_ENDPOINT_URL_STS")
}

// isReadable reports whether a file can be opened, or the name is empty. The errors of the SDK do not say whether the
// file is the problem.
func isReadable(file string) bool {
	if file == "" {
		return true
	}
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}

func adviseContainer(err error) string {
	switch {
	case !isReadable(os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")):
		return "mount the token of the service account, or correct AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"
	case s3error.Status(err) == 0 && s3error.Code(err) == "":
		return "start the agent, or correct AWS_CONTAINER_CREDENTIALS_FULL_URI"
	}
	return "check the association of the service account with a role, and the trust policy of the role"
}

func adviseProcess(err error) string {
	if errors.Is(err, exec.ErrNotFound) {
		return "install that program, or correct credential_process"
	}
	return ""
}

func adviseAssumedRole(err error) string {
	if s3error.HasCode(err, "AccessDenied") {
		return "allow sts:AssumeRole in the trust policy of the role and to the credentials that assume it"
	}
	return networkAdvice(err, "AWS_ENDPOINT_URL_STS")
}

func adviseInstance(error) string { return "check the role of the instance, and its metadata service" }
