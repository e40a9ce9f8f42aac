package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/config"
)

const (
	// checkTimeout is how long a bucket may take to answer, the SDK's retries included.
	checkTimeout = 10 * time.Second
	// checksAtOnce bounds the requests that a check of all tenants has under way.
	checksAtOnce = 16
)

var errNoRegion = errors.New("no region is known")

// A bucket is where a tenant's objects are, or those in a folder of the tenant.
type bucket struct {
	tenant      string
	folder      string // a directory of the tenant; empty for all that is in no folder
	name        string
	prefix      string // of the keys
	account     s3Account
	at          sections
	client      *s3.Client
	route       *driver.Route
	presigner   driver.Presigner // nil where the tenant hands out no links
	objects     driver.Objects   // what objects are stored with
	customerKey []byte           // that they are encrypted with; nil for none that S3 does not hold
	ledger      *driver.Ledger   // of the uploads that are open; nil where none are swept
	says        config.Profile   // of its S3 server, as configured
	profile     driver.Profile   // as found out by CheckBuckets; the strictest before
	keeps       bool             // uploads that break, for the user who began them

	overwrite []config.Overwrite // what those ask for who may write, each once
	folders   []*bucket          // of the tenant, in the order of their names
}

// sections says where the configuration has what it says of a bucket and of its S3 server: "s3" or "tenants.acme.s3".
type sections struct{ bucket, endpoint, region, credentials string }

// A bucketError says why a tenant's bucket cannot be used, and what to do, in one line.
type bucketError struct {
	bucket  *bucket
	problem string
	advice  string
	cause   error
}

func (e *bucketError) Error() string {
	folder := ""
	if e.bucket.folder != "" {
		folder = fmt.Sprintf("folder %s: ", e.bucket.folder)
	}
	return fmt.Sprintf("tenant %s: %sbucket %q: %s: %s", e.bucket.tenant, folder, e.bucket.name, e.problem, e.advice)
}

func (e *bucketError) Unwrap() error { return e.cause }

// check asks S3 for the bucket.
func (b *bucket) check(ctx context.Context) error {
	_, err := b.reach(ctx)
	return err
}

// reach asks S3 for the bucket, and returns the Server header of the answer.
func (b *bucket) reach(ctx context.Context) (server string, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	// Apart from the request, whose error does not tell missing credentials from a missing server.
	if _, err := b.client.Options().Credentials.Retrieve(ctx); err != nil {
		return "", b.failed(err, "no credentials for S3 were found", "write %s.access_key_id and its secret, or give the process "+
			"credentials that the AWS SDK finds (environment, profile, IRSA, instance role)", b.at.credentials)
	}
	begin := time.Now()
	head, err := b.client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &b.name})
	if err == nil {
		b.route.Answered(time.Since(begin))
		server = serverHeader(head.ResultMetadata)
	}
	if statusOf(err) != 0 {
		// The answer to HEAD has no body to say why. A policy may also allow no more than to list the tenant's prefix.
		var list *s3.ListObjectsV2Output
		list, err = b.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: &b.prefix, MaxKeys: aws.Int32(1)})
		if err == nil {
			server = serverHeader(list.ResultMetadata)
		}
	}
	if err != nil {
		return "", b.explain(err)
	}
	return server, nil
}

// statusOf is the HTTP status of the answer that an error came with, 0 if no answer came.
func statusOf(err error) int {
	if response, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		return response.HTTPStatusCode()
	}
	return 0
}

// explain says what an error of S3 means.
func (b *bucket) explain(err error) error {
	status, server := statusOf(err), cmp.Or(b.account.endpoint, "AWS")
	code := ""
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		code = api.ErrorCode()
	}
	switch {
	case status == 0:
		advice := "start that server, or correct %s.endpoint"
		if dns, ok := errors.AsType[*net.DNSError](err); ok && strings.HasPrefix(dns.Name, b.name+".") && b.account.endpoint != "" {
			advice = "write %s.path_style: true if the server has no host name for each bucket"
		}
		return b.failed(err, fmt.Sprintf("cannot reach S3 at %s: %s", server, networkReason(err)), advice, b.at.endpoint)
	case refusesCredentials(code):
		advice := fmt.Sprintf("correct %s.access_key_id and %[1]s.secret_access_key", b.at.credentials)
		if b.account.credentialsFromSDK {
			advice = "correct those that the AWS SDK finds (environment, profile, IRSA, instance role)"
		}
		return b.failed(err, fmt.Sprintf("%s refuses the credentials (%s)", server, code), "%s", advice)
	case code == "NoSuchBucket" || status == http.StatusNotFound:
		return b.failed(err, "does not exist at "+server, "create it, or correct %s", b.at.bucket)
	case code == "RequestTimeTooSkewed":
		return b.failed(err, "the clock of this machine differs from that of "+server, "set it right")
	case code == "AuthorizationHeaderMalformed" || code == "PermanentRedirect" || status == http.StatusMovedPermanently:
		return b.failed(err, "is in another region than "+b.client.Options().Region, "correct %s.region", b.at.region)
	case code == "AccessDenied" || status == http.StatusForbidden:
		return b.failed(err, server+" does not let the credentials use it", "allow them s3:ListBucket, s3:GetObject, s3:PutObject and "+
			"s3:DeleteObject on it")
	}
	return b.failed(err, fmt.Sprintf("%s answers %d %s", server, status, code), "look at that server's log")
}

// refusesCredentials reports whether an error code of S3 is about who asks, not what for.
func refusesCredentials(code string) bool {
	switch code {
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", "ExpiredToken":
		return true
	case "XAdminUserNotFound": // versitygw's InvalidAccessKeyId
		return true
	}
	return false
}

func (b *bucket) failed(cause error, problem, advice string, args ...any) error {
	return &bucketError{bucket: b, problem: problem, advice: fmt.Sprintf(advice, args...), cause: cause}
}

// networkReason is the innermost part of an error of the network that says something, on one line.
func networkReason(err error) string {
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
		return "no answer within " + checkTimeout.String()
	}
	return strings.ReplaceAll(err.Error(), "\n", " ")
}

// checkAll asks S3 for every bucket, and returns what is wrong in the order of the buckets.
func checkAll(ctx context.Context, buckets []*bucket) []error {
	return ofAll(buckets, func(b *bucket) error { return b.check(ctx) })
}

// ofAll does something with all, some at once, and returns the errors in their order.
func ofAll[T any](all []T, do func(T) error) []error {
	errs := make([]error, len(all))
	var group errgroup.Group
	group.SetLimit(checksAtOnce)
	for i, one := range all {
		group.Go(func() error {
			errs[i] = do(one)
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs
	return errs
}
