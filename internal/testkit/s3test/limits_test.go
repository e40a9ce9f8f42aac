package s3test_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// probe does what a limit names in a fresh bucket, and returns an error when the outcome is not the one of S3.
type probe func(ctx context.Context, b bucket) error

// probes has one for each limit.
func probes() map[s3test.Limit]probe {
	return map[s3test.Limit]probe{
		s3test.FileBesideDirectory:              keeps("a", "a/b"),
		s3test.SegmentOver255Bytes:              keeps("dir/" + strings.Repeat("n", 256)),
		s3test.ReplaceLongSegment:               replaces("dir/" + strings.Repeat("n", 228)),
		s3test.EmptySegment:                     keeps("/a", "a//b"),
		s3test.DotSegment:                       keeps("a/../b", "a/./b"),
		s3test.ReservedSegment:                  keeps("a/.sgwtmp/b"),
		s3test.ControlCharactersInListings:      keeps("a\x01b", "a\ufffeb"),
		s3test.ControlCharactersInDeleteObjects: deletesMany("a\x01b"),
		s3test.MarkerWithContent:                keeps("a/"),
		s3test.CopyMarker:                       copiesMarker,
		s3test.DeleteMissingMarker:              deletesMissingMarker,
		s3test.CopyIntoChecksumUpload:           copiesIntoChecksumUpload,
		s3test.UploadsByPrefix:                  listsUploadsByPrefix,
		s3test.Encryption:                       encrypts,
	}
}

func TestLimits(t *testing.T) { s3test.RunAll(t, triesLimits) }

func TestLimitsOfPackaged(t *testing.T) { s3test.RunPackaged(t, triesLimits) }

func triesLimits(t *testing.T, s *s3test.Server) {
	probes := probes()
	for limit := range s.Limits {
		if probes[limit] == nil {
			t.Errorf("limit %s has no probe", limit)
		}
	}
	for limit, probe := range probes {
		t.Run(string(limit), func(t *testing.T) {
			err := probe(t.Context(), newBucket(t, s))
			reason, limited := s.Limits.Cannot(limit)
			switch {
			case limited && err == nil:
				t.Errorf("%s does this now; its limits say: %s", s.Name, reason)
			case !limited && err != nil:
				t.Errorf("%s does not do this, which its limits do not say: %v", s.Name, err)
			}
		})
	}
}

// TestNames stores what every server must hold, under names that something between a client and a disk may get wrong.
func TestNames(t *testing.T) {
	longest := strings.Repeat(strings.Repeat("k", 127)+"/", 8)
	names := []string{
		" a ", "a b/ /c ", "a+b", "a%41b", "a%2Fb", `a"b'c`, `a\b`, "a&b<c>d", "a?b#c", "{a}[b]^`|~",
		"a;b=c@d,e$f!*(g):h",
		"a\tb", "a\nb", "a\rb", "a\r\nb", "a\u0085b", "a\u2028b", "\ufeffa", "a\x7fb",
		"...", "..a/b..", ".hidden", "foo", "foobar", "FOO",
		"\u00e9", "e\u0301", "😀", "日本語.txt", "العربية.txt", "русский.txt",
		longest[:1023] + "z", strings.Repeat("é", 127) + "z",
	}
	slices.Sort(names)
	s3test.RunAll(t, func(t *testing.T, s *s3test.Server) {
		if err := keeps(names...)(t.Context(), newBucket(t, s)); err != nil {
			t.Error(err)
		}
	})
}

// bucket is a fresh bucket and its client, which asks once.
type bucket struct {
	*s3.Client
	name string
}

func newBucket(t *testing.T, s *s3test.Server) bucket {
	t.Helper()
	return bucket{Client: s.Client(func(o *s3.Options) { o.RetryMaxAttempts = 1 }), name: s.Bucket(t)}
}

func (b bucket) put(ctx context.Context, key, content string) error {
	_, err := b.PutObject(ctx, &s3.PutObjectInput{Bucket: &b.name, Key: &key, Body: strings.NewReader(content)})
	return err
}

func (b bucket) get(ctx context.Context, key string) (string, error) {
	out, err := b.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.name, Key: &key})
	if err != nil {
		return "", err
	}
	defer out.Body.Close()
	content, err := io.ReadAll(out.Body)
	return string(content), err
}

// keys lists the bucket in pages of two, and sorts the keys: not every server does.
func (b bucket) keys(ctx context.Context) ([]string, error) {
	var keys []string
	pages := s3.NewListObjectsV2Paginator(b.Client, &s3.ListObjectsV2Input{
		Bucket: &b.name, EncodingType: types.EncodingTypeUrl, MaxKeys: aws.Int32(2),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, object := range page.Contents {
			key := *object.Key
			if page.EncodingType == types.EncodingTypeUrl {
				if key, err = url.QueryUnescape(key); err != nil {
					return nil, err
				}
			}
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

// keeps stores an object under each name, in byte order; each must read back as it was, be listed and be deleted.
func keeps(names ...string) probe {
	return func(ctx context.Context, b bucket) error {
		for _, name := range names {
			if err := b.put(ctx, name, "content of "+name); err != nil {
				return err
			}
		}
		for _, name := range names {
			if got, err := b.get(ctx, name); err != nil || got != "content of "+name {
				return fmt.Errorf("%q reads back as %q, %w", name, got, err)
			}
		}
		if listed, err := b.keys(ctx); err != nil || !slices.Equal(listed, names) {
			return fmt.Errorf("listed as %q, %w", listed, err)
		}
		for _, name := range names {
			if _, err := b.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.name, Key: &name}); err != nil {
				return err
			}
		}
		if left, err := b.keys(ctx); err != nil || len(left) > 0 {
			return fmt.Errorf("after deleting all there are %q, %w", left, err)
		}
		return nil
	}
}

func replaces(name string) probe {
	return func(ctx context.Context, b bucket) error {
		for _, content := range []string{"old", "new"} {
			if err := b.put(ctx, name, content); err != nil {
				return err
			}
			if got, err := b.get(ctx, name); err != nil || got != content {
				return fmt.Errorf("reads back as %q, %w", got, err)
			}
		}
		return nil
	}
}

func deletesMany(name string) probe {
	return func(ctx context.Context, b bucket) error {
		if err := b.put(ctx, name, ""); err != nil {
			return err
		}
		_, err := b.DeleteObjects(ctx, &s3.DeleteObjectsInput{
			Bucket: &b.name, Delete: &types.Delete{Objects: []types.ObjectIdentifier{{Key: &name}}},
		})
		if err != nil {
			return err
		}
		if _, err := b.get(ctx, name); err == nil {
			return errors.New("the object is still there")
		}
		return nil
	}
}

func copiesMarker(ctx context.Context, b bucket) error {
	if err := b.put(ctx, "from/", ""); err != nil {
		return err
	}
	_, err := b.CopyObject(ctx, &s3.CopyObjectInput{
		Bucket: &b.name, Key: aws.String("to/"), CopySource: aws.String(b.name + "/from/"),
	})
	return err
}

func deletesMissingMarker(ctx context.Context, b bucket) error {
	if err := b.put(ctx, "a/b", ""); err != nil {
		return err
	}
	_, err := b.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &b.name, Key: aws.String("a/")})
	return err
}

func copiesIntoChecksumUpload(ctx context.Context, b bucket) error {
	if err := b.put(ctx, "from", "content"); err != nil {
		return err
	}
	created, err := b.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket: &b.name, Key: aws.String("to"), ChecksumAlgorithm: types.ChecksumAlgorithmCrc32,
	})
	if err != nil {
		return err
	}
	_, err = b.UploadPartCopy(ctx, &s3.UploadPartCopyInput{
		Bucket: &b.name, Key: aws.String("to"), UploadId: created.UploadId, PartNumber: aws.Int32(1),
		CopySource: aws.String(b.name + "/from"),
	})
	return err
}

func listsUploadsByPrefix(ctx context.Context, b bucket) error {
	_, err := b.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &b.name, Key: aws.String("dir/a")})
	if err != nil {
		return err
	}
	for _, prefix := range []string{"dir/a", "dir/"} {
		out, err := b.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{Bucket: &b.name, Prefix: &prefix})
		if err != nil {
			return err
		}
		if len(out.Uploads) != 1 {
			return fmt.Errorf("%d uploads under %q", len(out.Uploads), prefix)
		}
	}
	return nil
}

func encrypts(ctx context.Context, b bucket) error {
	for _, algorithm := range []types.ServerSideEncryption{types.ServerSideEncryptionAes256,
		types.ServerSideEncryptionAwsKms} {
		in := &s3.PutObjectInput{Bucket: &b.name, Key: aws.String("a"), ServerSideEncryption: algorithm}
		if algorithm == types.ServerSideEncryptionAwsKms {
			in.SSEKMSKeyId = aws.String(s3test.KMSKey)
		}
		if _, err := b.PutObject(ctx, in); err != nil {
			return err
		}
		out, err := b.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.name, Key: in.Key})
		if err != nil {
			return err
		}
		if out.ServerSideEncryption != algorithm {
			return fmt.Errorf("%s is stored with %q", algorithm, out.ServerSideEncryption)
		}
	}
	return nil
}

func TestOpenUploads(t *testing.T) {
	s3test.RunAll(t, func(t *testing.T, s *s3test.Server) {
		b := newBucket(t, s)
		want := []string{"dir/ü+ 1", "second"}
		for _, key := range want {
			created, err := b.CreateMultipartUpload(
				t.Context(), &s3.CreateMultipartUploadInput{Bucket: &b.name, Key: &key})
			if err != nil {
				t.Fatal(err)
			}
			_, err = b.UploadPart(t.Context(), &s3.UploadPartInput{
				Bucket: &b.name, Key: &key, UploadId: created.UploadId, PartNumber: aws.Int32(1),
				Body: bytes.NewReader([]byte("part")),
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		open := s3test.OpenUploads(t, b.Client, b.name)
		slices.Sort(open)
		if !slices.Equal(open, want) {
			t.Errorf("open uploads are %q, want %q", open, want)
		}
		if objects := s3test.Objects(t, b.Client, b.name); len(objects) > 0 {
			t.Errorf("objects are %q", objects)
		}
	})
}
