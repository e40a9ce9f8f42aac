package s3client

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// directoryBuckets is an S3 Express server. A client requests a session there before its first request to a bucket.
type directoryBuckets struct{ sessions int }

// Do implements [aws.HTTPClient].
func (d *directoryBuckets) Do(r *http.Request) (*http.Response, error) {
	body := ""
	if r.URL.Query().Has("session") {
		d.sessions++
		body = `<CreateSessionResult><Credentials><AccessKeyId>key</AccessKeyId><SecretAccessKey>secret</SecretAccessKey>` +
			`<SessionToken>token</SessionToken><Expiration>2100-01-01T00:00:00Z</Expiration></Credentials></CreateSessionResult>`
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)),
		Request: r}, nil
}

// If a user logs in while a directory bucket is not usable, other users still get their sessions from S3.
func TestRefusingClientOfADirectoryBucket(t *testing.T) {
	const bucket = "acme--use1-az4--x-s3"
	server := &directoryBuckets{}
	b := &Bucket{Name: bucket, Client: s3.New(s3.Options{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""),
		HTTPClient: server,
	})}
	head := func(client *s3.Client) error {
		_, err := client.HeadObject(
			t.Context(), &s3.HeadObjectInput{Bucket: aws.String(bucket), Key: aws.String("file")})
		return err
	}
	if err := head(b.RefusingClient()); !errors.Is(err, syscall.EAGAIN) {
		t.Errorf("client that refuses directory buckets: %v", err)
	}
	if err := head(b.Client); err != nil || server.sessions != 1 {
		t.Errorf("other client: got %d sessions: %v", server.sessions, err)
	}
}
