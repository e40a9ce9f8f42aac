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

	"github.com/babelftp/babelftp/internal/s3test"
)

// A fault is what may happen to requests, and the reply that a client gets then.
type fault struct {
	name        string
	harm        s3test.Harm
	on          []string // operations, all when nil
	once, often outcome
	unseen      []string // deeds in which no client can notice it
}

func (f fault) shows(d deed) bool { return !slices.Contains(f.unseen, d.name) }

// An outcome is what a deed may come to.
type outcome int

const (
	untried   outcome = iota
	done              // asking S3 again helps
	temporary         // 4xx, or done where the deed can do without
	permanent         // 5xx, or done likewise
)

// faults lists what may happen.
func faults() []fault {
	writes := []string{
		"PutObject", "CreateMultipartUpload", "UploadPart", "UploadPartCopy", "CopyObject", "CompleteMultipartUpload",
	}
	inRanges := []string{"REST-RETR", "RETR-large"} // which have no checksum
	return []fault{
		{name: "delay", harm: s3test.Delay(50 * time.Millisecond), once: done},
		{name: "internal-error", harm: s3test.Refuse(http.StatusInternalServerError, "InternalError"), once: done, often: temporary},
		{name: "slow-down", harm: s3test.Refuse(http.StatusServiceUnavailable, "SlowDown"), once: done, often: temporary},
		{name: "reset-request", harm: s3test.ResetRequest(), once: done, often: temporary},
		{name: "lose-answer", harm: s3test.LoseAnswer(), once: done, often: temporary},
		{name: "reset-response", harm: s3test.ResetResponse(), once: done, often: temporary},
		{name: "short-response", harm: s3test.ShortResponse(), once: done, often: temporary},
		{name: "half-close", harm: s3test.HalfClose(), once: done, often: temporary},
		{
			name: "error-behind-ok", harm: s3test.RefuseWithOK("InternalError"),
			on: []string{"CompleteMultipartUpload", "CopyObject", "UploadPartCopy"}, once: done, often: temporary,
		},
		{name: "spoil-request", harm: s3test.SpoilRequest(), on: []string{"PutObject", "UploadPart"}, often: temporary},
		{name: "spoil-response", harm: s3test.SpoilResponse(), on: []string{"GetObject"}, often: temporary, unseen: inRanges},
		{
			name: "disk-full", harm: s3test.Refuse(http.StatusInsufficientStorage, "XMinioStorageFull"), on: writes,
			often: temporary,
		},
		{name: "expired-token", harm: s3test.Refuse(http.StatusForbidden, "ExpiredToken"), often: permanent},
	}
}

// A mode says which of a deed's requests for one operation a fault meets.
type mode struct {
	name         string
	after, times int
}

func (m mode) outcome(f fault) outcome {
	switch {
	case m.times == 1:
		return f.once
	case m.after > 0 && f.name != "internal-error": // one fault shows where a deed is interrupted
		return untried
	}
	return f.often
}

// TestFaults does each deed under each fault of each S3 operation of the deed. After a positive reply the client finds the deed done. After a
// negative reply it finds everything as before, and repeats the deed in the same session with success. Nothing stays unfinished but a
// multipart upload without parts, whose ID got lost.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		modes []mode
	}{
		// Apart, because after many failures the SDK gives up for all: it has a budget of retries.
		{"once", []mode{{"once", 0, 1}}},
		{"often", []mode{{"always", 0, 0}, {"from-the-second-on", 1, 0}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			storage := s3test.Start(t, "minio")
			strict := storage.Bucket(t)
			b := &brokenSite{}
			b.site, b.proxy = newSiteBehindProxy(t, storage, fmt.Sprintf(denyingTenant, strict, passwordHash(t, password)))
			b.buckets[denying] = strict
			b.misdeeds(t, tt.modes)
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
    users: {alice: {password_hash: %q}}`
)

// A brokenSite is a site before a proxy that does harm. The test itself looks past it.
type brokenSite struct {
	*site
	proxy *s3test.Proxy
}

// misdeeds does all deeds under all faults, some at once.
func (b *brokenSite) misdeeds(t *testing.T, modes []mode) {
	const atOnce = 48
	var all []misdeed
	for _, d := range deeds() {
		for operation, requests := range b.operations(t, d) {
			for _, f := range faults() {
				for _, m := range modes {
					if requests > m.after && m.outcome(f) != untried && (f.on == nil || slices.Contains(f.on, operation)) && f.shows(d) {
						dir := fmt.Sprintf("d%04d", len(all))
						all = append(all, misdeed{brokenSite: b, deed: d, fault: f, operation: operation, mode: m, dir: dir})
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

// operations does a deed without a fault and returns how often each operation was asked of S3.
func (b *brokenSite) operations(t *testing.T, d deed) map[string]int {
	t.Helper()
	nothing := fault{name: "no fault", harm: s3test.Delay(0), once: done}
	m := misdeed{brokenSite: b, deed: d, fault: nothing, mode: mode{times: 1}, dir: "clean-" + d.name}
	if err := m.run(t.Context()); err != nil {
		t.Fatalf("%v: %v", m, err)
	}
	requests := map[string]int{}
	for _, o := range b.proxy.Seen() {
		if o.Under(prefix + m.dir + "/") {
			requests[o.Name]++
		}
	}
	return requests
}

// A misdeed is a deed under a fault.
type misdeed struct {
	*brokenSite
	deed      deed
	fault     fault
	operation string
	mode      mode
	dir       string
}

func (m misdeed) String() string {
	return fmt.Sprintf("%s, %s at %s %s", m.deed.name, m.fault.name, m.operation, m.mode.name)
}

func (m misdeed) run(ctx context.Context) error {
	if err := m.prepare(ctx); err != nil {
		return err
	}
	k, err := newTalker(m.site, cmp.Or(m.deed.tenant, acme))
	if err != nil {
		return err
	}
	defer k.Close()
	injection := m.proxy.Inject(s3test.Fault{
		Operation: m.operation, Under: prefix + m.dir + "/", After: m.mode.after, Times: m.mode.times, Harm: m.fault.harm,
	})
	r := m.deed.do(k, "/"+m.dir)
	injection.End()
	if injection.Harmed() == 0 && m.mode.after == 0 { // there need not be a second request each time
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
	again := m.deed.do(k, "/"+m.dir)
	if !again.done() {
		return fmt.Errorf("%v, and when there was no fault any more %v", r, again)
	}
	return m.mustHold(ctx, m.after(), again)
}

// after is what the directory holds when the deed was done.
func (m misdeed) after() objects {
	if m.deed.after == nil {
		return m.deed.before
	}
	return m.deed.after
}

// judge compares the reply of the client with the bucket.
func (m misdeed) judge(r response) error {
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
func (m misdeed) mustHold(ctx context.Context, want objects, r response) error {
	got, err := m.holds(ctx)
	if err != nil {
		return err
	}
	if !got.equal(want) {
		return fmt.Errorf("%v, and the bucket has %v, want %v", r, got, want)
	}
	return m.mustHaveNoUploads(ctx, r)
}

// mustHoldSomething wants the directory to be as before the deed, or in between where the deed may be done in part.
func (m misdeed) mustHoldSomething(ctx context.Context, r response) error {
	if !m.deed.byParts {
		return m.mustHold(ctx, m.deed.before, r)
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

func (m misdeed) mustHaveNoUploads(ctx context.Context, r response) error {
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
			parts, err := m.client.ListParts(ctx, &s3.ListPartsInput{Bucket: &bucket, Key: upload.Key, UploadId: upload.UploadId})
			if err != nil {
				return err
			}
			if m.operation != "CreateMultipartUpload" || len(parts.Parts) > 0 { // otherwise its ID got lost
				return fmt.Errorf("%v, and a multipart upload of %s is open, %d parts", r, *upload.Key, len(parts.Parts))
			}
		}
	}
	return nil
}

// bucket is where the deed is done.
func (m misdeed) bucket() string { return m.buckets[cmp.Or(m.deed.tenant, acme)] }

// prepare makes the objects that the deed finds.
func (m misdeed) prepare(ctx context.Context) error {
	bucket := m.bucket()
	for name, content := range m.deed.before {
		key := prefix + m.dir + "/" + name
		if _, err := m.client.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader(content)}); err != nil {
			return err
		}
	}
	return nil
}

// holds returns what the bucket has below the directory. It looks again where an object is gone that was listed: S3 may still be at a
// request that was cancelled, because another of the deed's had failed.
func (m misdeed) holds(ctx context.Context) (objects, error) {
	for {
		got, err := m.look(ctx)
		if _, gone := errors.AsType[*types.NoSuchKey](err); !gone {
			return got, err
		}
	}
}

func (m misdeed) look(ctx context.Context) (objects, error) {
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
