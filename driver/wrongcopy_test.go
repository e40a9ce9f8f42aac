package driver_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

// TestWrongCopy replaces a file right before S3 copies it, on a server that compares no ETags of sources, and whose
// ETags show nothing of the bytes. The copy is one of the later file, and must not be in the way of the next attempt.
// What another client has stored in its place must stay, also the same bytes.
func TestWrongCopy(t *testing.T) {
	t.Parallel()
	const key = "new/file"
	for _, label := range []string{"copy", "equal-file-in-its-place"} {
		t.Run(label, func(t *testing.T) {
			p, _ := driver.ProfileNamed("swift")
			p.MD5ETags = false
			server := s3sim.New(s3sim.Options{Profile: p})
			server.CreateBucket("bucket")
			spy := drivertest.NewSpy(server.Client(nil))
			f := drivertest.MustNew(t.Context(), spy, "bucket", &driver.Options{Profile: p})
			put := func(key, content string) {
				in := &s3.PutObjectInput{Bucket: aws.String("bucket"), Key: &key, Body: strings.NewReader(content)}
				if _, err := server.Client(nil).PutObject(t.Context(), in); err != nil {
					t.Error(err)
				}
			}
			keys := func() (all []string) {
				for _, o := range server.Objects("bucket") {
					all = append(all, o.Key)
				}
				slices.Sort(all)
				return all
			}
			must.OK(t, afero.WriteFile(f, "old/file", []byte("first"), 0))
			spy.Before(func(_ context.Context, operation string, _ any) error {
				if operation == "CopyObject" {
					put("old/file", "later")
				}
				return nil
			})
			left := []string{"old/file"}
			if label != "copy" {
				left = []string{key, "old/file"}
				spy.After(func(operation string, _ any) error {
					if operation == "CopyObject" {
						put(key, "later")
					}
					return nil
				})
			}
			err := f.Rename("old", "new")
			spy.Before(nil)
			spy.After(nil)
			if !errors.Is(err, syscall.EAGAIN) || !slices.Equal(keys(), left) {
				t.Fatalf("it ended with %v, and there are %q; want %v and %q", err, keys(), syscall.EAGAIN, left)
			}
			if label != "copy" {
				return
			}
			if err := f.Rename("old", "new"); err != nil || !slices.Equal(keys(), []string{key}) {
				t.Errorf("the next attempt ended with %v, and there are %q", err, keys())
			}
		})
	}
}

// TestRightCopy replaces a file right after S3 has copied it, on a server that compares no ETags of sources. The ETag
// of the copy shows that it is the right one, and it stays.
func TestRightCopy(t *testing.T) {
	t.Parallel()
	p, server := simulated(t, "swift")
	spy := drivertest.NewSpy(server.Client(nil))
	f := drivertest.MustNew(t.Context(), spy, "bucket", &driver.Options{Profile: p})
	must.OK(t, afero.WriteFile(f, "old/file", []byte("first"), 0))
	spy.After(func(operation string, _ any) error {
		if operation != "CopyObject" {
			return nil
		}
		spy.After(nil)
		return afero.WriteFile(f, "old/file", []byte("later"), 0)
	})
	if err := f.Rename("old", "new"); !errors.Is(err, syscall.EAGAIN) {
		t.Errorf("it ended with %v", err)
	}
	for name, want := range map[string]string{"old/file": "later", "new/file": "first"} {
		if content, err := afero.ReadFile(f, name); err != nil || string(content) != want {
			t.Errorf("%s has %q, %v", name, content, err)
		}
	}
}
