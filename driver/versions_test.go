package driver_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// A file and a directory whose names cannot be sent in XML are deleted. Those whose names have U+FFFD instead must
// stay.
func TestVersionedControlCharacters(t *testing.T) {
	s := s3test.Start(t, "minio")
	p := profile(t, s)
	p.GhostPrefixes = true
	for _, bucket := range []string{s.VersionedBucket(t), s.LockedBucket(t)} {
		client := s.Client()
		f := drivertest.MustNew(t.Context(), client, bucket, &driver.Options{Profile: p})
		for _, name := range []string{"\x01", "\ufffd"} {
			must.OK(t, errors.Join(afero.WriteFile(f, "file"+name, nil, 0), f.Mkdir("dir"+name, 0)))
		}
		if err := f.RemoveFile("file\x01"); err != nil {
			t.Error(err)
		}
		// Under Object Lock, MinIO accepts only a request with XML for this, in which it does not accept references
		// like &#x1;
		if err := f.RemoveDir("dir\x01"); err == nil == strings.HasPrefix(bucket, "locked") {
			t.Errorf("the directory was removed in %s: %v", bucket, err)
		}
		left := s3test.Objects(t, client, bucket)
		if !slices.Contains(left, "file\ufffd") || !slices.Contains(left, "dir\ufffd/") || slices.Contains(left, "file\x01") {
			t.Errorf("unexpected keys in %s: %q", bucket, left)
		}
	}
}
