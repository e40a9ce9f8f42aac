package driver_test

import (
	"bytes"
	"cmp"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// TestObjectLock works in a bucket whose objects cannot be deleted for a day. It fails requests that AWS would refuse
// there.
func TestObjectLock(t *testing.T) {
	t.Parallel()
	s := s3test.Start(t, "minio")
	plain := profile(t, s)
	plain.Checksums = false
	for name, p := range map[string]driver.Profile{"checksums": profile(t, s), "no-checksums": plain} {
		p.GhostPrefixes = true
		t.Run(name, func(t *testing.T) { testObjectLock(t, s, p) })
	}
}

func testObjectLock(t *testing.T, s *s3test.Server, p driver.Profile) {
	t.Helper()
	checked := &checksummed{to: &http.Client{}}
	client := s.Client(s3client.RetryUnstored(""), func(o *s3.Options) { o.HTTPClient = checked })
	bucket := s.LockedBucket(t)
	f := drivertest.MustNew(t.Context(), client, bucket, &driver.Options{Profile: p, PartSize: 5 << 20})
	large := make([]byte, 11<<20)
	write := func(name string, flag int, offset int64, content []byte) error {
		return drivertest.WriteAt(f, name, flag, offset, content)
	}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"MKD", func() error { return f.Mkdir("dir", 0) }},
		{"STOR", func() error { return afero.WriteFile(f, "dir/file", []byte("content"), 0) }},
		{"APPE-to-a-small-file", func() error { return write("dir/file", os.O_APPEND, 0, []byte("more")) }},
		{"STOR-by-parts", func() error { return afero.WriteFile(f, "dir/large", large, 0) }},
		{"APPE", func() error { return write("dir/large", os.O_APPEND, 0, []byte("more")) }},
		{"REST", func() error { return write("dir/large", 0, 6<<20, []byte("in the middle")) }},
		{"APPE-by-parts", func() error { return write("dir/large", os.O_APPEND, 0, large) }},
		{"STOR-by-another-program", func() error {
			_, err := s.Client().PutObject(t.Context(), &s3.PutObjectInput{
				Bucket: &bucket, Key: new("dir/foreign"), Body: bytes.NewReader(large), ContentMD5: new(sumOf(large)),
			}, func(o *s3.Options) { o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired })
			return err
		}},
		{"APPE-to-that", func() error { return write("dir/foreign", os.O_APPEND, 0, []byte("more")) }},
		{"REST-to-that", func() error { return write("dir/foreign", 0, 6<<20, []byte("in the middle")) }},
		{"RNTO", func() error { return f.Rename("dir/file", "dir/renamed") }},
		{"DELE", func() error { return f.Remove("dir/renamed") }},
		{"DELE-large", func() error { return errors.Join(f.Remove("dir/large"), f.Remove("dir/foreign")) }},
		{"RMD", func() error { return f.RemoveDir("dir") }},
		{"MKD-again", func() error { return f.Mkdir("dir", 0) }},
		{"RNTO-of-a-directory", func() error { return f.Rename("dir", "moved") }},
	} {
		if err := step.do(); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
	}
	infos, err := afero.ReadDir(f, "/") // MinIO also lists names that have only delete markers
	if err != nil || len(infos) != 1 || infos[0].Name() != "moved" {
		t.Errorf("got listing %v, %v; want only moved files", infos, err)
	}
	if err := errors.Join(
		afero.WriteFile(f, "gone/sub/file", []byte("content"), 0), f.Remove("gone/sub/file")); err != nil {
		t.Error(err)
	}
	if infos, err := f.List("gone"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got listing %v, %v of a removed directory", infos, err)
	}
	if checked.sums.Load() == 0 {
		t.Error("no part has a Content-MD5")
	}
}

func sumOf(content []byte) string {
	sum := md5.Sum(content)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// checksummed allows requests that store something or delete many objects only if they have what AWS requires in a
// bucket with a default retention: a checksum, in a header or a trailer, or a Content-MD5.
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-lock-managing.html
type checksummed struct {
	to   s3.HTTPClient
	sums atomic.Int64 // number of parts with a Content-MD5
}

func (c *checksummed) Do(r *http.Request) (*http.Response, error) {
	stores := r.Method == http.MethodPut && r.Header.Get("X-Amz-Copy-Source") == ""
	deletes := r.Method == http.MethodPost && r.URL.Query().Has("delete")
	if !stores && !deletes {
		return c.to.Do(r)
	}
	sum := r.Header.Get("Content-Md5")
	has := cmp.Or(sum, r.Header.Get("X-Amz-Trailer")) != ""
	for name := range r.Header {
		has = has || strings.HasPrefix(name, "X-Amz-Checksum-")
	}
	if !has {
		return nil, errors.New("AWS refuses this request: it has neither a Content-MD5 nor a checksum")
	}
	if sum != "" && r.Body != nil {
		content, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if sumOf(content) != sum {
			return nil, errors.New("the Content-MD5 is another one")
		}
		r.Body = io.NopCloser(bytes.NewReader(content))
	}
	if sum != "" && r.URL.Query().Has("partNumber") {
		c.sums.Add(1)
	}
	return c.to.Do(r)
}
