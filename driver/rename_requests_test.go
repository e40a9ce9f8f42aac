package driver_test

import (
	"context"
	"errors"
	"fmt"
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

// TestRenameRequests counts the requests to rename a directory of three files. Two look for a file of each name, and
// for a directory of the new one. One lists the old directory. Three look at the files, and three copy them. Two list
// both directories, and one deletes. Where S3 has no condition for copies, or deletes one by one, a request looks
// right before each. Where it does not compare the source of a copy, one looks at the source after each. Files that
// were stored within the last second are looked at once more where S3 deletes several at once.
func TestRenameRequests(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"aws": 12, "aws-directory": 13, "minio": 15, "ceph": 18, "r2": 15, "gcs": 15,
		"versitygw": 20, "strict": 21} {
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
	rename := func(from, to string, want int) {
		spy.Reset()
		must.OK(t, f.Rename(from, to))
		if n := spy.Total(); n != want {
			t.Errorf("it took %d requests, %v; want %d", n, spy.Counts(), want)
		}
	}
	time.Sleep(time.Minute)
	rename("dir", "new", want)
	if p.BatchDelete && (p.ConditionalBatchDelete || !p.ConditionalDelete && p.SortedListings) {
		want += files
	}
	rename("new", "dir", want)
}

// TestRenameBackDuringRename lets another process rename a file or a directory back when all has been copied, and the
// old name is about to be deleted. ETags and times do not tell the files that it would store there from the old ones.
func TestRenameBackDuringRename(t *testing.T) {
	t.Parallel()
	for _, profile := range driver.ProfileNames() {
		for what, name := range map[string]string{"file": "old", "directory": "old/1"} {
			for _, operation := range []string{"ListObjectsV2", "HeadObject", "Delete"} {
				for back, deny := range map[string]bool{"overwrites": false, "keeps-files": true} {
					t.Run(profile+"/"+what+"/"+operation+"/"+back, func(t *testing.T) {
						testRenameBackDuringRename(t, profile, name, operation, deny)
					})
				}
			}
		}
	}
}

// testRenameBackDuringRename renames back before the first request of an operation after the copy.
func testRenameBackDuringRename(t *testing.T, profile, name, before string, deny bool) {
	p, server := simulated(t, profile)
	spy := drivertest.NewSpy(server.Client(nil))
	opts := driver.Options{Profile: p}
	f := drivertest.MustNew(t.Context(), spy, "bucket", &opts)
	opts.NoOverwrite = deny
	other := drivertest.MustNew(t.Context(), server.Client(nil), "bucket", &opts)
	must.OK(t, afero.WriteFile(f, name, []byte("content"), 0))
	spy.Reset()
	var back sync.Once
	var failed error
	spy.Before(func(_ context.Context, operation string, _ any) error {
		counts := spy.Counts()
		if counts["CopyObject"]+counts["PutObject"] == 1 && strings.HasPrefix(operation, before) {
			back.Do(func() { failed = other.Rename("new", "old") })
		}
		return nil
	})
	err := f.Rename("old", "new")
	spy.Before(nil)
	back.Do(func() { failed = syscall.EAGAIN }) // the rename makes no such request
	if errors.Is(failed, syscall.ENOTEMPTY) {   // nothing proves that the files are copies
		failed = syscall.EAGAIN
	}
	if err != nil || !errors.Is(failed, syscall.EAGAIN) {
		t.Errorf("it ended with %v, and the way back with %v", err, failed)
	}
	if _, err := f.Stat("new" + strings.TrimPrefix(name, "old")); err != nil {
		t.Error(err)
	}
	if err := other.Rename("new", "old"); err != nil {
		t.Errorf("the way back then: %v", err)
	}
}

// TestRenameOfMany renames a directory of more files than one request deletes. When all are copied, another client
// replaces one before the directory is listed the last time, and one of each page after that. S3 has no condition for
// the delete, so the driver lists the files once more.
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
	if err := f.Rename("old", "new"); !errors.Is(err, syscall.EAGAIN) {
		t.Errorf("the rename has ended with %v", err)
	}
	left := 0
	for _, o := range server.Objects("bucket") {
		if strings.HasPrefix(o.Key, "old/") {
			left++
		}
	}
	if left != 3 {
		t.Errorf("%d files are left", left)
	}
	for _, i := range []int{first, second, last} {
		for of, want := range map[string]string{"old": "later", "new": "first"} {
			if got, err := afero.ReadFile(f, name(of, i)); string(got) != want || err != nil {
				t.Errorf("%s has %q, %v, want %q", name(of, i), got, err, want)
			}
		}
	}
}
