package driver_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

// TestRenameRequests counts the requests to rename a directory of three files. Two check for a file with each name, and
// one for a directory with the new name. Each of the three steps lists both directories. For each file, two requests
// check and copy it, and two check and delete it. If S3 does not support conditions for copies, one more request checks
// the target before each copy.
func TestRenameRequests(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"aws": 20, "aws-directory": 21, "minio": 23, "ceph": 23, "r2": 23, "gcs": 23,
		"versitygw": 23, "strict": 24} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { testRenameRequests(t, name, want) }) })
	}
}

func testRenameRequests(t *testing.T, name string, want int) {
	const files = 3
	p, server := simulated(t, name)
	spy := drivertest.NewSpy(server.Client(nil))
	f := drivertest.MustNew(t.Context(), spy, "bucket", &driver.Options{Profile: p})
	for i := range files {
		must.OK(t, afero.WriteFile(f, fmt.Sprintf("dir/%d", i), []byte("content"), 0))
	}
	rename := func(from, to string) {
		spy.Reset()
		must.OK(t, f.Rename(from, to))
		if n := spy.Total(); n != want {
			t.Errorf("got %d requests, %v; want %d", n, spy.Counts(), want)
		}
	}
	rename("dir", "new")
	rename("new", "dir")
}

// TestRenameBackDuringRename lets another process rename a file or a directory back when everything has been copied and
// the old name is about to be deleted. ETags do not distinguish the file that it would store there from the old one, so
// it must wait until the first rename has ended.
func TestRenameBackDuringRename(t *testing.T) {
	t.Parallel()
	for _, profile := range driver.ProfileNames() {
		for what, name := range map[string]string{"file": "old", "directory": "old/1"} {
			for _, operation := range []string{"ListObjectsV2", "HeadObject", "Delete"} {
				for back, deny := range map[string]bool{"overwrites": false, "keeps-files": true} {
					t.Run(profile+"/"+what+"/"+operation+"/"+back, func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							testRenameBackDuringRename(t, profile, name, operation, deny)
						})
					})
				}
			}
		}
	}
}

// testRenameBackDuringRename renames back when the first rename has made its copy and is about to send the request that
// before names.
func testRenameBackDuringRename(t *testing.T, profile, name, before string, deny bool) {
	p, server := simulated(t, profile)
	spy := drivertest.NewSpy(server.Client(nil))
	opts := driver.Options{Profile: p}
	f := drivertest.MustNew(t.Context(), spy, "bucket", &opts)
	opts.NoOverwrite = deny
	other := drivertest.MustNew(t.Context(), server.Client(nil), "bucket", &opts)
	must.OK(t, afero.WriteFile(f, name, []byte("content"), 0))
	spy.Reset()
	var once sync.Once
	ended := make(chan error, 1)
	back := func() { ended <- other.Rename("new", "old") }
	spy.Before(func(_ context.Context, operation string, _ any) error {
		counts := spy.Counts()
		if counts["CopyObject"]+counts["PutObject"] == 1 && strings.HasPrefix(operation, before) {
			once.Do(func() {
				go back()
				time.Sleep(2 * time.Second)
			})
		}
		return nil
	})
	err := f.Rename("old", "new")
	once.Do(back) // if the rename sends no such request
	if backErr := <-ended; err != nil || backErr != nil {
		t.Errorf("unexpected errors of the rename: %v, and of the rename back: %v", err, backErr)
	}
	if got, err := afero.ReadFile(other, name); err != nil || string(got) != "content" {
		t.Errorf("the file has %q, %v", got, err)
	}
	if _, err := other.Stat("new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the copy still exists: %v", err)
	}
}

// TestRenameOfMany renames a directory with more files than a page of a listing. When all files are copied, another
// client replaces a file before the directory is listed for the last time, and then one file of each page.
func TestRenameOfMany(t *testing.T) {
	const files, first, second, last = 1200, 0, 1, 1199
	p, server := simulated(t, "gcs")
	spy := drivertest.NewSpy(server.Client(nil))
	f := drivertest.MustNew(t.Context(), spy, "bucket", &driver.Options{Profile: p})
	name := func(of string, i int) string { return fmt.Sprintf("%s/%04d", of, i) }
	store := func(i int, content string) {
		server.Put("bucket", s3sim.Object{Key: name("old", i), Content: s3sim.Content{[]byte(content)},
			Modified: time.Now().Add(-time.Hour).Truncate(time.Second)})
	}
	for i := range files {
		store(i, "first")
	}
	var copied, listed sync.Once
	spy.After(func(operation string, out any) error {
		if spy.Counts()["CopyObject"] < files {
			return nil
		}
		page, lists := out.(*s3.ListObjectsV2Output)
		switch {
		case !lists && operation != "CopyObject":
		case !lists:
			copied.Do(func() { store(first, "later") })
		case aws.ToString(page.Prefix) == "old/" && !aws.ToBool(page.IsTruncated):
			listed.Do(func() {
				store(second, "later")
				store(last, "later")
			})
		}
		return nil
	})
	if err := f.Rename("old", "new"); !errors.Is(err, syscall.ESTALE) {
		t.Errorf("unexpected error of the rename: %v", err)
	}
	left := 0
	for _, o := range server.Objects("bucket") {
		if strings.HasPrefix(o.Key, "old/") {
			left++
		}
	}
	if left != 3 {
		t.Errorf("got %d files", left)
	}
	for _, i := range []int{first, second, last} {
		for of, want := range map[string]string{"old": "later", "new": "first"} {
			if got, err := afero.ReadFile(f, name(of, i)); string(got) != want || err != nil {
				t.Errorf("%s has %q, %v, want %q", name(of, i), got, err, want)
			}
		}
	}
}
