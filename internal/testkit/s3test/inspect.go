package s3test

import (
	"io"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// Objects returns the keys of a bucket in listing order.
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

// OpenUploads returns the keys of the multipart uploads in a bucket that are neither completed nor aborted.
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

// Put stores an object directly in S3.
func Put(tb testing.TB, client *s3.Client, bucket, key, content string) {
	tb.Helper()
	if _, err := client.PutObject(
		tb.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader(content)}); err != nil {
		tb.Fatalf("put %q: %v", key, err)
	}
}

// Content returns the content of an object. It reports a missing object as a test error.
func Content(tb testing.TB, client *s3.Client, bucket, key string) string {
	tb.Helper()
	out, err := client.GetObject(tb.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: &key})
	if err != nil {
		tb.Errorf("object %q: %v", key, err)
		return ""
	}
	defer out.Body.Close()
	content, err := io.ReadAll(out.Body)
	if err != nil {
		tb.Errorf("object %q: %v", key, err)
	}
	return string(content)
}

// decodeKey decodes a key from a listing. Servers that do not support EncodingType=url return no encoding type.
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
