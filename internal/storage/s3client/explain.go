package s3client

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/babelftp/babelftp/internal/base/s3error"
)

// An explanation maps error codes of S3 to a problem and advice. Errors always include the code and the message of S3,
// and advice only if the code has a single cause.
type explanation struct {
	codes   []string
	problem func(b *Bucket, err error) string // nil to report the HTTP status
	advice  func(b *Bucket, err error) string
}

// explanations lists the known codes. The first match wins. Add the codes of other servers here.
func explanations() []explanation {
	return []explanation{
		{[]string{"InvalidAccessKeyId", "XAdminUserNotFound", "InvalidToken", "InvalidTokenId", "ExpiredToken",
			"TokenRefreshRequired"}, (*Bucket).refusesCredentials, (*Bucket).adviseCredentials},
		{[]string{"SignatureDoesNotMatch"}, nil, (*Bucket).adviseSignature},
		{[]string{"NoSuchBucket"}, (*Bucket).isMissing, (*Bucket).adviseBucket},
		{[]string{"InvalidBucketName"}, nil, func(b *Bucket, _ error) string { return "correct " + b.keys.bucket }},
		{[]string{"RequestTimeTooSkewed"}, nil, func(*Bucket, error) string {
			return "set the clock of this machine or of the server"
		}},
		{[]string{"AuthorizationHeaderMalformed", "PermanentRedirect", "MovedPermanently",
			"IncorrectEndpoint", "AuthorizationQueryParametersError"}, (*Bucket).isElsewhere, (*Bucket).adviseRegion},
		// Alibaba OSS and Tencent COS, which want the bucket in the host name
		{[]string{"SecondLevelDomainForbidden", "PathStyleDomainForbidden"}, nil, func(b *Bucket, _ error) string {
			return fmt.Sprintf("set %s.path_style: false", b.keys.endpoint)
		}},
		{[]string{"AccountProblem", "NotSignedUp", "AllAccessDisabled", "UserDisable", "UserSuspended"}, nil,
			func(*Bucket, error) string { return "contact the provider of the account" }},
		{[]string{"XMinioServerNotInitialized", "ServerNotInitialized"}, nil, func(*Bucket, error) string {
			return "wait until that server has started"
		}},
		{[]string{"AccessDenied", "Forbidden", "AccessDeniedException"}, (*Bucket).isDenied, (*Bucket).adviseDenied},
	}
}

// explain turns an error of S3 into a bucketError.
func (b *Bucket) explain(err error) error {
	if foreign, ok := errors.AsType[*s3error.ForeignError](err); ok {
		return b.newError(
			err, fmt.Sprintf("%s at %s: %s", s3error.Operation(err), b.server(), foreign.Problem()), "%s", foreign.What())
	}
	status, code := s3error.Status(err), s3error.Code(err)
	if status == 0 {
		problem := fmt.Sprintf("cannot reach S3 at %s: %s", b.server(), reason(err, checkTimeout))
		return b.newError(err, problem, "%s", b.adviseNetwork(err))
	}
	if code == "" || code == "NotFound" {
		code = map[int]string{
			http.StatusNotFound: "NoSuchBucket", http.StatusMovedPermanently: "PermanentRedirect",
			http.StatusForbidden: "AccessDenied",
		}[status]
	}
	problem, advice := "", ""
	for _, e := range explanations() {
		if !slices.Contains(e.codes, code) {
			continue
		}
		if e.problem != nil {
			problem = e.problem(b, err)
		}
		advice = e.advice(b, err)
		break
	}
	if problem == "" {
		problem = fmt.Sprintf("%s returned %d for %s", b.server(), status, s3error.Operation(err))
	}
	return b.newError(err, fmt.Sprintf("%s (%s)", problem, describe(err)), "%s", advice)
}

// server names the S3 server of the bucket.
func (b *Bucket) server() string { return cmp.Or(b.account.endpoint, "AWS") }

// describe returns the code and the message of S3 or STS on one line.
func describe(err error) string {
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return fmt.Sprintf("HTTP %d", s3error.Status(err))
	}
	code, message := api.ErrorCode(), strings.Join(strings.Fields(api.ErrorMessage()), " ")
	if message == "" || message == code || message == "UnknownError" {
		return code
	}
	return code + ": " + message
}

func (b *Bucket) refusesCredentials(error) string { return b.server() + " refuses the credentials" }

func (b *Bucket) adviseCredentials(error) string {
	switch {
	case b.account.role != nil:
		return "set AWS_ENDPOINT_URL_STS to the URL of the STS of that server"
	case b.account.credentialsFromSDK:
		return "correct the credentials that the AWS SDK finds (environment, profile, IRSA, instance role)"
	}
	return fmt.Sprintf("correct %s.access_key_id and %[1]s.secret_access_key", b.keys.credentials)
}

// adviseSignature names both possible causes: a wrong secret, and a proxy that changes signed headers.
func (b *Bucket) adviseSignature(error) string {
	secret := b.keys.credentials + ".secret_access_key"
	if b.account.role != nil || b.account.credentialsFromSDK {
		secret = "the credentials"
	}
	return "compare " + secret + "; if a proxy is in front of that server, let it pass on the header Host as it is " +
		"(proxy_set_header Host $http_host for nginx)"
}

func (b *Bucket) isMissing(error) string { return "does not exist at " + b.server() }

func (b *Bucket) adviseBucket(error) string { return "create it, or correct " + b.keys.bucket }

// isElsewhere returns the problem if S3 named the region of the bucket.
func (b *Bucket) isElsewhere(err error) string {
	if regionIn(err) == "" {
		return ""
	}
	return "is in another region than " + b.Client.Options().Region
}

func (b *Bucket) adviseRegion(err error) string {
	if region := regionIn(err); region != "" {
		return fmt.Sprintf("set %s.region: %s", b.keys.region, region)
	}
	return fmt.Sprintf("compare %s.region and %s.endpoint", b.keys.region, b.keys.endpoint)
}

// regionIn returns the region of the bucket if the response contains it.
func regionIn(err error) string {
	if answer, ok := errors.AsType[*awshttp.ResponseError](err); ok && answer.HTTPResponse() != nil {
		if region := answer.HTTPResponse().Header.Get("X-Amz-Bucket-Region"); region != "" {
			return region
		}
	}
	// "the region 'us-east-1' is wrong; expecting 'eu-central-1'". versitygw uses double quotes.
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return ""
	}
	_, after, _ := strings.Cut(strings.ReplaceAll(api.ErrorMessage(), `"`, "'"), "expecting '")
	region, _, found := strings.Cut(after, "'")
	if !found || strings.ContainsFunc(region, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
	}) {
		return ""
	}
	return region
}

func (b *Bucket) isDenied(err error) string {
	who := "credentials"
	if b.account.role != nil {
		who = "role " + b.account.role.RoleARN
	}
	return fmt.Sprintf("%s does not let the %s use it: %s", b.server(), who, s3error.Operation(err))
}

// adviseDenied names the permissions that a denied request needs.
func (b *Bucket) adviseDenied(err error) string {
	denied, ok := errors.AsType[*DeniedError](err)
	if !ok {
		return ""
	}
	return fmt.Sprintf(
		"allow %s in its IAM policy; babelftp policy %s prints all that it needs", denied.Needed(), b.Tenant)
}

func (b *Bucket) adviseNetwork(err error) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok && b.account.endpoint != "" && !b.account.pathStyle &&
		strings.HasPrefix(dns.Name, b.Name+".") {
		return fmt.Sprintf("set %s.path_style: true if the server has no host name for each bucket", b.keys.endpoint)
	}
	return networkAdvice(err, b.keys.endpoint+".endpoint")
}

// networkAdvice says what to change after a network error. key is the configuration key with the URL of the server.
// The advice is empty if the error has several possible causes.
func networkAdvice(err error, key string) string {
	invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](err)
	dns, isDNS := errors.AsType[*net.DNSError](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, wrongHost := errors.AsType[x509.HostnameError](err)
	_, noTLS := errors.AsType[tls.RecordHeaderError](err)
	_, byProxy := errors.AsType[*proxyError](err)
	op, isOp := errors.AsType[*net.OpError](err)
	switch {
	case byProxy, isOp && op.Op == "proxyconnect":
		return "correct HTTPS_PROXY, or add the host of that server to NO_PROXY"
	case unknown:
		return "set AWS_CA_BUNDLE to a file with the certificate of the authority that signed the server's certificate"
	case wrongHost:
		return "use a host name of the certificate in " + key
	case isInvalid && invalid.Reason == x509.Expired:
		return "renew the certificate of that server, or set the clock of this machine"
	case noTLS, errors.Is(err, http.ErrSchemeMismatch):
		return "use http:// in " + key + ": the port does not speak TLS"
	case isTLSResponse(err):
		return "use https:// in " + key + ": the port speaks TLS"
	case isDNS && dns.IsNotFound:
		return "correct the host name in " + key + ", or the DNS of this machine"
	case isDNS:
		return "check the DNS of this machine"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "start that server, or correct " + key
	}
	return ""
}

// isTLSResponse reports whether a server responded to plain HTTP with a TLS alert (RFC 8446 section 5.1). net/http has
// no error type for this.
func isTLSResponse(err error) bool {
	return strings.Contains(err.Error(), `malformed HTTP response "\x15\x03`)
}

// A proxyError reports that a proxy refused CONNECT.
type proxyError struct {
	proxy  string
	status string
}

func (e *proxyError) Error() string {
	return "the proxy " + e.proxy + " returned " + e.status + " for CONNECT"
}

// checkConnect implements [http.Transport.OnProxyConnectResponse].
func checkConnect(_ context.Context, proxy *url.URL, _ *http.Request, response *http.Response) error {
	if response.StatusCode == http.StatusOK {
		return nil
	}
	return &proxyError{proxy: proxy.Redacted(), status: response.Status}
}

// reason returns the innermost meaningful part of a network error, on one line.
func reason(err error, timeout time.Duration) string {
	if byProxy, ok := errors.AsType[*proxyError](err); ok {
		return byProxy.Error()
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return dns.Error()
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Error()
	}
	if invalid, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return invalid.Error()
	}
	if unknown, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return unknown.Error()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "no response within " + timeout.String()
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err // drop the URL and the prefix of the SDK
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}
