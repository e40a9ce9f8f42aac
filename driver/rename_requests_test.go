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

	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
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
		if err := afero.WriteFile(f, fmt.Sprintf("dir/%d", i), []byte("content"), 0); err != nil {
			t.Fatal(err)
		}
	}
	rename := func(from, to string, want int) {
		spy.Reset()
		if err := f.Rename(from, to); err != nil {
			t.Fatal(err)
		}
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

// TestRenameBackDuringRename lets another session move a directory back when all of its files have been copied. Their
// originals are then the only ones, and must stay.
func TestRenameBackDuringRename(t *testing.T) {
	t.Parallel()
	for _, name := range driver.ProfileNames() {
		t.Run(name, func(t *testing.T) {
			p, server := simulated(t, name)
			spy := drivertest.NewSpy(server.Client(nil))
			opts := driver.Options{Profile: p}
			f, other := drivertest.MustNew(t.Context(), spy, "bucket", &opts),
				drivertest.MustNew(t.Context(), server.Client(nil), "bucket", &opts)
			for i := range 3 {
				if err := afero.WriteFile(f, fmt.Sprintf("dir/%d", i), []byte("content"), 0); err != nil {
					t.Fatal(err)
				}
			}
			spy.Reset()
			var back sync.Once
			var backErr error
			spy.Before(func(_ context.Context, operation string, _ any) error {
				counts := spy.Counts()
				if counts["CopyObject"]+counts["PutObject"] == 3 &&
					(operation == "ListObjectsV2" || strings.HasPrefix(operation, "Delete")) {
					back.Do(func() { backErr = other.Rename("new", "dir") })
				}
				return nil
			})
			err := f.Rename("dir", "new")
			spy.Before(nil)
			there := "dir"
			switch {
			case backErr == nil && errors.Is(err, syscall.EAGAIN):
			case errors.Is(backErr, syscall.ENOTEMPTY) && err == nil: // nothing proves that the files are copies
				there = "new"
			default:
				t.Errorf("it ended with %v, and the way back with %v", err, backErr)
			}
			for i := range 3 {
				if _, err := f.Stat(fmt.Sprintf("%s/%d", there, i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
