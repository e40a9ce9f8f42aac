package s3api_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/driver/profile"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// impatient ends retries after a few milliseconds.
var impatient = s3api.Retries{Patience: 10 * time.Millisecond, LongestPause: time.Millisecond}

func TestMain(m *testing.M) { s3test.Main(m) }

// A fixture is a bucket whose S3 responses a test can modify.
type fixture struct {
	*s3api.Bucket
	http   s3.HTTPClient
	change func(*http.Response) // modifies each response, if not nil
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	s := s3test.Start(t, "sim-aws")
	f := &fixture{http: s.HTTPClient}
	client := s.Client(func(o *s3.Options) { o.HTTPClient = f })
	p, _ := profile.Named("versitygw")
	f.Bucket = s3api.NewBucket(client, s.Bucket(t), p, &s3api.Stats{}, time.Minute)
	return f
}

// Do implements [s3.HTTPClient].
func (f *fixture) Do(request *http.Request) (*http.Response, error) {
	response, err := f.http.Do(request)
	if err == nil && f.change != nil {
		f.change(response)
	}
	return response, err
}

// put stores an object and returns it.
func (f *fixture) put(t *testing.T, key, content string) s3api.Version {
	t.Helper()
	if _, err := f.Put(
		t.Context(), key, &s3object.Attributes{}, s3api.Condition{}, strings.NewReader(content), s3api.Sums{},
	); err != nil {
		t.Fatal(err)
	}
	v, _, err := f.Head(t.Context(), key)
	must.OK(t, err)
	return v
}

// upload begins a multipart upload.
func (f *fixture) upload(t *testing.T) s3api.Upload {
	t.Helper()
	u, err := f.CreateUpload(t.Context(), "key", "", &s3object.Attributes{}, s3api.PartChecksums{})
	must.OK(t, err)
	return u
}

// part uploads the first part of an upload, which is its only part.
func (f *fixture) part(t *testing.T, u s3api.Upload, content string) *s3api.Part {
	t.Helper()
	p, err := f.UploadPart(t.Context(), u, 1, strings.NewReader(content), nil)
	must.OK(t, err)
	return &p
}

var (
	etagElement = regexp.MustCompile(`<ETag>[^<]*</ETag>`)
	ofS3        = regexp.MustCompile(`<(ETag|UploadId|Name|IsTruncated)>[^<]*</(ETag|UploadId|Name|IsTruncated)>`)
)

// fromElsewhere makes a response look as if a proxy or another server had sent it: it removes the request ID, the ETag,
// the upload ID and the name of the bucket.
func fromElsewhere(response *http.Response) {
	response.Header.Del("X-Amz-Request-Id")
	without(response, ofS3)
	body, _ := io.ReadAll(response.Body)
	body = bytes.ReplaceAll(body, []byte("ListBucketResult"), []byte("Outcome_________"))
	response.Body = io.NopCloser(bytes.NewReader(body))
}

// withoutETag removes the ETag from the headers and the body of a response.
func withoutETag(response *http.Response) { without(response, etagElement) }

// without removes the ETag header from a response, and the matching elements from its body.
func without(response *http.Response, elements *regexp.Regexp) {
	response.Header.Del("ETag")
	if strings.Contains(response.Header.Get("Content-Type"), "xml") {
		body, _ := io.ReadAll(response.Body)
		body = elements.ReplaceAll(body, nil)
		response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
}

// TestResponsesFromElsewhere removes everything from a response that shows that it comes from S3. The bucket must not
// trust such a response. It either repeats the request, or reports that something between it and S3 sent the response.
func TestResponsesFromElsewhere(t *testing.T) {
	const content = "content"
	for name, test := range map[string]struct {
		request func(ctx context.Context, t *testing.T, f *fixture) func() error // prepares the request
		want    error
	}{
		"head": {func(ctx context.Context, t *testing.T, f *fixture) func() error {
			f.put(t, "key", content)
			return func() error { _, _, err := f.Head(ctx, "key"); return err }
		}, syscall.EIO},
		"get": {func(ctx context.Context, t *testing.T, f *fixture) func() error {
			f.put(t, "key", content)
			return func() error { _, _, _, err := f.Get(ctx, "key", 0); return err }
		}, syscall.EIO},
		"get-range": {func(ctx context.Context, t *testing.T, f *fixture) func() error {
			v := f.put(t, "key", content)
			return func() error { _, err := f.GetRange(ctx, v, 1, 3); return err }
		}, syscall.EIO},
		"empty-list": {func(ctx context.Context, _ *testing.T, f *fixture) func() error {
			return func() error { _, err := f.List(ctx, s3api.Listing{}); return err }
		}, syscall.EAGAIN},
		"create-upload": {func(ctx context.Context, _ *testing.T, f *fixture) func() error {
			return func() error {
				_, err := f.CreateUpload(ctx, "key", "", &s3object.Attributes{}, s3api.PartChecksums{})
				return err
			}
		}, syscall.EAGAIN},
		"put": {func(ctx context.Context, _ *testing.T, f *fixture) func() error {
			return func() error {
				_, err := f.Put(
					ctx, "key", &s3object.Attributes{}, s3api.Condition{}, strings.NewReader(content),
					s3api.Sums{})
				return err
			}
		}, syscall.EAGAIN},
		"copy": {func(ctx context.Context, t *testing.T, f *fixture) func() error {
			v := f.put(t, "key", content)
			return func() error {
				_, err := f.Copy(ctx, v, &s3object.Attributes{}, "copy", s3api.Condition{})
				return err
			}
		}, syscall.EAGAIN},
		"upload-part": {func(ctx context.Context, t *testing.T, f *fixture) func() error {
			u := f.upload(t)
			return func() error { _, err := f.UploadPart(ctx, u, 1, strings.NewReader(content), nil); return err }
		}, syscall.EAGAIN},
		"copy-part": {func(ctx context.Context, t *testing.T, f *fixture) func() error {
			v, u := f.put(t, "source", content), f.upload(t)
			return func() error { _, err := f.CopyPart(ctx, u, 1, v, 0, v.Size); return err }
		}, syscall.EAGAIN},
		"list-parts": {func(ctx context.Context, t *testing.T, f *fixture) func() error {
			u := f.upload(t)
			f.part(t, u, content)
			return func() error {
				_, err := f.ListParts(ctx, u, func(s3api.Part) bool { t.Error("unexpected part"); return true })
				return err
			}
		}, syscall.EAGAIN},
		"complete": {func(ctx context.Context, t *testing.T, f *fixture) func() error {
			u := f.upload(t)
			parts := []*s3api.Part{f.part(t, u, content)}
			return func() error {
				_, err := f.CompleteUpload(ctx, u, parts, s3api.Condition{}, always)
				return err
			}
		}, syscall.EAGAIN},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			request := test.request(s3api.WithRetries(t.Context(), impatient), t, f)
			f.change = fromElsewhere
			if err := request(); !errors.Is(err, test.want) {
				t.Errorf("got error %v, want %v", err, test.want)
			}
		})
	}
}

// TestDeletedWhileS3Responds: an S3 server on top of a file system sends no ETag if the object is deleted while it
// responds. The bucket repeats the request, and the second response shows whether the object still exists.
func TestDeletedWhileS3Responds(t *testing.T) {
	for name, request := range map[string]func(t *testing.T, f *fixture) error{
		"head": func(t *testing.T, f *fixture) error { _, _, err := f.Head(t.Context(), "key"); return err },
		"get":  func(t *testing.T, f *fixture) error { _, _, _, err := f.Get(t.Context(), "key", 0); return err },
	} {
		for outcome, change := range map[string]func(t *testing.T, f *fixture) error{
			"deleted":  func(t *testing.T, f *fixture) error { return f.Delete(t.Context(), "key") },
			"replaced": func(t *testing.T, f *fixture) error { f.put(t, "key", "other"); return nil },
		} {
			t.Run(name+"/"+outcome, func(t *testing.T) {
				f := newFixture(t)
				f.put(t, "key", "content")
				f.change = func(response *http.Response) {
					f.change = nil
					withoutETag(response)
					if err := change(t, f); err != nil {
						t.Error(err)
					}
				}
				if err := request(t, f); errors.Is(err, fs.ErrNotExist) != (outcome == "deleted") ||
					outcome == "replaced" && err != nil {
					t.Errorf("unexpected error: %v", err)
				}
			})
		}
	}
}

// TestLostResponses removes the ETag from the responses to writes only, so the bucket must send HeadObject to find out
// what S3 has done.
func TestLostResponses(t *testing.T) {
	const content = "content"
	writes := func(response *http.Response) {
		if response.Request.Method != http.MethodHead {
			withoutETag(response)
		}
	}
	for name, write := range map[string]func(t *testing.T, f *fixture) (etag string, err error){
		"put": func(t *testing.T, f *fixture) (string, error) {
			f.change = writes
			made, err := f.Put(
				t.Context(), "key", &s3object.Attributes{}, s3api.Condition{}, strings.NewReader(content),
				s3api.Sums{})
			return made.ETag, err
		},
		"copy": func(t *testing.T, f *fixture) (string, error) {
			v := f.put(t, "source", content)
			f.change = writes
			made, err := f.Copy(t.Context(), v, &s3object.Attributes{}, "key", s3api.Condition{})
			return made.ETag, err
		},
		"complete": func(t *testing.T, f *fixture) (string, error) {
			u := f.upload(t)
			parts := []*s3api.Part{f.part(t, u, content)}
			f.change = writes
			made, err := f.CompleteUpload(t.Context(), u, parts, s3api.Condition{}, always)
			return made.ETag, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			etag, err := write(t, f)
			must.OK(t, err)
			if v, _, err := f.Head(t.Context(), "key"); err != nil || v.ETag != etag || v.Size != int64(len(content)) {
				t.Errorf("the object is %+v, %v; want ETag %s", v, err, etag)
			}
		})
	}
}

// Ceph confirms a completed upload without an ETag. The upload counts as completed even if another client replaces the
// object right away.
func TestCompletedWithoutETag(t *testing.T) {
	f := newFixture(t)
	u := f.upload(t)
	parts := []*s3api.Part{f.part(t, u, "first")}
	f.change = func(response *http.Response) {
		f.change = nil
		withoutETag(response)
		f.put(t, "key", "other")
	}
	made, err := f.CompleteUpload(t.Context(), u, parts, s3api.Condition{}, always)
	if err != nil || made.ETag != "" {
		t.Errorf("the ETag is %q, %v", made.ETag, err)
	}
}

var checksumTypeElement = regexp.MustCompile(`<ChecksumType>[^<]*</ChecksumType>`)

// If the response does not prove that the upload was completed, the bucket checks the object. Here another client has
// stored the same bytes with an upload of its own, which must not count as proof.
func TestCompletedByAnother(t *testing.T) {
	f := newFixture(t)
	u, other := f.upload(t), f.upload(t)
	parts, others := []*s3api.Part{f.part(t, u, "same")}, []*s3api.Part{f.part(t, other, "same")}
	f.change = func(response *http.Response) {
		f.change = nil
		without(response, checksumTypeElement)
		if _, err := f.CompleteUpload(t.Context(), other, others, s3api.Condition{}, always); err != nil {
			t.Error(err)
		}
	}
	ctx := s3api.WithRetries(t.Context(), impatient)
	if _, err := f.CompleteUpload(ctx, u, parts, s3api.Condition{}, always); !errors.Is(err, syscall.EAGAIN) {
		t.Errorf("got error %v, want %v", err, syscall.EAGAIN)
	}
}

// TestOtherBytes changes the range of a response.
func TestOtherBytes(t *testing.T) {
	const content = "content"
	for name, test := range map[string]struct {
		// contentRange replaces the Content-Range of the response, unless it is empty.
		contentRange string
		from, to     int64
		size         int64 // as the caller knows it
		want         error
	}{
		"part":                  {"", 2, 5, 7, nil},
		"all":                   {"", 0, 7, 7, nil},
		"part-without-range":    {"none", 2, 5, 7, syscall.EIO},
		"another-part":          {"bytes 1-3/7", 2, 5, 7, syscall.EIO},
		"all-of-another-length": {"", 0, 8, 8, syscall.EIO},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			v := f.put(t, "key", content)
			v.Size = test.size
			f.change = func(response *http.Response) {
				if test.contentRange != "" {
					response.Header.Set("Content-Range", test.contentRange)
				}
			}
			body, err := f.GetRange(t.Context(), v, test.from, test.to)
			if !errors.Is(err, test.want) {
				t.Fatalf("got error %v, want %v", err, test.want)
			}
			if err != nil {
				return
			}
			defer body.Close()
			if got, err := io.ReadAll(body); err != nil || string(got) != content[test.from:test.to] {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	t.Run("from-an-offset-without-range", func(t *testing.T) {
		f := newFixture(t)
		f.put(t, "key", content)
		f.change = func(response *http.Response) { response.Header.Del("Content-Range") }
		if _, _, _, err := f.Get(t.Context(), "key", 2); !errors.Is(err, syscall.EIO) {
			t.Errorf("got error %v, want %v", err, syscall.EIO)
		}
	})
}

// TestSameBytesDoNotMeetCondition stores the same bytes again. The condition on the first object no longer holds,
// although the ETag is the same.
func TestSameBytesDoNotMeetCondition(t *testing.T) {
	f := newFixture(t)
	v := f.put(t, "key", "same")
	f.put(t, "key", "same")
	if err := f.CheckCondition(t.Context(), "key", v.Unchanged()); !errors.Is(err, syscall.ESTALE) {
		t.Errorf("got error %v, want %v", err, syscall.ESTALE)
	}
}

// TestTornResponse: if the ETag of a HeadObject response belongs to another object than its metadata, a caller that
// makes a conditional request gets the ETag of a second response instead.
func TestTornResponse(t *testing.T) {
	f := newFixture(t)
	want := f.put(t, "key", "content")
	f.change = func(response *http.Response) {
		f.change = nil
		response.Header.Set("ETag", `"torn"`)
	}
	if v, _, _, err := f.HeadExact(t.Context(), s3api.Version{Key: "key"}); err != nil || v.ETag != want.ETag {
		t.Errorf("the ETag is %s, %v, want %s", v.ETag, err, want.ETag)
	}
}
