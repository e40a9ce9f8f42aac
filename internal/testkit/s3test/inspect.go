package s3test

import (
	"net/url"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// Objects lists the keys of a bucket in the order of the server, as another S3 client sees them.
func Objects(tb testing.TB, client *s3.Client, bucket string) []string {
	tb.Helper()
	keys := []string{}
	pages := s3.NewListObjectsV2Paginator(
		client, &s3.ListObjectsV2Input{Bucket: &bucket, EncodingType: types.EncodingTypeUrl})
	for pages.HasMorePages() {
		page, err := pages.NextPage(tb.Context())
		if err != nil {
			tb.Fatalf("list bucket %s: %v", bucket, err)
		}
		for _, object := range page.Contents {
			keys = append(keys, decodeKey(tb, object.Key, page.EncodingType))
		}
	}
	return keys
}

// OpenUploads lists the keys of the multipart uploads of a bucket that are neither completed nor aborted.
func OpenUploads(tb testing.TB, client *s3.Client, bucket string) []string {
	tb.Helper()
	keys := []string{}
	pages := s3.NewListMultipartUploadsPaginator(client, &s3.ListMultipartUploadsInput{
		Bucket: &bucket, EncodingType: types.EncodingTypeUrl,
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(tb.Context())
		if err != nil {
			tb.Fatalf("list the uploads of bucket %s: %v", bucket, err)
		}
		for _, upload := range page.Uploads {
			keys = append(keys, decodeKey(tb, upload.Key, page.EncodingType))
		}
	}
	return keys
}

// decodeKey decodes a key of a listing. The answer of a server that does not know EncodingType=url has no encoding
// type.
func decodeKey(tb testing.TB, key *string, encoding types.EncodingType) string {
	tb.Helper()
	if encoding != types.EncodingTypeUrl {
		return aws.ToString(key)
	}
	decoded, err := url.QueryUnescape(aws.ToString(key))
	if err != nil {
		tb.Fatalf("key %q: %v", aws.ToString(key), err)
	}
	return decoded
}
