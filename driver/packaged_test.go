package driver_test

import (
	"flag"
	"slices"
	"testing"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

var packagedAll = flag.Bool("packaged.all", false, "run the whole suite on Ceph and OpenStack Swift")

// TestConformancePackaged runs the suite on the servers that Debian's packages bring: Ceph and OpenStack Swift. All of
// it takes half an hour (make s3-servers), so make test runs the groups that take seconds.
func TestConformancePackaged(t *testing.T) {
	groups := []string{"stat", "write", "append", "mkdir", "remove"}
	if *packagedAll {
		groups = nil
	}
	s3test.RunPackaged(t, func(t *testing.T, s *s3test.Server) { conform(t, s, groups...) })
}

// A page of a listing may end with a name that has characters which XML does not have, or the character that others
// write for them. Ceph's token of the next page is that name.
func TestPagesPackaged(t *testing.T) {
	s3test.RunPackaged(t, func(t *testing.T, s *s3test.Server) {
		x := &prober{ctx: t.Context(), client: s.Client(), bucket: s.Bucket(t)}
		want := []string{"d/\x01a", "d/\x02/", "d/\n", "d/\r\x1b", "d/\ufffd", "d/\ufffd\x01", "d/\ufffe"}
		for _, key := range want {
			if err := x.put(key, ""); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		bucket := s3api.NewBucket(x.client, x.bucket, profile(t, s), &s3api.Stats{}, time.Minute)
		for page, err := range bucket.Pages(t.Context(), s3api.Listing{Prefix: "d/", Delimiter: "/", Limit: 1}) {
			if err != nil {
				t.Fatal(err)
			}
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
