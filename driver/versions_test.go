package driver_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// A directory is renamed in a bucket that keeps versions, on a server without conditional deletes, and S3 does not get
// the request that deletes the files of the old name. Another client replaces one of them right before the driver
// deletes it by a second request. The file comes back, as it does after a request that S3 has answered.
func TestVersionedSecondAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		profile, _ := simulated(t, "strict")
		profile.BatchDelete, profile.SortedListings = true, true
		x := &journalTest{t, s3sim.New(s3sim.Options{Profile: profile, Versioning: true}), profile}
		x.s3.CreateBucket(journalBucket)
		other, _, _ := x.replica(x.Context(), "")
		store := func(content string) {
			if err := afero.WriteFile(other, "old/file", []byte(content), 0); err != nil {
				x.Error(err)
			}
		}
		store("first")
		time.Sleep(time.Hour) // so that the driver knows the file again by its age
		lost := false
		client := x.s3.Client(&s3sim.Caller{Fault: func(o s3sim.Operation) s3sim.Fault {
			if o.Name != "DeleteObjects" || lost {
				return s3sim.Fault{}
			}
			lost = true
			return s3sim.Fault{LoseRequest: true}
		}})
		spy := drivertest.NewSpy(client)
		spy.Before(func(_ context.Context, operation string, _ any) error {
			if operation == "DeleteObject" {
				spy.Before(nil)
				store("later")
			}
			return nil
		})
		f := drivertest.MustNew(x.Context(), spy, journalBucket, &driver.Options{Profile: profile})
		if err := f.Rename("old", "new"); !lost || !errors.Is(err, syscall.EAGAIN) {
			x.Errorf("the rename has ended with %v, and the request was lost: %v", err, lost)
		}
		for name, want := range map[string]string{"new/file": "first", "old/file": "later"} {
			if got, err := afero.ReadFile(other, name); err != nil || string(got) != want {
				x.Errorf("%s has %q, %v, want %q", name, got, err, want)
			}
		}
	})
}

// A file and a directory are deleted whose names XML cannot hold. Those whose names have U+FFFD instead stay.
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
		// MinIO refuses that under Object Lock, but for a request that is XML, in which it takes no reference as &#x1;
		if err := f.RemoveDir("dir\x01"); err == nil == strings.HasPrefix(bucket, "locked") {
			t.Errorf("the directory is removed in %s: %v", bucket, err)
		}
		left := s3test.Objects(t, client, bucket)
		if !slices.Contains(left, "file\ufffd") || !slices.Contains(left, "dir\ufffd/") || slices.Contains(left, "file\x01") {
			t.Errorf("what is left in %s is %q", bucket, left)
		}
	}
}

// A directory is renamed whose versions take several pages, on a server without conditional deletes. Another client
// replaces its last file right before all are deleted, and that file comes back.
func TestVersionedPages(t *testing.T) {
	p, _ := simulated(t, "gcs")
	server := s3sim.New(s3sim.Options{Profile: p, PageSize: 3, Versioning: true})
	server.CreateBucket("bucket")
	client := server.Client(nil)
	spy := drivertest.NewSpy(client)
	f := drivertest.MustNew(t.Context(), spy, "bucket", &driver.Options{Profile: p})
	other := drivertest.MustNew(t.Context(), client, "bucket", &driver.Options{Profile: p})
	for _, name := range []string{"1+1", "50%", "é", "ü"} {
		write(t, f, "old/"+name, "first")
	}
	spy.Before(func(_ context.Context, operation string, _ any) error {
		if operation == "DeleteObjects" {
			write(t, other, "old/ü", "later")
		}
		return nil
	})
	if err := f.Rename("old", "new"); !errors.Is(err, syscall.EAGAIN) {
		t.Errorf("the rename has ended with %v", err)
	}
	for name, want := range map[string]string{"old/ü": "later", "new/ü": "first"} {
		if got, err := afero.ReadFile(other, name); string(got) != want || err != nil {
			t.Errorf("%s has %q, %v, want %q", name, got, err, want)
		}
	}
}

// Two replicas rename one file at once, and another client replaces it after both have looked. Neither has copied the
// later file, so it is there when both have ended, whichever delete marker is on top.
func TestVersionedRenamesAtOnce(t *testing.T) {
	t.Parallel()
	s3test.RunVersioned(t, func(t *testing.T, s *s3test.Server) {
		p := profile(t, s)
		if p.GhostPrefixes = true; p.ConditionalDelete {
			return // S3 refuses both deletes
		}
		for _, last := range []string{"first", "second"} {
			t.Run(last+"-looks-last", func(t *testing.T) { testRenamesAtOnce(t, s, &p, last == "second") })
		}
	})
}

func testRenamesAtOnce(t *testing.T, s *s3test.Server, p *driver.Profile, secondLooksLast bool) {
	t.Helper()
	bucket := s.VersionedBucket(t)
	other := drivertest.MustNew(t.Context(), s.Client(), bucket, &driver.Options{Profile: *p})
	write(t, other, "file", "first")
	firstChecked, replaced := make(chan struct{}), make(chan struct{})
	firstDeleted, firstLooked := make(chan struct{}), make(chan struct{})
	secondDeleted, secondLooked := make(chan struct{}), make(chan struct{})
	replica := func(before map[string]func()) *driver.Fs {
		spy := drivertest.NewSpy(s.Client())
		spy.Before(func(_ context.Context, operation string, _ any) error {
			if operation == "DeleteObjects" {
				operation = "DeleteObject"
			}
			if step := before[operation]; step != nil {
				delete(before, operation)
				step()
			}
			return nil
		})
		return drivertest.MustNew(t.Context(), spy, bucket, &driver.Options{Profile: *p})
	}
	first := replica(map[string]func(){
		"DeleteObject": func() {
			close(firstChecked)
			<-replaced
		},
		"ListObjectVersions": func() {
			close(firstDeleted)
			if <-secondDeleted; !secondLooksLast {
				<-secondLooked
			}
		},
	})
	second := replica(map[string]func(){
		"DeleteObject": func() {
			<-firstChecked
			write(t, other, "file", "later")
			close(replaced)
			<-firstDeleted
		},
		"ListObjectVersions": func() {
			if close(secondDeleted); secondLooksLast {
				<-firstLooked
			}
		},
	})
	ended := make(chan error, 1)
	go func() {
		err := first.Rename("file", "renamed")
		close(firstLooked)
		ended <- err
	}()
	err := second.Rename("file", "also-renamed")
	close(secondLooked)
	for _, err := range []error{err, <-ended} {
		if !errors.Is(err, syscall.ESTALE) {
			t.Errorf("a rename has ended with %v", err)
		}
	}
	for name, want := range map[string]string{"file": "later", "renamed": "first", "also-renamed": "first"} {
		if got, err := afero.ReadFile(other, name); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v, want %q", name, got, err, want)
		}
	}
}

// Another client replaces a file right before it is deleted by a rename, on a server that lists all delete markers
// after all versions. The file comes back all the same.
func TestVersionedMarkersApart(t *testing.T) {
	t.Parallel()
	p, _ := driver.ProfileNamed("seaweedfs")
	server := s3sim.New(s3sim.Options{Profile: p, Versioning: true})
	server.CreateBucket("bucket")
	spy := drivertest.NewSpy(server.Client(nil))
	f := drivertest.MustNew(t.Context(), spy, "bucket", &driver.Options{Profile: p})
	other := drivertest.MustNew(t.Context(), server.Client(nil), "bucket", &driver.Options{Profile: p})
	write(t, f, "file", "first")
	spy.Before(func(_ context.Context, operation string, _ any) error {
		if operation == "DeleteObject" {
			spy.Before(nil)
			write(t, other, "file", "later")
		}
		return nil
	})
	if err := f.Rename("file", "renamed"); !errors.Is(err, syscall.ESTALE) {
		t.Errorf("the rename has ended with %v", err)
	}
	if got, err := afero.ReadFile(other, "file"); err != nil || string(got) != "later" {
		t.Errorf("the later file has %q, %v", got, err)
	}
}

// A file is renamed, and somebody removes for good what it was, as a lifecycle rule may, before the rename looks what
// its delete marker covers. The version before stays deleted. What another client has stored meanwhile comes back.
func TestVersionRemovedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"gcs", "minio", "seaweedfs"} {
		p, _ := driver.ProfileNamed(name)
		for history, test := range map[string]struct {
			before time.Duration // from the version before
			later  bool          // another client stores one
			late   bool          // the version is removed after the rename
		}{
			"removed":          {before: 2 * time.Second},
			"removed-late":     {late: true},
			"removed-replaced": {before: 2 * time.Second, later: true},
		} {
			for _, rename := range [][2]string{{"file", "renamed"}, {"old/file", "new/file"}} {
				t.Run(name+"/"+history+"/"+rename[1], func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						server := s3sim.New(s3sim.Options{Profile: p, Versioning: true})
						server.CreateBucket("bucket")
						client, spy := server.Client(nil), drivertest.NewSpy(server.Client(nil))
						f := drivertest.MustNew(t.Context(), spy, "bucket", &driver.Options{Profile: p})
						other := drivertest.MustNew(t.Context(), client, "bucket", &driver.Options{Profile: p})
						file, copied := rename[0], rename[1]
						write(t, other, file, "before")
						time.Sleep(test.before)
						write(t, other, file, "meant")
						meant, err := client.HeadObject(t.Context(), &s3.HeadObjectInput{
							Bucket: aws.String("bucket"), Key: &file,
						})
						must.OK(t, err)
						remove := func() {
							_, err := client.DeleteObject(t.Context(), &s3.DeleteObjectInput{
								Bucket: aws.String("bucket"), Key: &file, VersionId: meant.VersionId})
							must.OK(t, err)
						}
						spy.Before(func(_ context.Context, operation string, in any) error {
							if one, _ := in.(*s3.DeleteObjectInput); test.late || operation != "DeleteObjects" &&
								(operation != "DeleteObject" || one.VersionId != nil) {
								return nil
							}
							spy.Before(nil)
							if test.later {
								write(t, other, file, "later")
							}
							remove()
							return nil
						})
						err = f.Rename(strings.TrimSuffix(file, "/file"), strings.TrimSuffix(copied, "/file"))
						if (err != nil) != test.later {
							t.Errorf("the rename has ended with %v", err)
						}
						if test.late {
							remove()
						}
						time.Sleep(time.Minute)
						got, err := afero.ReadFile(other, file)
						if test.later && string(got) != "later" || !test.later && !errors.Is(err, fs.ErrNotExist) {
							t.Errorf("the old name has %q, %v", got, err)
						}
						if got, err := afero.ReadFile(other, copied); err != nil || string(got) != "meant" {
							t.Errorf("the copy has %q, %v", got, err)
						}
					})
				})
			}
		}
	}
}

// MinIO stores what another client sends below the delete marker of a rename that has just ended: it had taken the time
// of the version before it waited for the delete. The file comes back a moment later.
func TestLateVersion(t *testing.T) {
	t.Parallel()
	s := s3test.Start(t, "minio")
	p := profile(t, s)
	p.GhostPrefixes = true
	bucket, client := s.VersionedBucket(t), s.Client()
	back, spy := make(chan struct{}, 1), drivertest.NewSpy(client)
	spy.After(func(operation string, _ any) error {
		if operation == "DeleteObject" { // of the marker: files are deleted by DeleteObjects
			back <- struct{}{}
		}
		return nil
	})
	f := drivertest.MustNew(t.Context(), spy, bucket, &driver.Options{Profile: p})
	for _, names := range [][2]string{{"file", "renamed"}, {"old/file", "new/file"}} {
		file, copied := names[0], names[1]
		write(t, f, file, "first")
		must.OK(t, f.Rename(strings.TrimSuffix(file, "/file"), strings.TrimSuffix(copied, "/file")))
		listed, err := client.ListObjectVersions(
			t.Context(), &s3.ListObjectVersionsInput{Bucket: &bucket, Prefix: &file})
		must.OK(t, err)
		stored, deleted := *listed.Versions[0].LastModified, *listed.DeleteMarkers[0].LastModified
		between := stored.Add(deleted.Sub(stored) / 2).Format(time.RFC3339Nano)
		_, err = client.PutObject(t.Context(), &s3.PutObjectInput{
			Bucket: &bucket, Key: &file, Body: strings.NewReader("later"),
		}, s3.WithAPIOptions(smithyhttp.SetHeaderValue("X-Minio-Source-Mtime", between)))
		must.OK(t, err)
		if _, err := f.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is not below the delete marker: %v", file, err)
		}
		select {
		case <-back:
		case <-time.After(time.Minute):
		}
		for name, want := range map[string]string{file: "later", copied: "first"} {
			if content, err := afero.ReadFile(f, name); err != nil || string(content) != want {
				t.Errorf("%s has %q, %v, want %q", name, content, err, want)
			}
		}
	}
}
