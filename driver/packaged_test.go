package driver_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

var packagedAll = flag.Bool("packaged.all", false, "run the whole suite on Ceph and OpenStack Swift")

// TestConformancePackaged runs the suite on the servers that are packaged in Debian: Ceph and OpenStack Swift. The
// whole suite takes half an hour (make s3-servers), so make test runs only the groups that take seconds.
func TestConformancePackaged(t *testing.T) {
	t.Parallel()
	groups := []string{"stat", "write", "append", "mkdir", "remove"}
	if *packagedAll {
		groups = nil
	}
	s3test.RunPackaged(t, func(t *testing.T, s *s3test.Server) { conform(t, s, groups...) })
}

// A page of a listing may end with a name that has characters that XML does not allow, or the character that other
// servers write instead. Ceph's token for the next page is this name.
func TestPagesPackaged(t *testing.T) {
	t.Parallel()
	s3test.RunPackaged(t, func(t *testing.T, s *s3test.Server) {
		x := &prober{ctx: t.Context(), client: s.Client(), bucket: s.Bucket(t)}
		want := []string{"d/\x01a", "d/\x02/", "d/\n", "d/\r\x1b", "d/\ufffd", "d/\ufffd\x01", "d/\ufffe"}
		for _, key := range want {
			must.OK(t, x.put(key, ""))
		}
		var got []string
		bucket := s3api.NewBucket(x.client, x.bucket, profile(t, s), &s3api.Stats{}, time.Minute)
		for page, err := range bucket.Pages(t.Context(), s3api.Listing{Prefix: "d/", Delimiter: "/", Limit: 1}) {
			must.OK(t, err)
			for _, v := range page.Versions {
				got = append(got, v.Key)
			}
			got = append(got, page.Prefixes...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestVersionsOnCeph renames files and directories in a bucket with versioning, and lists their past. The names have
// characters that XML does not allow, or look encoded, and a page of a listing has two versions. Ceph repeats the
// markers of pages without encoding.
func TestVersionsOnCeph(t *testing.T) {
	s := s3test.Start(t, "ceph")
	t.Parallel()
	client, bucket := s.Client(), s.VersionedBucket(t)
	spy, o := drivertest.NewSpy(client), &driver.Options{Profile: profile(t, s)}
	f := drivertest.MustNew(t.Context(), spy, bucket, o)
	for i, name := range []string{"é", "\x01", "%41", "1+", "100%", "\uffff", "\ufffd"} {
		for of, files := range map[string][]string{
			"file" + name: {""}, "dir" + name: {"/1", "/2", "/3"}, fmt.Sprint(i): {"/1" + name, "/2" + name, "/3" + name},
		} {
			t.Run(fmt.Sprintf("%q", of), func(t *testing.T) {
				for _, file := range files {
					write(t, f, of+file, "first")
					write(t, f, of+file, "second")
				}
				must.OK(t, f.Rename(of, "new/"+of))
				pages := 0
				spy.Before(func(_ context.Context, _ string, in any) error {
					if in, ok := in.(*s3.ListObjectVersionsInput); ok {
						in.MaxKeys = aws.Int32(2)
						if pages++; pages > 50 {
							return errors.New("the pages have no end")
						}
					}
					return nil
				})
				last := files[len(files)-1]
				if got, err := afero.ReadFile(f, "new/"+of+last); string(got) != "second" || err != nil {
					t.Errorf("%q has %q, %v", "new/"+of+last, got, err)
				}
				var listed []string
				entries, err := f.At(driver.Moment{Time: time.Now().Add(time.Hour)}).List(path.Dir("new/" + of + last))
				must.OK(t, err)
				for entry, err := range entries {
					must.OK(t, err)
					listed = append(listed, entry.Name())
				}
				for _, file := range files {
					if name := path.Base(of + file); !slices.Contains(listed, name) {
						t.Errorf("missing %q in the earlier listing: %q", name, listed)
					}
				}
			})
		}
	}
}
