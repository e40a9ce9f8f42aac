package driver_test

import (
	"net/url"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver/internal/listxml"
	"github.com/babelftp/babelftp/internal/s3test"
)

// TestConformancePackaged runs the suite on the servers that Debian's packages bring: Ceph and OpenStack Swift. CI runs some groups of it, and
// make s3-servers all.
func TestConformancePackaged(t *testing.T) {
	s3test.RunPackaged(t, func(t *testing.T, s *s3test.Server) { conform(t, s) })
}

// A page of a listing may end with a name that has characters which XML does not have. Ceph's token of the next page has them too.
func TestPagesPackaged(t *testing.T) {
	s3test.RunPackaged(t, func(t *testing.T, s *s3test.Server) {
		x := &prober{ctx: t.Context(), client: s.Client(), bucket: s.Bucket(t)}
		want := []string{"d/\x01a", "d/\x02/", "d/\n", "d/\r\x1b", "d/\ufffd", "d/\ufffe"}
		for _, key := range want {
			if _, err := x.put(key, ""); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		in := &s3.ListObjectsV2Input{
			Bucket: &x.bucket, Prefix: aws.String("d/"), Delimiter: aws.String("/"), MaxKeys: aws.Int32(1), EncodingType: types.EncodingTypeUrl,
		}
		for range want {
			page, err := x.client.ListObjectsV2(t.Context(), in, new(listxml.Decoder).Install)
			if err != nil {
				t.Fatal(err)
			}
			encoded := ""
			if len(page.Contents) > 0 {
				encoded = *page.Contents[0].Key
			} else if len(page.CommonPrefixes) > 0 {
				encoded = *page.CommonPrefixes[0].Prefix
			}
			key, err := url.QueryUnescape(encoded)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, key)
			if in.ContinuationToken = page.NextContinuationToken; in.ContinuationToken == nil {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
