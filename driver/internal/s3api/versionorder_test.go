package s3api

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// TestNextVersions calls nextVersions for pages whose last keys are percent-encoded. The page began after the key
// "before".
func TestNextVersions(t *testing.T) {
	for name, test := range map[string]struct{ version, deleted, prefix, next, want string }{
		"encoded":               {version: "1%2B", next: "1%2B", want: "1+"},
		"not-encoded":           {version: "1%2B", next: "1+", want: "1+"},
		"looks-encoded":         {version: "%2541", next: "%41", want: "%41"},
		"looks-badly-encoded":   {deleted: "100%25", next: "100%", want: "100%"},
		"what-xml-has-not":      {version: "%01", next: "\ufffd", want: "\x01"},
		"another-looks-encoded": {version: "1%252B", deleted: "1%2B", next: "1%2B", want: "1+"},
		"prefix":                {version: "c", prefix: "d%2F", next: "d%2F", want: "d/"},
		"prefix-not-encoded":    {version: "c", prefix: "d%25%2F", next: "d%/", want: "d%/"},
		"with-more-of-minio":    {version: "c", next: "c%5Bminio_cache%3Av2%5D", want: "c[minio_cache:v2]"},
		"same-page":             {version: "c", next: "before"},
		"nothing":               {},
	} {
		t.Run(name, func(t *testing.T) {
			out := &s3.ListObjectVersionsOutput{EncodingType: types.EncodingTypeUrl}
			if test.next != "" {
				out.NextKeyMarker = &test.next
			}
			if test.version != "" {
				out.Versions = []types.ObjectVersion{{Key: &test.version}}
			}
			if test.deleted != "" {
				out.DeleteMarkers = []types.DeleteMarkerEntry{{Key: &test.deleted}}
			}
			if test.prefix != "" {
				out.CommonPrefixes = []types.CommonPrefix{{Prefix: &test.prefix}}
			}
			in := &s3.ListObjectVersionsInput{KeyMarker: aws.String("before")}
			err := nextVersions(in, out)
			if (err != nil) != (test.want == "") || err == nil && *in.KeyMarker != test.want {
				t.Errorf("the next page begins after %q, %v, want %q", *in.KeyMarker, err, test.want)
			}
		})
	}
}
