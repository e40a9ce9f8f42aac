package drivertest

import (
	"bytes"
	"context"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver"
)

// attributes has everything that an object has in addition to its bytes.
type attributes struct {
	head *s3.HeadObjectOutput
	tags []types.Tag
}

func (x *fixture) attributes(key string) attributes {
	x.Helper()
	out, err := x.client.GetObjectTagging(x.Context(), &s3.GetObjectTaggingInput{Bucket: &x.bucket, Key: &key})
	if err != nil {
		x.Fatalf("tags of %q: %v", key, err)
	}
	slices.SortFunc(out.TagSet, func(a, b types.Tag) int { return strings.Compare(*a.Key, *b.Key) })
	return attributes{x.head(key), out.TagSet}
}

// The user metadata that identifies the source of a copy, and the request that stored an object.
const (
	stamp   = "babelftp-copy-of"
	request = "babelftp-write"
)

// putWithAttributes stores an object with every attribute that the server supports, and returns them.
func (x *fixture) putWithAttributes(key string, content []byte) attributes {
	x.Helper()
	in := &s3.PutObjectInput{
		Bucket: &x.bucket, Key: &key, Body: bytes.NewReader(content),
		ContentType: aws.String("text/x-test"), ContentDisposition: aws.String("inline"),
		CacheControl:    aws.String("no-cache"),
		ContentLanguage: aws.String("fr"), ContentEncoding: aws.String("identity"),
		Expires:                 aws.Time(time.Unix(2_000_000_000, 0)),
		WebsiteRedirectLocation: aws.String("/elsewhere"), StorageClass: types.StorageClassReducedRedundancy,
		Metadata: map[string]string{"color": "blue", "mtime": "1000000000.25"},
		Tagging:  aws.String("class=a%20b%2Bc&empty="),
	}
	if !x.limits.has(Encryption) && !x.limits.has(EncryptionRequests) {
		in.ServerSideEncryption = types.ServerSideEncryptionAwsKms
	}
	if x.limits.has(StorageClasses) {
		in.StorageClass = ""
	}
	if x.limits.has(Redirections) {
		in.WebsiteRedirectLocation = nil
	}
	tags := 2
	if x.limits.has(Tags) {
		in.Tagging, tags = nil, 0
	}
	if _, err := x.client.PutObject(x.Context(), in); err != nil {
		x.Fatalf("put %q: %v", key, err)
	}
	a := x.attributes(key)
	if len(a.tags) != tags || a.head.ServerSideEncryption != in.ServerSideEncryption {
		x.Errorf("the server keeps no tags or no encryption, so the test proves nothing: %+v", a)
	}
	return a
}

// wantAttributes compares all attributes except the times, the ETag and the metadata that the driver uses itself.
func (x *fixture) wantAttributes(key string, want attributes) {
	x.Helper()
	got := x.attributes(key)
	delete(got.head.Metadata, stamp)
	delete(got.head.Metadata, request)
	type texts [12]string
	of := func(h *s3.HeadObjectOutput) texts {
		return texts{
			aws.ToString(h.ContentType), aws.ToString(h.ContentDisposition), aws.ToString(h.CacheControl),
			aws.ToString(h.ContentLanguage),
			aws.ToString(h.ContentEncoding), aws.ToString(h.ExpiresString), aws.ToString(h.WebsiteRedirectLocation),
			string(h.StorageClass),
			string(h.ServerSideEncryption), aws.ToString(h.SSEKMSKeyId),
		}
	}
	if of(got.head) != of(want.head) || !maps.Equal(got.head.Metadata, want.head.Metadata) {
		x.Errorf("%s has the attributes %q and metadata %q, want %q and %q",
			key, of(got.head), got.head.Metadata, of(want.head), want.head.Metadata)
	}
	equalTags := func(a, b types.Tag) bool { return *a.Key == *b.Key && *a.Value == *b.Value }
	if !x.hasException(lostTags) && !slices.EqualFunc(got.tags, want.tags, equalTags) {
		x.Errorf("%s has %d tags, want %d", key, len(got.tags), len(want.tags))
	}
}

func testCopy(t *testing.T, h Harness) {
	x := h.open(t, nil)
	x.testMoves(func(from, to string) error { return x.Copy(x.Context(), from, to) }, []move{
		{"file", []string{"a"}, "a", "b", nil, []string{"a", "b"}},
		{"file-onto-a-file", []string{"a", "b"}, "a", "b", nil, nil},
		{"file-onto-itself", []string{"a"}, "a", "a", nil, nil},
		{"file-onto-a-directory", []string{"a", "d/x"}, "a", "d", syscall.EISDIR, nil},
		{"missing", []string{"a"}, "b", "c", fs.ErrNotExist, nil},
		{"directory", []string{"d/", "d/x", "d/y/z"}, "d", "e", nil,
			[]string{"d/", "d/x", "d/y/z", "e/", "e/x", "e/y/z"}},
		{"directory-onto-equal-files", []string{"d/x", "d/y", "e/x"}, "d", "e", syscall.ENOTEMPTY, nil},
		{"directory-into-itself", []string{"d/x"}, "d", "d/e", syscall.ELOOP, nil},
		{"directory-onto-a-full-one", []string{"d/x", "e/y"}, "d", "e", syscall.ENOTEMPTY, nil},
		{"directory-onto-a-file", []string{"d/x", "a"}, "d", "a", syscall.ENOTDIR, nil},
		{"root", []string{"a"}, "/", "b", syscall.ELOOP, nil},
	})
	x.run("attributes", func(x *fixture) {
		content := random(2*x.partSize + 1000)
		before := x.putWithAttributes("d/old", content)
		for label, opts := range map[string]*driver.Options{"at-once": nil, "by-parts": {CopyLimit: 1}} {
			x.run(label, func(x *fixture) {
				f := x.session(x.Context(), opts)
				for from, to := range map[string]string{"d/old": label, "d": label + "-directory"} {
					x.must(f.Copy(x.Context(), from, to))
				}
				for _, key := range []string{"d/old", label, label + "-directory/old"} {
					x.wantContent(key, content)
					x.wantAttributes(key, before)
				}
			})
		}
	})
	x.run("canceled", func(x *fixture) {
		x.put("large", random(2*x.partSize+1000))
		ctx, cancel := context.WithCancel(x.Context())
		x.spy.Before(func(_ context.Context, operation string, _ any) error {
			if strings.HasPrefix(operation, "UploadPart") || operation == "CopyObject" {
				cancel()
			}
			return nil
		})
		defer x.spy.Before(nil)
		f := x.session(x.Context(), &driver.Options{CopyLimit: 1})
		wantError(x, f.Copy(ctx, "large", "copy"), context.Canceled)
		if x.exists("copy") {
			x.Error("the copy exists")
		}
		x.wantNoUploads("copy")
	})
}

// refuseCopy lets S3 refuse to copy a file to a key, so that a move ends halfway.
func (x *fixture) refuseCopy(key string) {
	x.spy.Before(func(_ context.Context, _ string, in any) error {
		copies := false
		switch in := in.(type) {
		case *s3.CopyObjectInput:
			copies = *in.Key == key
		case *s3.PutObjectInput:
			copies = *in.Key == key
		}
		if copies {
			return responseError(http.StatusForbidden, "AccessDenied")
		}
		return nil
	})
}

// testRenameFailed lets S3 refuse one copy. Nothing of the source may be deleted, and nothing may be left unfinished.
func testRenameFailed(t *testing.T, h Harness) {
	for label, test := range map[string]struct {
		limit int64
		size  int
	}{"at-once": {0, 10}, "by-parts": {1, 2*h.PartSize + 1000}} {
		t.Run(label, func(t *testing.T) {
			x := h.open(t, &driver.Options{CopyLimit: test.limit})
			keys := []string{"d/a", "d/b", "d/c"}
			for _, key := range keys {
				x.put(key, random(test.size))
			}
			var copies atomic.Int64
			x.spy.Before(func(_ context.Context, operation string, _ any) error {
				if strings.HasPrefix(operation, "UploadPart") || operation == "CopyObject" {
					if copies.Add(1) == 2 {
						return responseError(http.StatusForbidden, "AccessDenied")
					}
				}
				return nil
			})
			wantError(t, x.Rename("d", "e"), fs.ErrPermission)
			wantError(t, x.Copy(t.Context(), "d", "f"), nil)
			x.spy.Before(nil)
			for _, key := range keys {
				x.wantContent(key, random(test.size))
				x.wantNoUploads("e" + key[1:])
			}
			x.rename("d", "e")
			for _, key := range keys {
				x.wantContent("e"+key[1:], random(test.size))
			}
		})
	}
}

// testDeletedOneByOne deletes objects that S3 cannot delete together: keys that XML cannot represent, a server without
// DeleteObjects, and a server that deletes only some.
func testDeletedOneByOne(t *testing.T, h Harness) {
	x := h.open(t, nil)
	if _, limited := h.Limits[ListControlCharacters]; !limited {
		x.run("control-characters", func(x *fixture) {
			x.putAll("d/a\x01b", "d/\u0085", "d/\n", "d/plain")
			x.rename("d", "e")
			x.wantKeys("e/a\x01b", "e/\u0085", "e/\n", "e/plain")
			wantNoError(x, x.RemoveAll("e"))
			x.wantKeys()
		})
	}
	x.run("unknown-request", func(x *fixture) {
		x.putAll("d/a", "d/b", "d/c")
		x.spy.Before(func(_ context.Context, operation string, _ any) error {
			if operation == "DeleteObjects" {
				return responseError(http.StatusNotImplemented, "NotImplemented")
			}
			return nil
		})
		defer x.spy.Before(nil)
		x.rename("d", "e")
		x.wantKeys("e/a", "e/b", "e/c")
	})
	x.run("left-over", func(x *fixture) {
		x.spy.Before(func(_ context.Context, _ string, in any) error {
			if in, ok := in.(*s3.DeleteObjectsInput); ok {
				in.Delete.Objects = in.Delete.Objects[:1]
			}
			return nil
		})
		x.spy.After(func(_ string, out any) error {
			if out, ok := out.(*s3.DeleteObjectsOutput); ok {
				out.Errors = []types.Error{{Key: aws.String("e/b")}, {Key: aws.String("e/c")}}
			}
			return nil
		})
		defer x.spy.Before(nil)
		defer x.spy.After(nil)
		wantNoError(x, x.RemoveAll("e"))
		x.wantKeys()
	})
}
