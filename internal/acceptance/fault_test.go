package acceptance_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// A fault is what may happen to requests, and the reply that a client gets then.
type fault struct {
	name        string
	effect      s3test.Effect
	on          []string // operations, all when nil
	once, often outcome
	unseen      []string // operations in which no client can notice it
	doubt       bool     // S3 may yet perform a request that always has this fault
}

func (f fault) isVisible(d operation) bool { return !slices.Contains(f.unseen, d.name) }

// An outcome is what an operation may come to.
type outcome int

const (
	untried   outcome = iota
	done              // asking S3 again helps
	temporary         // 4xx, or done where the operation can do without
	permanent         // 5xx, or done likewise
)

// faults lists what may happen.
func faults() []fault {
	writes := []string{
		"PutObject", "CreateMultipartUpload", "UploadPart", "UploadPartCopy", "CopyObject", "CompleteMultipartUpload",
	}
	withBody := []string{"GetObject", "ListObjectsV2", "ListParts", "DeleteObject", "DeleteObjects",
		"AbortMultipartUpload"}
	inRanges := []string{"REST-RETR", "RETR-large"} // which have no checksum
	return []fault{
		{name: "delay", effect: s3test.Delay(50 * time.Millisecond), once: done},
		// S3 may have performed the request, and another client may have deleted the new file since.
		{name: "internal-error", effect: s3test.Refuse(http.StatusInternalServerError, "InternalError"),
			once: temporary, often: temporary, doubt: true},
		{name: "slow-down", effect: s3test.Refuse(http.StatusServiceUnavailable, "SlowDown"), once: done,
			often: temporary},
		{name: "reset-request", effect: s3test.ResetRequest(), once: temporary, often: temporary, doubt: true},
		{name: "lose-answer", effect: s3test.LoseAnswer(), once: done, often: temporary},
		{name: "reset-response", effect: s3test.ResetResponse(), once: done, often: temporary},
		{name: "short-response", effect: s3test.ShortResponse(), once: done, often: temporary},
		{name: "half-close", effect: s3test.HalfClose(), once: temporary, often: temporary, doubt: true},
		{
			name: "error-behind-ok", effect: s3test.RefuseWithOK("InternalError"),
			on: []string{"CompleteMultipartUpload", "CopyObject", "UploadPartCopy"}, once: temporary, often: temporary,
			doubt: true,
		},
		{name: "corrupt-request", effect: s3test.CorruptRequest(), on: []string{"PutObject", "UploadPart"},
			often: temporary},
		{name: "corrupt-response", effect: s3test.CorruptResponse(), on: []string{"GetObject"}, often: temporary,
			unseen: inRanges},
		{
			name: "disk-full", effect: s3test.Refuse(http.StatusInsufficientStorage, "XMinioStorageFull"), on: writes,
			once: temporary, often: temporary,
		},
		{
			// The operator renews credentials, and the same command works then. The answer to a HEAD has no body, so
			// it cannot say this.
			name: "expired-token", effect: s3test.Refuse(http.StatusForbidden, "ExpiredToken"),
			on: slices.Concat(writes, withBody), often: temporary,
		},
		{name: "denied", effect: s3test.Refuse(http.StatusForbidden, "AccessDenied"), often: permanent},
	}
}

// A mode says which of a operation's requests for one operation a fault meets.
type mode struct {
	name         string
	after, times int
}

func (m mode) outcome(f fault) outcome {
	switch {
	case m.times == 1:
		return f.once
	case m.after > 0 && f.name != "internal-error": // one fault shows where an operation is interrupted
		return untried
	}
	return f.often
}

// TestFaults does each operation under each fault of each S3 operation of the operation. After a positive reply the
// client finds the operation done. After a negative reply it finds everything as before, and repeats the operation in
// the same session with success. Nothing stays unfinished but a multipart upload without parts, whose ID got lost, and
// one that S3 may yet complete. A sweep removes that.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		modes []mode
	}{
		{"once", []mode{{"once", 0, 1}}},
		{"often", []mode{{"always", 0, 0}, {"from-the-second-on", 1, 0}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			storage := s3test.Start(t, "minio")
			strict := storage.Bucket(t)
			b := &faultSite{}
			b.site, b.proxy = newSiteBehindProxy(
				t, storage, "    resume: discard", fmt.Sprintf(denyingTenant, strict, passwordHash(t, password)))
			b.buckets[denying] = strict
			b.runFaults(t, tt.modes)
		})
	}
}

// denyingTenant is one of the site that replaces no files.
const (
	denying       = "denying"
	denyingTenant = `
  denying:
    hosts: [ftp.denying.example]
    bucket: %q
    prefix: inbox/
    overwrite: deny
    resume: discard
    users: {alice: {password_hash: %q}}`
)

// A faultSite is a site before a proxy that injects faults. The test itself looks past it.
type faultSite struct {
	*site
	proxy *s3test.Proxy
}

// runFaults does all operations under all faults, some at once.
func (b *faultSite) runFaults(t *testing.T, modes []mode) {
	const atOnce = 48
	var all []faultCase
	for _, d := range operations() {
		for operation, requests := range b.requests(t, d) {
			for _, f := range faults() {
				for _, m := range modes {
					if requests > m.after && m.outcome(f) != untried &&
						(f.on == nil || slices.Contains(f.on, operation)) && f.isVisible(d) {
						dir := fmt.Sprintf("d%04d", len(all))
						all = append(
							all, faultCase{faultSite: b, operation: d, fault: f, request: operation, mode: m, dir: dir})
					}
				}
			}
		}
	}
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, m := range all {
		group.Go(func() error {
			if err := m.run(t.Context()); err != nil {
				t.Errorf("%v: %v", m, err)
			}
			return nil
		})
	}
	_ = group.Wait() // the test has reported the errors
	t.Logf("%d cases", len(all))
}

// requests does an operation without a fault and returns how often each operation was asked of S3.
func (b *faultSite) requests(t *testing.T, d operation) map[string]int {
	t.Helper()
	nothing := fault{name: "no fault", effect: s3test.Delay(0), once: done}
	m := faultCase{faultSite: b, operation: d, fault: nothing, mode: mode{times: 1}, dir: "clean-" + d.name}
	if err := m.run(t.Context()); err != nil {
		t.Fatalf("%v: %v", m, err)
	}
	requests := map[string]int{}
	for _, o := range b.proxy.Operations() {
		if strings.HasPrefix(o.Key+o.Prefix, prefix+m.dir+"/") {
			requests[o.Name]++
		}
	}
	return requests
}

// A faultCase is an operation under a fault.
type faultCase struct {
	*faultSite
	operation operation
	fault     fault
	request   string
	mode      mode
	dir       string
}

func (m faultCase) String() string {
	return fmt.Sprintf("%s, %s at %s %s", m.operation.name, m.fault.name, m.request, m.mode.name)
}

func (m faultCase) run(ctx context.Context) error {
	if err := m.prepare(ctx); err != nil {
		return err
	}
	k, err := newFaultClient(m.site, cmp.Or(m.operation.tenant, acme))
	if err != nil {
		return err
	}
	defer k.Close()
	injection := m.proxy.Inject(s3test.Fault{
		Operation: m.request, KeyPrefix: prefix + m.dir + "/", After: m.mode.after, Times: m.mode.times,
		Effect: m.fault.effect,
	})
	r := m.operation.do(k, "/"+m.dir)
	injection.End()
	if injection.Applied() == 0 && m.mode.after == 0 { // there need not be a second request each time
		return fmt.Errorf("%v, and the fault did not happen", r)
	}
	if err := m.judge(r); err != nil {
		return err
	}
	if r.done() {
		return m.mustHold(ctx, m.after(), r)
	}
	if err := m.mustHoldSomething(ctx, r); err != nil {
		return err
	}
	again := m.operation.do(k, "/"+m.dir)
	if !again.done() {
		return fmt.Errorf("%v, and when there was no fault any more %v", r, again)
	}
	return m.mustHold(ctx, m.after(), again)
}

// after is what the directory holds when the operation was done.
func (m faultCase) after() objects {
	if m.operation.after == nil {
		return m.operation.before
	}
	return m.operation.after
}

// judge compares the reply of the client with the bucket.
func (m faultCase) judge(r response) error {
	if r.err != nil {
		return r.err
	}
	switch want := m.mode.outcome(m.fault); {
	case r.done():
	case want == done:
		return fmt.Errorf("%v, though to ask again helps", r)
	case want == temporary && r.code/100 != 4, want == permanent && r.code/100 != 5:
		return fmt.Errorf("%v, which is the wrong class", r)
	}
	return nil
}

// mustHold wants the directory to hold no more and no less, and no open uploads.
func (m faultCase) mustHold(ctx context.Context, want objects, r response) error {
	got, err := m.holds(ctx)
	if err != nil {
		return err
	}
	if !got.equal(want) {
		return fmt.Errorf("%v, and the bucket has %v, want %v", r, got, want)
	}
	return m.mustHaveNoUploads(ctx, r)
}

// mustHoldSomething wants the directory to be as before the operation, or in between where the operation may be done
// in part.
func (m faultCase) mustHoldSomething(ctx context.Context, r response) error {
	if !m.operation.byParts {
		return m.mustHold(ctx, m.operation.before, r)
	}
	got, err := m.holds(ctx)
	if err != nil {
		return err
	}
	contents := slices.Collect(maps.Values(got))
	for _, content := range m.after() {
		if !slices.Contains(contents, content) {
			return fmt.Errorf("%v, and %q is lost: the bucket has %v", r, content, got)
		}
	}
	return m.mustHaveNoUploads(ctx, r)
}

func (m faultCase) mustHaveNoUploads(ctx context.Context, r response) error {
	bucket := m.bucket()
	pages := s3.NewListMultipartUploadsPaginator(m.client, &s3.ListMultipartUploadsInput{Bucket: &bucket})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, upload := range page.Uploads {
			if !strings.HasPrefix(*upload.Key, prefix+m.dir+"/") {
				continue
			}
			parts, err := m.client.ListParts(
				ctx, &s3.ListPartsInput{Bucket: &bucket, Key: upload.Key, UploadId: upload.UploadId})
			if err != nil {
				return err
			}
			switch {
			case m.request == "CreateMultipartUpload" && len(parts.Parts) == 0: // its ID got lost
			case m.request == "CompleteMultipartUpload" && m.fault.doubt: // S3 may yet complete it
			default:
				return fmt.Errorf(
					"%v, and a multipart upload of %s is open, %d parts", r, *upload.Key, len(parts.Parts))
			}
		}
	}
	return nil
}

// bucket is where the operation is done.
func (m faultCase) bucket() string { return m.buckets[cmp.Or(m.operation.tenant, acme)] }

// prepare makes the objects that the operation finds.
func (m faultCase) prepare(ctx context.Context) error {
	bucket := m.bucket()
	for name, content := range m.operation.before {
		key := prefix + m.dir + "/" + name
		if _, err := m.client.PutObject(
			ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader(content)}); err != nil {
			return err
		}
	}
	return nil
}

// holds returns what the bucket has below the directory. It looks again where an object is gone that was listed: S3
// may still be at a request that was cancelled, because another of the operation's had failed.
func (m faultCase) holds(ctx context.Context) (objects, error) {
	for {
		got, err := m.look(ctx)
		if _, gone := errors.AsType[*types.NoSuchKey](err); !gone {
			return got, err
		}
	}
}

func (m faultCase) look(ctx context.Context) (objects, error) {
	bucket, dir := m.bucket(), prefix+m.dir+"/"
	got := objects{}
	pages := s3.NewListObjectsV2Paginator(m.client, &s3.ListObjectsV2Input{Bucket: &bucket, Prefix: &dir})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, o := range page.Contents {
			out, err := m.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: o.Key})
			if err != nil {
				return nil, err
			}
			content, err := io.ReadAll(out.Body)
			_ = out.Body.Close()
			if err != nil {
				return nil, err
			}
			got[strings.TrimPrefix(*o.Key, dir)] = described(content, out.Metadata["mtime"])
		}
	}
	return got, nil
}
