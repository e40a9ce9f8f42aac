package driver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

// lateCompletion is the time after which a slow server performs a request to complete an upload, long after the client
// has given up.
const lateCompletion = 8 * time.Minute

// onOverlapping runs a test in virtual time on a server that completes an upload even if it aborts the upload at the
// same time.
func onOverlapping(t *testing.T, run func(x *journalTest)) {
	synctest.Test(t, func(t *testing.T) {
		profile, _ := driver.ProfileNamed("swift")
		server := s3sim.New(s3sim.Options{Profile: profile, AbortsOverlap: true, MinPartSize: journalPart})
		server.CreateBucket(journalBucket)
		run(&journalTest{t, server, profile})
	})
}

// wantWhole checks the content of a file.
func (x *journalTest) wantWhole(name string, content []byte) {
	x.Helper()
	f, _, _ := x.replica(x.Context(), "")
	if got, err := afero.ReadFile(f, name); err != nil || !bytes.Equal(got, content) {
		x.Errorf("%s: got %d bytes, want %d, or the content differs: %v", name, len(got), len(content), err)
	}
}

// While S3 completes the copy of one file in a directory, the copy of another one is refused. The rename fails, and the
// first file must not lose any data.
func TestRenameRefusedDuringCompletion(t *testing.T) {
	t.Parallel()
	onOverlapping(t, func(x *journalTest) {
		const size = 2 * journalPart
		content := patterned(size)
		plain, _, _ := x.replica(x.Context(), "")
		for _, name := range []string{"d/a", "d/b"} {
			if err := afero.WriteFile(plain, name, content, 0); err != nil {
				x.Fatal(err)
			}
		}
		client := x.s3.Client(&s3sim.Caller{Fault: func(o s3sim.Operation) s3sim.Fault {
			switch {
			case o.Name == "CompleteMultipartUpload" && o.Key == "e/a":
				return s3sim.Fault{Before: 20 * time.Second}
			case o.Name == "UploadPartCopy" && o.Key == "e/b":
				return s3sim.Fault{Before: 10 * time.Second, Status: http.StatusForbidden, Code: "AccessDenied"}
			}
			return s3sim.Fault{}
		}})
		byParts := driver.Options{CopyLimit: journalPart}
		failing := x.files(x.Context(), client, byParts)
		if err := failing.Rename("d", "e"); !errors.Is(err, fs.ErrPermission) {
			x.Fatalf("unexpected error of the rename: %v", err)
		}
		time.Sleep(time.Minute)
		again := x.files(x.Context(), x.s3.Client(nil), byParts)
		if err := again.Rename("d", "e"); err != nil {
			x.Fatal(err)
		}
		x.wantWhole("e/a", content)
		x.wantWhole("e/b", content)
	})
}

// S3 performs a request to complete an upload long after its client has given up, or never. Whatever happens in
// between, the file that appears must be complete, and nothing may be left in the end.
func TestLateCompletion(t *testing.T) {
	t.Parallel()
	content := patterned(2*journalPart + 1)
	for name, between := range map[string]func(x *journalTest, f *drivertest.Fs, j *driver.Journal) error{
		"nothing": func(*journalTest, *drivertest.Fs, *driver.Journal) error { return nil },
		"removed": func(_ *journalTest, f *drivertest.Fs, _ *driver.Journal) error {
			if err := f.RemoveFile("file"); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		},
		"stored": func(_ *journalTest, f *drivertest.Fs, _ *driver.Journal) error {
			return afero.WriteFile(f, "file", content, 0)
		},
		"swept": func(x *journalTest, _ *drivertest.Fs, j *driver.Journal) error {
			if n, err := j.Sweep(x.Context(), 0); n != 0 || err != nil {
				return fmt.Errorf("%d uploads were swept: %w", n, err)
			}
			return nil
		},
		"aborted-by-an-administrator": func(x *journalTest, _ *drivertest.Fs, j *driver.Journal) error {
			pending, _, err := j.Pending(x.Context(), 1)
			if err != nil || len(pending) != 1 {
				return fmt.Errorf("%d uploads are pending: %w", len(pending), err)
			}
			if err := j.Abort(x.Context(), pending[0].ID); !errors.Is(err, syscall.EBUSY) {
				return fmt.Errorf("the abort ended with %w", err)
			}
			return nil
		},
		"resumed": func(x *journalTest, f *drivertest.Fs, _ *driver.Journal) error {
			if n := x.pending(f); n != 0 {
				return fmt.Errorf("%d bytes can be resumed", n)
			}
			return nil
		},
	} {
		for _, owner := range []string{"", "alice"} {
			if name == "resumed" && owner == "" {
				continue
			}
			for _, performed := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s/owner=%s/performed=%t", name, owner, performed), func(t *testing.T) {
					onOverlapping(t, func(x *journalTest) {
						x.completeLate(owner, content, performed)
						time.Sleep(3 * time.Minute) // until the session counts as dead
						f, j, _ := x.replica(x.Context(), owner)
						if err := between(x, f, j); err != nil {
							x.Error(err)
						}
						time.Sleep(lateCompletion)
						if performed {
							x.wantWhole("file", content)
						}
						time.Sleep(time.Hour)
						if _, err := j.Sweep(x.Context(), time.Minute); err != nil {
							x.Fatal(err)
						}
						x.wantFile(content)
						if performed || name == "stored" {
							x.wantWhole("file", content)
						}
					})
				})
			}
		}
	}
}

// completeLate stores a file on a server that does not respond to the request to complete the upload.
func (x *journalTest) completeLate(owner string, content []byte, performed bool) {
	x.Helper()
	received := false
	client := x.s3.Client(&s3sim.Caller{Fault: func(o s3sim.Operation) s3sim.Fault {
		if o.Name != "CompleteMultipartUpload" || received {
			return s3sim.Fault{}
		}
		received = true
		return s3sim.Fault{Before: lateCompletion, LoseRequest: !performed}
	}})
	j := driver.NewEndpoint().NewJournal(client, journalBucket, "", x.profile, driver.Objects{}, nil)
	ctx, end := context.WithCancel(x.Context())
	defer end()
	f := x.files(ctx, client, driver.Options{Journal: j, Owner: owner})
	if err := afero.WriteFile(f, "file", content, 0); !errors.Is(err, syscall.EAGAIN) {
		x.Fatalf("unexpected error of the upload: %v", err)
	}
	if n := len(x.records()); n != 1 {
		x.Errorf("there are %d records: %s", n, strings.Join(x.records(), ", "))
	}
}
