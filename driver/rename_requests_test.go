package driver_test

import (
	"fmt"
	"testing"

	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/s3sim"
)

// TestRenameRequests counts the requests to rename a directory of three files. Two look for a file of each name, and for a directory of the
// new one. One lists the old directory. Three look at the files, three copy them, and one deletes. Where S3 has no condition for several
// deletes at once, two list both directories again. Where it has none for copies or deletes, a request looks right before each.
func TestRenameRequests(t *testing.T) {
	for name, want := range map[string]int{"aws": 10, "aws-directory": 11, "minio": 15, "ceph": 15, "r2": 15, "gcs": 15, "versitygw": 17, "strict": 21} {
		t.Run(name, func(t *testing.T) {
			p, _ := driver.ProfileNamed(name)
			server := s3sim.New(s3sim.Options{Profile: p})
			server.CreateBucket("bucket")
			spy := drivertest.NewSpy(server.Client(nil))
			f := drivertest.MustNew(t.Context(), spy, "bucket", &driver.Options{Profile: p})
			for i := range 3 {
				if err := afero.WriteFile(f, fmt.Sprintf("dir/%d", i), []byte("content"), 0); err != nil {
					t.Fatal(err)
				}
			}
			spy.Reset()
			if err := f.Rename("dir", "new"); err != nil {
				t.Fatal(err)
			}
			if n := spy.Total(); n > want {
				t.Errorf("it took %d requests, %v; want %d", n, spy.Counts(), want)
			}
		})
	}
}
