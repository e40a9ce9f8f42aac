package driver_test

import (
	"bytes"
	"crypto/md5"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// TestCustomerKey does everything with objects that S3 cannot read without a key of ours.
func TestCustomerKey(t *testing.T) {
	s := s3test.Start(t, "minio-tls")
	client, bucket := s.Client(), s.Bucket(t)
	spy := drivertest.NewSpy(client)
	f := drivertest.MustNew(
		t.Context(), driver.WithCustomerKey(spy, bytes.Repeat([]byte{7}, 32)), bucket, &driver.Options{
			PartSize: 5 << 20, CopyLimit: 10 << 20, Profile: profile(t, s),
		})
	large := bytes.Repeat([]byte("0123456789"), 1<<20+1)
	for name, content := range map[string][]byte{"dir/small": []byte("content"), "dir/large": large} {
		if err := afero.WriteFile(f, name, content, 0); err != nil {
			t.Fatalf("write %s: %v", name, err)
		}
		if _, err := client.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &bucket, Key: &name}); err == nil {
			t.Errorf("%s can be had without the key", name)
		}
	}
	if err := f.Mkdir("dir/empty", 0); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"dir/small", "dir/large"} {
		w, err := f.OpenAt(name, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, "!"); err != nil {
			t.Error(err)
		}
		if err := w.Close(); err != nil {
			t.Errorf("append to %s: %v", name, err)
		}
	}
	spy.After(func(operation string, _ any) error {
		if operation == "PutObject" || operation == "CompleteMultipartUpload" {
			return io.ErrUnexpectedEOF // S3 has done it, and its answer is lost
		}
		return nil
	})
	for _, size := range []int{10, len(large)} {
		if err := afero.WriteFile(f, "lost", large[:size], 0); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	spy.After(nil)
	mtime := time.Unix(1_000_000_000, 0)
	if err := f.Chtimes("dir/large", mtime, mtime); err != nil {
		t.Error(err)
	}
	if err := f.Copy(t.Context(), "dir", "copy"); err != nil {
		t.Error(err)
	}
	if err := f.Rename("dir", "renamed"); err != nil {
		t.Error(err)
	}
	if err := f.Mkdir("empty", 0o755); err != nil {
		t.Error(err)
	}
	if err := f.RemoveDir("empty"); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{"renamed", "copy"} {
		for name, want := range map[string][]byte{"/small": []byte("content!"),
			"/large": append(slices.Clone(large), '!')} {
			got, err := afero.ReadFile(f, dir+name)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s%s has %d bytes, %v; want %d", dir, name, len(got), err, len(want))
			}
		}
		if info, err := f.StatFile(dir + "/large"); err != nil || !info.ModTime().Equal(mtime) {
			t.Errorf("large is described as %v, %v", info, err)
		}
	}
	want := md5.Sum([]byte("content!"))
	if sum, _, err := f.Hash(t.Context(), "copy/small", "MD5", 0, -1); err != nil || !bytes.Equal(sum, want[:]) {
		t.Errorf("the hash is %x, %v; want %x", sum, err, want)
	}
	other := drivertest.MustNew(t.Context(), client, bucket, nil)
	if _, err := other.StatFile("copy/small"); err == nil {
		t.Error("without the key the file can be described")
	}
}
