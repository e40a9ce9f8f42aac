// Package store keeps what ACME needs in a bucket: the account, keys, certificates and challenges of several servers (S3 operations PutObject,
// GetObject, HeadObject, ListObjectsV2, DeleteObject).
//
// A [Store] is a [certmagic.Storage]. Its keys begin with the prefix and ".babelftp/acme/". No FTP user sees such a key, whatever the prefixes
// of the tenants are, because package keys of the driver reserves the name.
package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/caddyserver/certmagic"

	"github.com/babelftp/babelftp/internal/s3error"
)

const (
	// requestTimeout bounds each request to S3.
	requestTimeout = 30 * time.Second
	// maxValue bounds the size of a value, in bytes. A chain of certificates has some thousand.
	maxValue = 1 << 20
)

// A Client is the part of S3 that a Store uses.
type Client interface {
	HeadObject(context.Context, *s3.HeadObjectInput, ...func(*s3.Options)) (*s3.HeadObjectOutput, error)
	GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error)
	DeleteObject(context.Context, *s3.DeleteObjectInput, ...func(*s3.Options)) (*s3.DeleteObjectOutput, error)
	ListObjectsV2(context.Context, *s3.ListObjectsV2Input, ...func(*s3.Options)) (*s3.ListObjectsV2Output, error)
}

// A Store is a part of a bucket. Several servers share it.
type Store struct {
	bucket string
	folder string // what the keys begin with
	log    *slog.Logger
	times  times

	mu     sync.Mutex
	client Client
	locks  map[string]*lock // that this process has, by name
}

var _ certmagic.Storage = (*Store)(nil)

// New makes a Store below a prefix of a bucket, without a request.
func New(client Client, bucket, prefix string, log *slog.Logger) *Store {
	return &Store{client: client, bucket: bucket, folder: prefix + ".babelftp/acme/", log: log, times: defaultTimes(), locks: map[string]*lock{}}
}

// Use makes the next requests by another client, which has other credentials for example.
func (s *Store) Use(client Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client = client
}

func (s *Store) s3() Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client
}

// String is the place, as a URL.
func (s *Store) String() string { return "s3://" + s.bucket + "/" + s.folder }

func (s *Store) failed(do, key string, err error) error {
	return fmt.Errorf("cannot %s %s: %w", do, s.String()+key, err)
}

// Store implements [certmagic.Storage].
func (s *Store) Store(ctx context.Context, key string, value []byte) error {
	ctx, done := context.WithTimeout(ctx, requestTimeout)
	defer done()
	_, err := s.s3().PutObject(ctx, &s3.PutObjectInput{Bucket: &s.bucket, Key: aws.String(s.folder + key), Body: bytes.NewReader(value)})
	if err != nil {
		return s.failed("store", key, err)
	}
	return nil
}

// Load implements [certmagic.Storage].
func (s *Store) Load(ctx context.Context, key string) ([]byte, error) {
	ctx, done := context.WithTimeout(ctx, requestTimeout)
	defer done()
	out, err := s.s3().GetObject(ctx, &s3.GetObjectInput{Bucket: &s.bucket, Key: aws.String(s.folder + key)})
	if s3error.HasCode(err, "NoSuchKey") {
		return nil, s.failed("load", key, fs.ErrNotExist)
	}
	if err != nil {
		return nil, s.failed("load", key, err)
	}
	defer out.Body.Close()
	value, err := io.ReadAll(io.LimitReader(out.Body, maxValue))
	if err != nil {
		return nil, s.failed("load", key, err)
	}
	return value, nil
}

// Delete implements [certmagic.Storage].
func (s *Store) Delete(ctx context.Context, key string) error {
	below, err := s.List(ctx, key, true)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, key := range append(below, key) {
		if err := s.deleteObject(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) deleteObject(ctx context.Context, key string) error {
	ctx, done := context.WithTimeout(ctx, requestTimeout)
	defer done()
	_, err := s.s3().DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: aws.String(s.folder + key)})
	if err != nil && !s3error.HasCode(err, "NoSuchKey") {
		return s.failed("delete", key, err)
	}
	return nil
}

// Exists implements [certmagic.Storage].
func (s *Store) Exists(ctx context.Context, key string) bool {
	_, err := s.Stat(ctx, key)
	return err == nil
}

// List implements [certmagic.Storage].
func (s *Store) List(ctx context.Context, path string, recursive bool) ([]string, error) {
	in := &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: aws.String(s.folder + strings.TrimSuffix(path, "/") + "/")}
	if path == "" {
		in.Prefix = &s.folder
	}
	if !recursive {
		in.Delimiter = aws.String("/")
	}
	var found []string
	for pages := s3.NewListObjectsV2Paginator(s.s3(), in); pages.HasMorePages(); {
		pageCtx, done := context.WithTimeout(ctx, requestTimeout)
		page, err := pages.NextPage(pageCtx)
		done()
		if err != nil {
			return nil, s.failed("list", path, err)
		}
		for _, o := range page.Contents {
			found = append(found, strings.TrimPrefix(aws.ToString(o.Key), s.folder))
		}
		for _, p := range page.CommonPrefixes {
			found = append(found, strings.TrimSuffix(strings.TrimPrefix(aws.ToString(p.Prefix), s.folder), "/"))
		}
	}
	if len(found) == 0 {
		return nil, s.failed("list", path, fs.ErrNotExist)
	}
	return found, nil
}

// Stat implements [certmagic.Storage].
func (s *Store) Stat(ctx context.Context, key string) (certmagic.KeyInfo, error) {
	head, err := s.head(ctx, key)
	if err == nil {
		return certmagic.KeyInfo{Key: key, Modified: aws.ToTime(head.LastModified), Size: aws.ToInt64(head.ContentLength), IsTerminal: true}, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		if _, err = s.List(ctx, key, false); err == nil {
			return certmagic.KeyInfo{Key: key}, nil
		}
	}
	return certmagic.KeyInfo{}, err
}

func (s *Store) head(ctx context.Context, key string) (*s3.HeadObjectOutput, error) {
	ctx, done := context.WithTimeout(ctx, requestTimeout)
	defer done()
	head, err := s.s3().HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: aws.String(s.folder + key)})
	if s3error.HasCode(err, "NotFound", "NoSuchKey") {
		return nil, s.failed("look at", key, fs.ErrNotExist)
	}
	if err != nil {
		return nil, s.failed("look at", key, err)
	}
	return head, nil
}
