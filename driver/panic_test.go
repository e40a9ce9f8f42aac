package driver_test

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/base/panics"
)

// A panickingClient panics in every request of one operation.
type panickingClient struct {
	driver.Client
	operation string
}

func (c *panickingClient) panics(operation string) {
	if c.operation == operation {
		panic("a bug in " + operation)
	}
}

func (c *panickingClient) UploadPart(
	ctx context.Context, in *s3.UploadPartInput, o ...func(*s3.Options),
) (*s3.UploadPartOutput, error) {
	c.panics("UploadPart")
	return c.Client.UploadPart(ctx, in, o...)
}

func (c *panickingClient) GetObject(
	ctx context.Context, in *s3.GetObjectInput, o ...func(*s3.Options),
) (*s3.GetObjectOutput, error) {
	c.panics("GetObject")
	return c.Client.GetObject(ctx, in, o...)
}

func (c *panickingClient) ListObjectsV2(
	ctx context.Context, in *s3.ListObjectsV2Input, o ...func(*s3.Options),
) (*s3.ListObjectsV2Output, error) {
	c.panics("ListObjectsV2")
	return c.Client.ListObjectsV2(ctx, in, o...)
}

func (c *panickingClient) HeadObject(
	ctx context.Context, in *s3.HeadObjectInput, o ...func(*s3.Options),
) (*s3.HeadObjectOutput, error) {
	c.panics("HeadObject")
	return c.Client.HeadObject(ctx, in, o...)
}

func (c *panickingClient) CopyObject(
	ctx context.Context, in *s3.CopyObjectInput, o ...func(*s3.Options),
) (*s3.CopyObjectOutput, error) {
	c.panics("CopyObject")
	return c.Client.CopyObject(ctx, in, o...)
}

// TestPanics: a panic in a goroutine of the driver reaches the caller as an error or as a panic. It does not end the
// process, and publishes nothing.
func TestPanics(t *testing.T) {
	p, server := simulated(t, "aws")
	client := &panickingClient{Client: server.Client(nil)}
	f := drivertest.MustNew(
		t.Context(), client, "bucket", &driver.Options{Profile: p, Objects: driver.Objects{ListSetTimes: true}})
	write := func(name string) error {
		file, err := f.OpenAt(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0)
		if err != nil {
			return err
		}
		_, err = file.Write(make([]byte, 12<<20))
		return errors.Join(err, file.Close())
	}
	if err := write("dir/file"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		operation string
		do        func() error
	}{
		{"UploadPart", func() error { return write("dir/new") }},
		{"GetObject", func() error {
			file, err := f.OpenAt("dir/file", os.O_RDONLY, 0)
			if err != nil {
				return err
			}
			defer file.Close()
			_, err = io.Copy(io.Discard, file)
			return err
		}},
		{"CopyObject", func() error { return f.Rename("dir", "other") }},
		{"ListObjectsV2", func() error { return f.RemoveAll("dir") }},
		{"HeadObject", func() error {
			entries, err := f.ReadDirSeq("dir")
			if err != nil {
				return err
			}
			for _, err := range entries {
				if err != nil {
					return err
				}
			}
			return nil
		}},
		{"HeadObject", func() error { return f.Chtimes("dir/file", time.Time{}, time.Unix(1, 0)) }},
	} {
		t.Run(tt.operation, func(t *testing.T) {
			client.operation = tt.operation
			err := panics.Catch(tt.do)
			client.operation = ""
			if _, ok := errors.AsType[*panics.Error](err); !ok {
				t.Errorf("error is %v", err)
			}
			if _, err := f.Stat("dir/file"); err != nil {
				t.Error(err)
			}
			if _, err := f.Stat("dir/new"); err == nil {
				t.Error("a part of a file was published")
			}
		})
	}
}
