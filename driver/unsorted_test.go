package driver_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

// If listings are not sorted, a file is found at any position, and so is the marker of a directory. Each entry is
// listed once.
func TestUnsortedListings(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"strict", "aws-directory"} {
		t.Run(name, func(t *testing.T) {
			p, server := simulated(t, name)
			x := drivertest.MustNew(t.Context(), server.Client(nil), "bucket", &driver.Options{Profile: p})
			var want []string
			for i := range 2500 { // several pages
				want = append(want, fmt.Sprintf("foo %04d", i))
			}
			for i, name := range append(want, "foo", "foo.", "bar") {
				server.Put("bucket", s3sim.Object{Key: name})
				if i%100 == 0 {
					server.Put("bucket", s3sim.Object{Key: "dir/" + name})
				}
			}
			for _, name := range []string{"foo", "foo.", "bar"} {
				if err := x.Mkdir(name, 0); !errors.Is(err, fs.ErrExist) {
					t.Errorf("directory replaced by the file %s: %v", name, err)
				}
			}
			if err := x.MkdirAll("dir", 0); err != nil {
				t.Error(err)
			}
			for i := range 20 {
				dir := fmt.Sprintf("marked-%d", i)
				must.OK(t, x.Mkdir(dir, 0))
				server.Put("bucket", s3sim.Object{Key: dir + "/file"})
				info, err := x.StatDir(dir)
				if err != nil || info.ModTime().IsZero() {
					t.Errorf("%s: %v, %v", dir, info, err)
				}
				want = append(want, dir)
			}
			want = append(want, "foo", "foo.", "bar", "dir")
			entries, err := x.List("")
			must.OK(t, err)
			var got []string
			for info, err := range entries {
				must.OK(t, err)
				got = append(got, info.Name())
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("got %d entries, want %d", len(got), len(want))
			}
		})
	}
}
