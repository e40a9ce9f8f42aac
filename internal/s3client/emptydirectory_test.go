package s3client

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"github.com/babelftp/babelftp/internal/config/bucket"
	"github.com/babelftp/babelftp/internal/s3error"
	"github.com/babelftp/babelftp/internal/s3test"
)

// clientOf is the client that the server makes for a configuration without profiles.
func clientOf(t *testing.T, reach *aws.Config) *s3.Client {
	t.Helper()
	client, err := NewFactory(reach, nil, slog.New(slog.DiscardHandler)).Server(bucket.S3{PathStyle: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// ways are how an object may be stored with a content, where the object "source" has it.
var ways = map[string]func(t *testing.T, c *s3.Client, bucket, key string, content []byte) error{
	"put": func(t *testing.T, c *s3.Client, bucket, key string, content []byte) error {
		_, err := c.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader(content)})
		return err
	},
	"copy": func(t *testing.T, c *s3.Client, bucket, key string, _ []byte) error {
		_, err := c.CopyObject(t.Context(), &s3.CopyObjectInput{Bucket: &bucket, Key: &key, CopySource: aws.String(bucket + "/source")})
		return err
	},
}

// Clients store objects in a directory while others delete the last ones there. MinIO and versitygw remove the directory each time.
func TestStoreInDirectoryThatBecomesEmpty(t *testing.T) {
	const rounds, content = 60, "content"
	s3test.Run(t, func(t *testing.T, s *s3test.Server) {
		client, bucket := clientOf(t, s.AWSConfig()), s.Bucket(t)
		if err := ways["put"](t, client, bucket, "source", []byte(content)); err != nil {
			t.Fatal(err)
		}
		round := func(key string, store func(*testing.T, *s3.Client, string, string, []byte) error) error {
			if err := store(t, client, bucket, key, []byte(content)); err != nil {
				return err
			}
			out, err := client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: &key})
			if s3error.HasCode(err, "NoSuchKey") && s.Name != "minio" {
				return nil // versitygw answers 200 and stores nothing where mkdir meets the removal (EEXIST)
			}
			if err != nil {
				return err
			}
			defer out.Body.Close()
			if got, err := io.ReadAll(out.Body); err != nil || string(got) != content {
				return fmt.Errorf("%q is there, want %q: %w", got, content, err)
			}
			_, err = client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &bucket, Key: &key})
			return err
		}
		var sessions sync.WaitGroup
		for way, store := range ways {
			for n := range 3 {
				sessions.Go(func() {
					for range rounds {
						if err := round(fmt.Sprint("inbox/new/", way, n), store); err != nil {
							t.Errorf("%s: %v", way, err)
							return
						}
					}
				})
			}
		}
		sessions.Wait()
	})
}

// What a server keeps refusing is refused, after some attempts.
func TestStoreWhereDirectoryIs(t *testing.T) {
	s := s3test.Start(t, "embedded")
	bucket := s.Bucket(t)
	reach := s.AWSConfig()
	seen := watch(reach)
	client := clientOf(t, reach)
	if err := ways["put"](t, client, bucket, "directory/file", nil); err != nil {
		t.Fatal(err)
	}
	err := ways["put"](t, client, bucket, "directory", []byte("content"))
	if refused, ok := errors.AsType[smithy.APIError](err); !ok || refused.ErrorCode() != "ExistingObjectIsDirectory" {
		t.Errorf("%v, want ExistingObjectIsDirectory", err)
	}
	if n := len(seen.requests); n < 3 || n > 10 {
		t.Errorf("%d requests", n)
	}
	seen.requests, seen.answer = nil, func(response *http.Response) { response.Header.Set("Server", "nginx") }
	if err := ways["put"](t, client, bucket, "directory", []byte("content")); err == nil || len(seen.requests) != 1 {
		t.Errorf("%d requests to a server that is not known, and %v", len(seen.requests), err)
	}
}
