package driver_test

import (
	"context"
	"errors"
	"io/fs"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

// S3 refuses a replica to delete the file that it has renamed, and the replica is about to remove the copy again. Then
// another client stores the same bytes there, or another replica renames the file to the same name, and may delete it.
// No condition of S3 tells their file from the copy. In a bucket with versions it comes back.
func TestUndoneRename(t *testing.T) {
	t.Parallel()
	for _, profile := range []string{"aws", "gcs", "versitygw"} {
		p, _ := driver.ProfileNamed(profile)
		for name, theirs := range map[string]func(t *testing.T, f *driver.Fs) error{
			"renamed": func(_ *testing.T, f *driver.Fs) error { return f.Rename("old", "new") },
			"stored":  func(_ *testing.T, f *driver.Fs) error { return afero.WriteFile(f, "new", []byte("content"), 0) },
		} {
			t.Run(profile+"/"+name, func(t *testing.T) {
				server := s3sim.New(s3sim.Options{Profile: p, Versioning: true})
				server.CreateBucket("bucket")
				spy := drivertest.NewSpy(server.Client(&s3sim.Caller{Fault: func(o s3sim.Operation) s3sim.Fault {
					if o.Name == "DeleteObject" && o.Key == "old" {
						return s3sim.Fault{Status: 403, Code: "AccessDenied"}
					}
					return s3sim.Fault{}
				}}))
				f := drivertest.MustNew(t.Context(), spy, "bucket", &driver.Options{Profile: p})
				other := drivertest.MustNew(t.Context(), server.Client(nil), "bucket", &driver.Options{Profile: p})
				write(t, other, "old", "content")
				if err := f.Rename("old", "twice"); !errors.Is(err, fs.ErrPermission) { // from now on it knows what to undo
					t.Error(err)
				}
				done := false
				spy.Before(func(_ context.Context, _ string, in any) error {
					if in, ok := in.(*s3.DeleteObjectInput); ok && *in.Key == "new" && !done {
						done = true
						if err := theirs(t, other); err != nil {
							t.Error(err)
						}
					}
					return nil
				})
				if err := f.Rename("old", "new"); err == nil || !done {
					t.Errorf("the rename has ended with %v, and was undone: %v", err, done)
				}
				if got, err := afero.ReadFile(other, "new"); err != nil || string(got) != "content" {
					t.Errorf("what another client has stored is %q, %v", got, err)
				}
			})
		}
	}
}
