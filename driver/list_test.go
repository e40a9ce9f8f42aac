package driver

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// scriptedListings returns listings as S3 or other servers may return them, but that no server in the conformance
// suite does.
type scriptedListings struct {
	s3api.Client
	responses []*s3.ListObjectsV2Output
}

func (s *scriptedListings) ListObjectsV2(
	context.Context, *s3.ListObjectsV2Input, ...func(*s3.Options),
) (*s3.ListObjectsV2Output, error) {
	if len(s.responses) == 0 {
		return nil, errors.New("unexpected request")
	}
	out := s.responses[0]
	s.responses = s.responses[1:]
	return out, nil
}

// page returns a page of a listing. Entries that end with a slash are prefixes, and a token announces another page.
func page(encoding types.EncodingType, token string, entries ...string) *s3.ListObjectsV2Output {
	out := &s3.ListObjectsV2Output{EncodingType: encoding}
	if token != "" {
		out.IsTruncated, out.NextContinuationToken = aws.Bool(true), &token
	}
	for _, entry := range entries {
		if entry[len(entry)-1] == '/' {
			out.CommonPrefixes = append(out.CommonPrefixes, types.CommonPrefix{Prefix: &entry})
		} else {
			out.Contents = append(
				out.Contents, types.Object{Key: &entry, Size: aws.Int64(1), LastModified: aws.Time(time.Now())})
		}
	}
	return out
}

func TestListings(t *testing.T) {
	t.Parallel()
	const plain, url = types.EncodingType(""), types.EncodingTypeUrl
	for _, test := range []struct {
		label     string
		responses []*s3.ListObjectsV2Output
		want      []string
		kind      error // kind of the error that follows these entries
	}{
		{"file-and-directory-of-a-name", []*s3.ListObjectsV2Output{page(plain, "", "d/a", "d/a-b", "d/a/", "d/b")},
			[]string{"a", "a-b", "a/", "b"}, nil},
		{"encoded", []*s3.ListObjectsV2Output{page(url, "", "d/a%2Bb", "d/a+b", "d/%2541", "d/%01/", "d/%EF%BF%BD")},
			[]string{"\x01/", "a+b", "a b", "%41", "\uFFFD"}, nil},
		{"not-encoded", []*s3.ListObjectsV2Output{page(
			plain, "", "d/a%2Bb", "d/a+b", "d/%zz", "d/\uFFFD", "d/\uFFFD/")},
			[]string{"a%2Bb", "a+b", "%zz"}, nil},
		{"without-pathname", []*s3.ListObjectsV2Output{
			page(url, "", "d/.", "d/..", "d/...", "d/%FF", "d/%00", "d/x", "d//", "d/./", "d/../", "d/%ED%A0%80/"),
		}, []string{"...", "x"}, nil},
		{"outside-of-the-prefix", []*s3.ListObjectsV2Output{page(url, "1", "d/x"), page(url, "", "d/y", "e/f")},
			[]string{"x"}, syscall.EIO},
		{"declared-as-encoded", []*s3.ListObjectsV2Output{page(url, "", "d/%zz", "d/a b", "d/x")},
			[]string{"%zz", "a b", "x"}, nil},
		{"encoded-untold", []*s3.ListObjectsV2Output{page(plain, "", "d/a%2Bb", "d/x"), page(plain, "")},
			[]string{"a+b", "x"}, nil},
		{"not-encoded-untold", []*s3.ListObjectsV2Output{
			page(plain, "", "d/a%2Bb", "d/x"), page(plain, "", "d/a%2Bb")},
			[]string{"a%2Bb", "x"}, nil},
		{"without-a-delimiter", []*s3.ListObjectsV2Output{page(plain, "", "d/a/b", "d/a/c", "d/x")},
			[]string{"a/", "x"}, nil},
		{"twice", []*s3.ListObjectsV2Output{page(plain, "", "d/x", "d/x", "d/y/", "d/z", "d/y/", "d/x")},
			[]string{"x", "y/", "z"}, nil},
		{"twice-on-pages", []*s3.ListObjectsV2Output{
			page(plain, "1", "d/x", "d/y/"), page(plain, "", "d/y/", "d/z")},
			[]string{"x", "y/", "z"}, nil},
		{"empty-pages", []*s3.ListObjectsV2Output{
			page(plain, "1"), page(plain, "2", "d/x"), page(plain, "3"), page(plain, "", "d/y"),
		}, []string{"x", "y"}, nil},
		{"no-token", []*s3.ListObjectsV2Output{
			page(plain, "1", "d/x"), {IsTruncated: aws.Bool(true)},
		}, []string{"x"}, syscall.EIO},
		{"same-token", []*s3.ListObjectsV2Output{page(plain, "1", "d/x"), page(plain, "1", "d/y")}, []string{"x"},
			syscall.EIO},
	} {
		t.Run(test.label, func(t *testing.T) {
			f := mustNew(&scriptedListings{responses: test.responses}, nil)
			entries, err := f.List(t.Context(), "d")
			must.OK(t, err)
			got := []string{}
			for info, entryErr := range entries {
				if err = entryErr; err != nil {
					break
				}
				name := info.Name()
				if info.IsDir() {
					name += "/"
				}
				got = append(got, name)
			}
			if !slices.Equal(got, test.want) || !errors.Is(err, test.kind) {
				t.Errorf("got %q, %v; want %q, %v", got, err, test.want, test.kind)
			}
		})
	}
}

// TestWalkTakesAll checks that an operation that removes or moves a directory fails instead of ignoring a key that the
// server cannot write.
func TestWalkTakesAll(t *testing.T) {
	t.Parallel()
	client := &scriptedListings{responses: []*s3.ListObjectsV2Output{page("", "", "d/\uFFFD")}}
	f := mustNew(client, nil)
	for v, err := range f.bucket.Walk(t.Context(), "d/") {
		if !errors.Is(err, syscall.EILSEQ) {
			t.Errorf("got %q, %v", v.Key, err)
		}
	}
}
