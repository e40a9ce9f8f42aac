package driver_test

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// TestPanics checks that a panic in a goroutine of the driver reaches the caller as an error or as a panic. It must not
// end the process or publish anything.
func TestPanics(t *testing.T) {
	t.Parallel()
	p, server := simulated(t, "aws")
	spy := drivertest.NewSpy(server.Client(nil))
	f := drivertest.MustNew(
		t.Context(), spy, "bucket", &driver.Options{Profile: p, Objects: driver.Objects{ListSetTimes: true}})
	write := func(name string) error {
		return drivertest.WriteAt(f, name, os.O_CREATE|os.O_TRUNC, 0, make([]byte, 12<<20))
	}
	must.OK(t, write("dir/file"))
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
			entries, err := f.List("dir")
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
			spy.Before(func(_ context.Context, operation string, _ any) error {
				if operation == tt.operation {
					panic("a bug in " + operation)
				}
				return nil
			})
			err := panics.Catch(tt.do)
			spy.Before(nil)
			if _, ok := errors.AsType[*panics.Error](err); !ok {
				t.Errorf("unexpected error: %v", err)
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
