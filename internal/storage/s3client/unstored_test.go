package s3client

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/base/s3error"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// clientOf returns a client for a configuration without profiles, after a profile with checksums was found.
func clientOf(t *testing.T, reach *aws.Config) *s3.Client {
	t.Helper()
	factory := NewFactory(reach, nil, slog.New(slog.DiscardHandler))
	made, err := factory.client(accountOf(config.S3{PathStyle: aws.Bool(true)}))
	must.OK(t, err)
	made.checksums.Store(true)
	return made.Client
}

// ways are the ways to store an object with a content, which the object "source" already has.
var ways = map[string]func(t *testing.T, c *s3.Client, bucket, key string, content []byte) error{
	"put": func(t *testing.T, c *s3.Client, bucket, key string, content []byte) error {
		_, err := c.PutObject(
			t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader(content)})
		return err
	},
	"copy": func(t *testing.T, c *s3.Client, bucket, key string, _ []byte) error {
		_, err := c.CopyObject(
			t.Context(), &s3.CopyObjectInput{Bucket: &bucket, Key: &key, CopySource: aws.String(bucket + "/source")})
		return err
	},
}

// Clients store objects in a directory while others delete the last ones in it. MinIO and versitygw remove the
// directory each time.
func TestStoreInDirectoryThatBecomesEmpty(t *testing.T) {
	const rounds, content = 60, "content"
	s3test.Run(t, func(t *testing.T, s *s3test.Server) {
		client, bucket := clientOf(t, s.AWSConfig()), s.Bucket(t)
		must.OK(t, ways["put"](t, client, bucket, "source", []byte(content)))
		round := func(key string, store func(*testing.T, *s3.Client, string, string, []byte) error) error {
			if err := store(t, client, bucket, key, []byte(content)); err != nil {
				return err
			}
			out, err := client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: &key})
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

// One client stores a file, and another one a file in a directory with the same name. A server that cannot store both
// may respond 200 to both.
func TestStoreFileAndDirectory(t *testing.T) {
	const rounds, content = 20, "content"
	s3test.Run(t, func(t *testing.T, s *s3test.Server) {
		client, bucket := clientOf(t, s.AWSConfig()), s.Bucket(t)
		for way, store := range ways {
			must.OK(t, ways["put"](t, client, bucket, "source", []byte(content)))
			for n := range rounds {
				name := fmt.Sprint(way, n)
				var clients sync.WaitGroup
				for _, key := range []string{name, name + "/file"} {
					clients.Go(func() {
						if err := store(t, client, bucket, key, []byte(content)); err != nil {
							return
						}
						if _, err := client.HeadObject(
							t.Context(), &s3.HeadObjectInput{Bucket: &bucket, Key: &key}); err != nil {
							t.Errorf("%s: stored, then error %v", key, err)
						}
					})
				}
				clients.Wait()
			}
		}
	})
}

// MinIO refuses to complete an upload whose directory becomes empty, and deletes its parts. Any other refusal is
// final.
func TestRefusedCompletion(t *testing.T) {
	s := s3test.Start(t, "minio")
	for _, tc := range []struct {
		name, server string
		gone         bool // the parts are deleted
		want         string
		requests     int
	}{
		{"parts-are-gone", "MinIO", true, "OperationAborted", 2},
		{"denied", "MinIO", false, "AccessDenied", 2},
		{"other-server", "nginx", true, "AccessDenied", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			name, key, reach := s.Bucket(t), "file", s.AWSConfig()
			seen := watch(reach)
			seen.answer = func(response *http.Response) {
				response.Header.Set("Server", tc.server)
				if response.Request.Method == http.MethodPost && response.Request.URL.Query().Has("uploadId") {
					response.StatusCode = http.StatusForbidden
					response.Body = io.NopCloser(strings.NewReader("<Error><Code>AccessDenied</Code></Error>"))
				}
			}
			client := clientOf(t, reach)
			begun, err := client.CreateMultipartUpload(
				t.Context(), &s3.CreateMultipartUploadInput{Bucket: &name, Key: &key})
			must.OK(t, err)
			if tc.gone {
				_, err := client.AbortMultipartUpload(
					t.Context(), &s3.AbortMultipartUploadInput{Bucket: &name, Key: &key, UploadId: begun.UploadId})
				must.OK(t, err)
			}
			seen.requests = nil
			_, err = client.CompleteMultipartUpload(t.Context(), &s3.CompleteMultipartUploadInput{
				Bucket: &name, Key: &key, UploadId: begun.UploadId,
				MultipartUpload: &types.CompletedMultipartUpload{
					Parts: []types.CompletedPart{{ETag: aws.String(`"any"`), PartNumber: aws.Int32(1)}},
				},
			})
			if s3error.Code(err) != tc.want || s3error.Status(err) != http.StatusForbidden ||
				len(seen.requests) != tc.requests {
				t.Errorf("got error %v after %d requests, want %s", err, len(seen.requests), tc.want)
			}
		})
	}
}

// A response without a checksum type is confirmed with a HEAD request, so servers that never send the type cost an
// extra request.
func TestConfirmStored(t *testing.T) {
	s := s3test.Start(t, "sim-aws")
	for _, tc := range []struct {
		name             string
		server           string // the Server header
		profile          config.Profile
		missing, refused bool // result of the HEAD request
		replaced         bool // the HEAD request shows another object
		unchecked        bool // the request has no checksum
		code             string
		requests         int
	}{
		{name: "stored", server: "VERSITYGW", requests: 2},
		{name: "stored-by-configuration", server: "nginx", profile: "versitygw", requests: 2},
		{name: "not-stored", server: "VERSITYGW", missing: true, code: "OperationAborted", requests: 16},
		{name: "gone-without-checksum", server: "VERSITYGW", missing: true, unchecked: true, code: "OperationAborted",
			requests: 2},
		{name: "replaced", server: "VERSITYGW", replaced: true, requests: 2},
		{name: "look-refused", server: "VERSITYGW", refused: true, code: "Forbidden", requests: 2},
		{name: "other-server", server: "nginx", missing: true, requests: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			name := s.Bucket(t)
			reach := s.AWSConfig()
			seen := watch(reach)
			seen.answer = func(response *http.Response) {
				response.Header.Set("Server", tc.server)
				response.Header.Del("X-Amz-Checksum-Type")
				if response.Request.Method == http.MethodHead {
					switch {
					case tc.missing:
						response.StatusCode = http.StatusNotFound
					case tc.refused:
						response.StatusCode = http.StatusForbidden
					case tc.replaced:
						response.Header.Set("ETag", `"another"`)
					}
				}
			}
			factory := NewFactory(reach, nil, slog.New(slog.DiscardHandler))
			made, err := factory.client(accountOf(config.S3{PathStyle: aws.Bool(true), Profile: tc.profile}))
			must.OK(t, err)
			made.checksums.Store(!tc.unchecked)
			err = ways["put"](t, made.Client, name, "file", []byte("content"))
			if code := s3error.Code(err); code != tc.code || (err != nil) != (tc.code != "") {
				t.Errorf("got error %v, want %q", err, tc.code)
			}
			if len(seen.requests) != tc.requests {
				t.Errorf("got %d requests, want %d", len(seen.requests), tc.requests)
			}
		})
	}
}

// If two clients store the same bytes under a new name, one of them stores nothing. Both responses are the same, and
// the ETag matches both clients, so only the metadata shows which client stored the object.
func TestConfirmStoredByName(t *testing.T) {
	for name, there := range map[string]string{"ours": "ours", "of-another-client": "other", "without-name": ""} {
		t.Run(name, func(t *testing.T) {
			s := s3test.Start(t, "sim-aws")
			reach, bucket, key := s.AWSConfig(), s.Bucket(t), "lock"
			seen := watch(reach)
			seen.answer = func(response *http.Response) {
				response.Header.Set("Server", "VERSITYGW")
				response.Header.Del("X-Amz-Checksum-Type")
				if response.Request.Method == http.MethodHead {
					response.Header.Set("X-Amz-Meta-"+driver.WriteMetadata, there)
				}
			}
			_, err := clientOf(t, reach).PutObject(t.Context(), &s3.PutObjectInput{
				Bucket: &bucket, Key: &key, Body: bytes.NewReader([]byte("locked")), IfNoneMatch: aws.String("*"),
				Metadata: map[string]string{driver.WriteMetadata: "ours"},
			})
			if stored := there == "ours"; stored != (err == nil) || !stored &&
				s3error.Code(err) != "PreconditionFailed" {
				t.Errorf("unexpected error: %v", err)
			}
		})
	}
}

// If a server keeps refusing a request, the request fails after maxAttempts.
func TestStoreOverDirectory(t *testing.T) {
	s := s3test.Start(t, "versitygw")
	bucket := s.Bucket(t)
	reach := s.AWSConfig()
	seen := watch(reach)
	client := clientOf(t, reach)
	must.OK(t, ways["put"](t, client, bucket, "directory/file", nil))
	err := ways["put"](t, client, bucket, "directory", []byte("content"))
	if refused, ok := errors.AsType[smithy.APIError](err); !ok || refused.ErrorCode() != "ExistingObjectIsDirectory" {
		t.Errorf("got error %v, want ExistingObjectIsDirectory", err)
	}
	if n := len(seen.requests); n < 3 || n > 10 {
		t.Errorf("got %d requests", n)
	}
	seen.requests, seen.answer = nil, func(response *http.Response) { response.Header.Set("Server", "nginx") }
	if err := ways["put"](t, client, bucket, "directory", []byte("content")); err == nil || len(seen.requests) != 1 {
		t.Errorf("unknown server: got %d requests, error %v", len(seen.requests), err)
	}
}
