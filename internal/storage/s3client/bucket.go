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
	// checkTimeout limits the check of a bucket, including the retries of the SDK.
	checkTimeout = 10 * time.Second
)

var errNoRegion = errors.New("unknown region")

// A Bucket holds the objects of a tenant, or of one folder of the tenant. Create it with [Factory.Buckets], and call
// Verify before you use it, or let a [Watcher] do that.
type Bucket struct {
	Tenant    string
	Folder    string // a directory of the tenant; empty for the bucket of the tenant itself
	forState  bool   // the bucket of the shared state, which belongs to no tenant
	Name      string
	Prefix    string // prepended to all keys
	Client    *s3.Client
	Endpoint  *driver.Endpoint
	Presigner driver.Presigner // nil if the tenant has no presigned links
	Objects   driver.Objects   // attributes of new objects
	Journal   *driver.Journal  // nil until OpenJournal
	Profile   driver.Profile   // found by Verify; the strictest profile before
	Folders   []*Bucket        // folders of the tenant, sorted by name

	account        account
	checksums      *atomic.Bool // whether the client sends checksums; see client
	keys           configKeys
	rules          ruleNeeds
	customerKey    []byte             // SSE-C key; nil without SSE-C
	partSize       int64              // configured size of the parts of uploads, in bytes
	resumable      bool               // whether users can resume uploads
	resumeRequired bool               // the configuration requires resumable uploads explicitly
	overwrite      []config.Overwrite // modes of the users with write permission, without duplicates
	links          *s3.Client         // client of the presigner
	use            Use
	watched        *watchState // nil without a Watcher
}

// configKeys holds the configuration sections that a bucket and its S3 server come from, such as "s3" or
// "tenants.acme.s3". Errors name them.
type configKeys struct{ bucket, endpoint, region, credentials, role string }

// A bucketError says on one line why a tenant's bucket cannot be used, with advice if the cause is certain.
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

// Verify checks that the bucket exists, finds the profile of its server, and checks that the server can do what the
// configuration requires. It logs the profile. The error is one line and says what to change.
func (b *Bucket) Verify(ctx context.Context, log *slog.Logger) error {
	s := newScratch(b.Client, b.Name)
	defer func() { _ = s.clean(ctx) }() // a leftover object is harmless: no user sees it
	return b.verify(ctx, s, log)
}

// verify implements Verify. The scratch deletes the objects that it stores.
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

// OpenJournal opens the journal of the bucket's unfinished uploads. Call it after Verify, which finds the profile.
// Sweeps remove uploads that are older than age.
func (b *Bucket) OpenJournal(log *slog.Logger, age time.Duration) {
	j := b.Endpoint.NewJournal(b.ObjectClient(), b.Name, b.Prefix, b.Profile, b.Objects, log.With("tenant", b.Tenant))
	j.SetAbandonedAfter(age)
	b.Journal = j
}

// Check sends one request to find out whether the bucket is reachable.
func (b *Bucket) Check(ctx context.Context) error {
	_, err := b.reach(ctx)
	return err
}

// reach checks that the bucket is reachable, and returns the header of the response.
func (b *Bucket) reach(ctx context.Context) (header http.Header, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	// Retrieve the credentials first. The error of the request does not tell missing credentials from an unreachable
	// server.
	if _, err := b.Client.Options().Credentials.Retrieve(ctx); err != nil {
		if refused, ok := errors.AsType[*roleError](err); ok {
			return nil, b.newError(err, refused.problem, "%s", refused.advice)
		}
		problem, advice := explainCredentials(err, b.keys.credentials)
		return nil, b.newError(err, problem, "%s", advice)
	}
	begin := time.Now()
	head, err := b.Client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &b.Name})
	if err == nil {
		b.Endpoint.Observe(time.Since(begin))
		header = responseHeader(head.ResultMetadata)
	}
	if s3error.Status(err) != 0 {
		// The response to HEAD has no body with the reason. A policy may also allow nothing except listing the
		// tenant's prefix.
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

// newError returns a bucketError for this bucket. The advice is a format for args.
func (b *Bucket) newError(cause error, problem, advice string, args ...any) error {
	return &bucketError{bucket: b, problem: problem, advice: fmt.Sprintf(advice, args...), cause: cause}
}
