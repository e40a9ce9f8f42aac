package driver_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// TestCustomerKey runs all operations on objects that S3 can only read with our key.
func TestCustomerKey(t *testing.T) {
	t.Parallel()
	s := s3test.Start(t, "minio-tls")
	client, bucket := s.Client(), s.Bucket(t)
	withKey := s3.WithAPIOptions(driver.CustomerKey(bytes.Repeat([]byte{7}, 32)))
	spy := drivertest.NewSpy(s3.New(client.Options(), withKey))
	f := drivertest.MustNew(
		t.Context(), spy, bucket, &driver.Options{
			PartSize: 5 << 20, CopyLimit: 10 << 20, Profile: profile(t, s),
		})
	must.OK(t, afero.WriteFile(f, "secret", []byte("content"), 0))
	in := &s3.HeadObjectInput{Bucket: &bucket, Key: aws.String("secret")}
	if _, err := client.HeadObject(t.Context(), in); err == nil {
		t.Error("read the file without the key")
	}
	if _, err := drivertest.MustNew(t.Context(), client, bucket, nil).StatFile("secret"); err == nil {
		t.Error("HEAD succeeded without the key")
	}
	spy.After(func(operation string, _ any) error {
		if operation == "PutObject" || operation == "CompleteMultipartUpload" {
			return io.ErrUnexpectedEOF // S3 has performed the request, but its response is lost
		}
		return nil
	})
	for _, size := range []int{10, 11 << 20} {
		if err := afero.WriteFile(f, "lost", make([]byte, size), 0); err != nil {
			t.Errorf("got %d bytes, error %v", size, err)
		}
	}
	spy.After(nil)
	mtime := time.Unix(1_000_000_000, 0)
	if err := f.Chtimes("lost", mtime, mtime); err != nil {
		t.Error(err)
	}
	if info, err := f.StatFile("lost"); err != nil || !info.ModTime().Equal(mtime) {
		t.Errorf("got %v, %v", info, err)
	}
	if err := errors.Join(f.Mkdir("empty", 0o755), f.RemoveDir("empty"), f.RemoveAll("/")); err != nil {
		t.Error(err)
	}
	checkTransfers(t, f, 5<<20)
}
