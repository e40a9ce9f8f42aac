package s3client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/base/s3error"
	"github.com/babelftp/babelftp/internal/config"
)

const (
	// checkTimeout is how long a bucket may take to answer, the SDK's retries included.
	checkTimeout = 10 * time.Second
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

// A bucketError says why a tenant's bucket cannot be used, and what to do if that is known, in one line.
type bucketError struct {
	bucket  *Bucket
	problem string
	advice  string
	cause   error
}

func (e *bucketError) Error() string {
	text := fmt.Sprintf("%v: %s", e.bucket, e.problem)
	if e.advice != "" {
		text += ": " + e.advice
	}
	return text
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
	j := b.Endpoint.NewJournal(b.ObjectClient(), b.Name, b.Prefix, b.Profile, b.Objects, log.With("tenant", b.Tenant))
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
		problem, advice := explainCredentials(err, b.keys.credentials)
		return nil, b.failed(err, problem, "%s", advice)
	}
	begin := time.Now()
	head, err := b.Client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &b.Name})
	if err == nil {
		b.Endpoint.Observe(time.Since(begin))
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

func (b *Bucket) failed(cause error, problem, advice string, args ...any) error {
	return &bucketError{bucket: b, problem: problem, advice: fmt.Sprintf(advice, args...), cause: cause}
}
