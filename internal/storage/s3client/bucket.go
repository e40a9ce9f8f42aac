package s3client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/base/s3error"
	"github.com/babelftp/babelftp/internal/config"
)

const (
	// checkTimeout is how long a bucket may take to answer, the SDK's retries included.
	checkTimeout = 10 * time.Second

	// noCredentialsAdvice says what to do, for a section of the configuration.
	noCredentialsAdvice = "write %s.access_key_id and its secret, or give the process credentials that the AWS " +
		"SDK finds " +
		"(environment, profile, IRSA, instance role)"
)

var errNoRegion = errors.New("no region is known")

// A Bucket is where a tenant's objects are, or those in a folder of the tenant. Make it with [Factory.Buckets], and
// call Verify before use, or let a [Watcher] do that.
type Bucket struct {
	Tenant    string
	Folder    string // a directory of the tenant; empty for all that is in no folder
	Name      string
	Prefix    string // of the keys
	Client    *s3.Client
	Endpoint  *driver.Endpoint
	Presigner driver.Presigner // nil where the tenant has no links
	Objects   driver.Objects   // attributes of new objects
	Journal   *driver.Journal  // nil until OpenJournal
	Profile   driver.Profile   // found by Verify; the strictest before
	Folders   []*Bucket        // of the tenant, in order of their names

	account     account
	checksums   *atomic.Bool // see client
	keys        configKeys
	customerKey []byte             // of SSE-C; nil without it
	partSize    int64              // bytes of the parts of uploads, as configured
	resumable   bool               // whether users can resume uploads
	asked       bool               // the configuration asks for that
	overwrite   []config.Overwrite // the modes of those who may write, each once
	links       *s3.Client         // of the presigner
	use         Use
	watched     *watchState // nil without a Watcher
	versioned   atomic.Bool // keeps versions since Verify: see noticeVersions
}

// configKeys says where the configuration has what it says of a bucket and of its S3 server: "s3" or "tenants.acme.s3".
type configKeys struct{ bucket, endpoint, region, credentials, role string }

// A bucketError says why a tenant's bucket cannot be used, and what to do, in one line.
type bucketError struct {
	bucket  *Bucket
	problem string
	advice  string
	cause   error
}

func (e *bucketError) Error() string {
	return fmt.Sprintf("%v: %s: %s", e.bucket, e.problem, e.advice)
}

func (e *bucketError) Unwrap() error { return e.cause }

// Verify asks S3 for the bucket, finds out what its server can do, and whether that is what the configuration
// promises. What the server is goes to log. The error is one line, with what to do.
func (b *Bucket) Verify(ctx context.Context, log *slog.Logger) error {
	s := newScratch(b.Client, b.Name)
	defer func() { _ = s.clean(ctx) }() // what stays does no harm: no user sees it
	return b.verify(ctx, s, log)
}

// verify is Verify, with what it stores in a scratch.
func (b *Bucket) verify(ctx context.Context, s *scratch, log *slog.Logger) error {
	header, err := b.reach(ctx)
	if err == nil {
		err = b.findProfile(ctx, s, header, log)
	}
	if err == nil {
		err = b.checkOverwrite(ctx, s)
	}
	if err == nil {
		err = b.checkChecksum(ctx, s)
	}
	if err == nil {
		err = b.checkSupported()
	}
	return err
}

// OpenJournal opens the record of the bucket's open uploads, once Verify knows what the S3 server can do. Sweeps
// remove uploads at an age.
func (b *Bucket) OpenJournal(log *slog.Logger, age time.Duration) {
	j := driver.NewJournal(b.ObjectClient(), b.Name, b.Prefix, b.Profile, b.Objects, log.With("tenant", b.Tenant))
	j.SetAbandonedAfter(age)
	b.Journal = j
}

// Check asks S3 for the bucket.
func (b *Bucket) Check(ctx context.Context) error {
	_, err := b.reach(ctx)
	return err
}

// reach asks S3 for the bucket, and returns the header of the answer.
func (b *Bucket) reach(ctx context.Context) (header http.Header, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	// Apart from the request, whose error does not tell missing credentials from a missing server.
	if _, err := b.Client.Options().Credentials.Retrieve(ctx); err != nil {
		if refused, ok := errors.AsType[*roleError](err); ok {
			return nil, b.failed(err, refused.problem, "%s", refused.advice)
		}
		return nil, b.failed(err, "no credentials for S3 were found", noCredentialsAdvice, b.keys.credentials)
	}
	begin := time.Now()
	head, err := b.Client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &b.Name})
	if err == nil {
		b.Endpoint.Answered(time.Since(begin))
		header = responseHeader(head.ResultMetadata)
	}
	if s3error.Status(err) != 0 {
		// The answer to HEAD has no body to say why. A policy may also allow no more than to list the tenant's prefix.
		var list *s3.ListObjectsV2Output
		list, err = b.Client.ListObjectsV2(
			ctx, &s3.ListObjectsV2Input{Bucket: &b.Name, Prefix: &b.Prefix, MaxKeys: aws.Int32(1)})
		if err == nil {
			header = responseHeader(list.ResultMetadata)
		}
	}
	if err != nil {
		return nil, b.explain(err)
	}
	return header, nil
}

// regionIn is the region in which S3 says that the bucket is, empty where it does not say.
func regionIn(err error) string {
	answer, ok := errors.AsType[*awshttp.ResponseError](err)
	if !ok || answer.HTTPResponse() == nil {
		return ""
	}
	return answer.HTTPResponse().Header.Get("X-Amz-Bucket-Region")
}

// explain says what an error of S3 means.
func (b *Bucket) explain(err error) error {
	status, code, server := s3error.Status(err), s3error.Code(err), cmp.Or(b.account.endpoint, "AWS")
	foreign, isForeign := errors.AsType[*s3error.ForeignError](err)
	switch {
	case isForeign:
		return b.failed(err, foreign.Problem()+" at "+server+" for "+s3error.Operation(err), "%s", foreign.What())
	case status == 0:
		advice := "start that server, or correct %s.endpoint"
		if dns, ok := errors.AsType[*net.DNSError](err); ok && strings.HasPrefix(dns.Name, b.Name+".") &&
			b.account.endpoint != "" {
			advice = "write %s.path_style: true if the server has no host name for each bucket"
		}
		return b.failed(
			err, fmt.Sprintf("cannot reach S3 at %s: %s", server, reason(err, checkTimeout)), advice,
			b.keys.endpoint)
	case refusesCredentials(code):
		advice := fmt.Sprintf("correct %s.access_key_id and %[1]s.secret_access_key", b.keys.credentials)
		if b.account.role != nil {
			advice = "set AWS_ENDPOINT_URL_STS to the URL of the STS of that server"
		} else if b.account.credentialsFromSDK {
			advice = "correct those that the AWS SDK finds (environment, profile, IRSA, instance role)"
		}
		return b.failed(err, fmt.Sprintf("%s refuses the credentials (%s)", server, code), "%s", advice)
	case code == "NoSuchBucket" || status == http.StatusNotFound:
		return b.failed(err, "does not exist at "+server, "create it, or correct %s", b.keys.bucket)
	case code == "RequestTimeTooSkewed":
		return b.failed(err, "the clock of this machine differs from that of "+server, "set it right")
	case code == "AuthorizationHeaderMalformed" || code == "PermanentRedirect" || status == http.StatusMovedPermanently:
		problem := "is in another region than " + b.Client.Options().Region
		if region := regionIn(err); region != "" {
			return b.failed(err, problem, "write %s.region: %s", b.keys.region, region)
		}
		return b.failed(err, problem, "correct %s.region", b.keys.region)
	case code == "AccessDenied" || status == http.StatusForbidden:
		who := "credentials"
		if b.account.role != nil {
			who = "role " + b.account.role.RoleARN
		}
		return b.failed(
			err, fmt.Sprintf("%s does not let the %s use it (%s)", server, who, s3error.Operation(err)), "%s",
			b.advice(err))
	}
	return b.failed(
		err, fmt.Sprintf("%s answers %d %s to %s", server, status, code, s3error.Operation(err)),
		"look at that server's log")
}

// advice says which policy a request needs that S3 has denied.
func (b *Bucket) advice(err error) string {
	denied, ok := errors.AsType[*DeniedError](err)
	if !ok {
		return "allow it in the policy of the bucket"
	}
	return fmt.Sprintf(
		"allow %s in its IAM policy; babelftp policy %s prints all that it needs", denied.Needed(), b.Tenant)
}

// refusesCredentials reports whether S3 or STS refuses the credentials, and not the request.
func refusesCredentials(code string) bool {
	switch code {
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken":
		return true
	case "XAdminUserNotFound": // versitygw's InvalidAccessKeyId
		return true
	case "InvalidClientTokenId", "ExpiredTokenException", "UnrecognizedClientException": // of STS
		return true
	}
	return false
}

func (b *Bucket) failed(cause error, problem, advice string, args ...any) error {
	return &bucketError{bucket: b, problem: problem, advice: fmt.Sprintf(advice, args...), cause: cause}
}
