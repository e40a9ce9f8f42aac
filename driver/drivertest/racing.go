package drivertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver"
)

// A race is an operation during which another client writes to one of its objects.
type race struct {
	label  string
	opts   driver.Options
	before map[string]int // sizes of the existing objects by key
	run    func(f *Fs, dir string) error

	// The other client writes size bytes to the key victim.
	victim string
	size   int

	// moves is the key to which the operation may move what the other client has written.
	moves string

	// open is the window in which the operation may lose what the other client writes.
	open window
}

// A window is the time between the driver's last check of an object and the next request for it, which has no
// condition. It is open if the exception applies.
type window struct {
	exception
	checks, next []string
}

const raceSize = 1000

func (h Harness) races() []race {
	rename := func(f *Fs, dir string) error { return f.Rename(dir+"/old", dir+"/new") }
	copying := func(f *Fs, dir string) error { return f.Copy(context.Background(), dir+"/old", dir+"/new") }
	chtimes := func(f *Fs, dir string) error {
		return f.Chtimes(dir+"/old", time.Time{}, time.Unix(1_000_000_000, 0))
	}
	tree := map[string]int{"old/": 0, "old/a": raceSize, "old/b": raceSize, "old/sub/": 0, "old/sub/c": raceSize}
	checks := []string{"HeadObject", "ListObjectsV2"}
	deletes := window{deletedUnseen, checks, []string{"DeleteObject", "DeleteObjects"}}
	copies := window{replacedByCopy, checks, []string{"CopyObject"}}
	puts := window{replacedByPut, checks, []string{"PutObject", "CopyObject"}}
	completes := window{replacedByCompletion, append(checks, "UploadPartCopy"), []string{"CompleteMultipartUpload"}}
	return []race{
		{
			label: "rename-file", before: map[string]int{"old": raceSize}, run: rename,
			victim: "old", size: raceSize, moves: "new", open: deletes,
		},
		{
			label: "rename-file-by-parts", opts: driver.Options{CopyLimit: 1}, before: map[string]int{"old": h.PartSize},
			run:    rename,
			victim: "old", size: h.PartSize, moves: "new", open: deletes,
		},
		{
			label: "rename-file-to-new-name", opts: driver.Options{NoOverwrite: true},
			before: map[string]int{"old": raceSize}, run: rename,
			victim: "old", size: raceSize, moves: "new", open: deletes,
		},
		{
			label: "rename-file-to-taken-name", opts: driver.Options{NoOverwrite: true},
			before: map[string]int{"old": raceSize}, run: rename,
			victim: "new", size: raceSize, open: puts,
		},
		{
			label: "rename-directory", before: tree, run: rename,
			victim: "old/b", size: raceSize, moves: "new/b", open: deletes,
		},
		{
			label: "rename-directory-deeper", before: tree, run: rename,
			victim: "old/sub/c", size: raceSize, moves: "new/sub/c", open: deletes,
		},
		{
			label: "rename-directory-to-taken-name", before: tree, run: rename,
			victim: "new/b", size: raceSize, open: copies,
		},
		{
			label: "rename-directory-marker", before: tree, run: rename,
			victim: "old/sub/", size: raceSize, moves: "new/sub/", open: deletes,
		},
		{
			label: "copy-directory", before: tree, run: copying,
			victim: "new/b", size: raceSize, open: copies,
		},
		{
			label: "copy-directory-marker", before: tree, run: copying,
			victim: "new/sub/", size: raceSize, open: puts,
		},
		{
			label: "make-directory", run: func(f *Fs, dir string) error { return f.Mkdir(dir+"/old", 0) },
			victim: "old/", size: raceSize, open: puts,
		},
		{
			label: "make-directories", run: func(f *Fs, dir string) error {
				return f.MkdirAll(dir+"/old/new", 0)
			},
			victim: "old/", size: raceSize, open: puts,
		},
		{
			label: "set-time", before: map[string]int{"old": raceSize}, run: chtimes,
			victim: "old", size: raceSize,
		},
		{
			label: "set-time-by-parts", opts: driver.Options{CopyLimit: 1}, before: map[string]int{"old": h.PartSize},
			run:    chtimes,
			victim: "old", size: h.PartSize, open: completes,
		},
		{
			label: "remove-directory", before: map[string]int{"old/": 0}, run: func(f *Fs, dir string) error {
				return f.RemoveDir(dir + "/old")
			},
			victim: "old/", size: raceSize, open: deletes,
		},
	}
}

// testRaces lets another client write right before each request of an operation. What it has written must still exist
// at the end.
func testRaces(t *testing.T, h Harness) {
	x := h.open(t, nil)
	for _, r := range h.races() {
		x.run(r.label, func(x *fixture) {
			hits := 0
			for at := 1; x.race(r, fmt.Sprintf("%s-%d", r.label, at), at); at++ {
				hits++
			}
			if hits == 0 {
				x.Error("no request was sent")
			}
		})
	}
}

// race runs an operation and writes right before one of its requests. It returns false if the operation sends fewer
// requests.
func (x *fixture) race(r race, dir string, at int) bool {
	for key, size := range r.before {
		x.put(dir+"/"+key, random(size))
	}
	victim, content := dir+"/"+r.victim, bytes.Repeat([]byte("w"), r.size)
	var (
		mu       sync.Mutex
		changed  = sync.NewCond(&mu)
		requests int
		inFlight int    // requests without a response
		writing  bool   // no request begins while the other client writes
		written  string // the request before which it has written

		// The last request for the victim before the write, and the first one after it.
		last, next string
	)
	x.spy.Before(func(_ context.Context, operation string, in any) error {
		mu.Lock()
		defer mu.Unlock()
		for writing {
			changed.Wait()
		}
		requests++
		if requests == at {
			writing = true
			for inFlight > 0 {
				changed.Wait()
			}
			_, err := x.client.PutObject(
				x.Context(), &s3.PutObjectInput{Bucket: &x.bucket, Key: &victim, Body: bytes.NewReader(content)})
			if err == nil {
				written = operation
			}
			writing = false
			changed.Broadcast()
		}
		inFlight++
		switch isFor := isRequestFor(in, victim); {
		case isFor && written == "":
			last = operation
		case isFor && next == "":
			next = operation
		}
		return nil
	})
	x.spy.Done(func() {
		mu.Lock()
		defer mu.Unlock()
		inFlight--
		changed.Broadcast()
	})
	x.spy.After(redate("", func(t time.Time) time.Time { return t.Truncate(time.Second) })) // as some servers do
	opErr := r.run(x.session(x.Context(), &r.opts), dir)
	x.spy.Before(nil)
	x.spy.Done(nil)
	x.spy.After(nil)
	switch {
	case requests < at:
		if opErr != nil {
			x.Errorf("undisturbed: %v", opErr)
		}
		return false
	case written == "": // the server refuses a marker with content
	case x.holds(victim, content), r.moves != "" && x.holds(dir+"/"+r.moves, content):
	case slices.Contains(r.open.checks, last) && slices.Contains(r.open.next, next) && x.hasException(r.open.exception):
	default:
		x.Errorf(
			"the file written before request %d, %s, between its phases %q and %q, is lost; the operation returned %v", at,
			written, last, next, opErr)
	}
	return true
}

// isRequestFor reports whether a request lists, reads, writes or deletes the object with a key.
func isRequestFor(in any, key string) bool {
	isSource := func(source *string) bool { return strings.HasSuffix(*source, "/"+key) }
	switch in := in.(type) {
	case *s3.HeadObjectInput:
		return *in.Key == key
	case *s3.GetObjectInput:
		return *in.Key == key
	case *s3.PutObjectInput:
		return *in.Key == key
	case *s3.CopyObjectInput:
		return *in.Key == key || isSource(in.CopySource)
	case *s3.UploadPartCopyInput:
		return isSource(in.CopySource)
	case *s3.CompleteMultipartUploadInput:
		return *in.Key == key
	case *s3.DeleteObjectInput:
		return *in.Key == key
	case *s3.ListObjectsV2Input:
		return strings.HasPrefix(key, aws.ToString(in.Prefix)) && aws.ToString(in.StartAfter) < key
	case *s3.DeleteObjectsInput:
		return slices.ContainsFunc(in.Delete.Objects, func(o types.ObjectIdentifier) bool { return *o.Key == key })
	}
	return false
}

// holds reports whether an object exists and has this content.
func (x *fixture) holds(key string, want []byte) bool {
	return x.exists(key) && bytes.Equal(x.object(key), want)
}

// testOntoUnprovenFiles renames and copies a directory to another one whose files have the same names and sizes and are
// newer. Their ETags do not show whether they are copies.
func testOntoUnprovenFiles(t *testing.T, h Harness) {
	x := h.open(t, nil)
	mine, theirs := random(h.PartSize+1), bytes.Repeat([]byte("theirs"), (h.PartSize+1)/6+1)[:h.PartSize+1]
	x.write("d/file", mine)
	x.write("e/file", theirs)
	if !strings.Contains(aws.ToString(x.head("e/file").ETag), "-") {
		t.Error("the ETag of the file identifies its content")
	}
	x.spy.After(redate("e", later(time.Second-time.Millisecond)))
	wantError(t, x.Rename("d", "e"), syscall.ENOTEMPTY)
	wantError(t, x.Copy(t.Context(), "d", "e"), syscall.ENOTEMPTY)
	x.wantContent("d/file", mine)
	x.wantContent("e/file", theirs)
}

// testSourceReplaced replaces a file after it was copied. Both files must stay, because other clients may rely on what
// they have seen, and the error is ESTALE.
func testSourceReplaced(t *testing.T, h Harness) {
	for label, opts := range map[string]driver.Options{"replacing": {}, "keeping": {NoOverwrite: true}} {
		t.Run(label, func(t *testing.T) {
			x := h.open(t, &opts)
			x.put("old", []byte("first"))
			x.spy.After(func(operation string, _ any) error {
				if operation == "CopyObject" || operation == "PutObject" || operation == "CompleteMultipartUpload" {
					x.put("old", []byte("later"))
				}
				return nil
			})
			wantError(t, x.Rename("old", "new"), syscall.ESTALE)
			x.spy.After(nil)
			x.wantKeys("new", "old")
			x.wantContent("new", []byte("first"))
			x.wantContent("old", []byte("later"))
			if opts.NoOverwrite {
				wantError(t, x.Rename("old", "new"), fs.ErrExist)
				if err := x.Remove("new"); err != nil {
					t.Fatal(err)
				}
			}
			x.rename("old", "new")
			x.wantKeys("new")
			x.wantContent("new", []byte("later"))
		})
	}
}

// testSourceReplacedBeforeCopy replaces a file before it is renamed to a new name. The error must not be that a file
// with the new name exists.
func testSourceReplacedBeforeCopy(t *testing.T, h Harness) {
	for label, size := range map[string]int{"small": 10, "parts": h.PartSize + 1} {
		t.Run(label, func(t *testing.T) {
			x := h.open(t, &driver.Options{NoOverwrite: true})
			x.put("old", random(size))
			x.spy.After(func(operation string, _ any) error {
				if operation == "ListObjectsV2" {
					x.put("old", bytes.Repeat([]byte("w"), size))
				}
				return nil
			})
			wantError(t, x.Rename("old", "new"), syscall.ESTALE)
			x.spy.After(nil)
			x.wantKeys("old")
			x.wantNoUploads("new")
		})
	}
}

// openVersioned opens a bucket with versioning. It returns nil if the server does not support versioning.
func (h Harness) openVersioned(t *testing.T, opts *driver.Options) *fixture {
	t.Helper()
	x := h.open(t, opts)
	_, err := x.client.PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{
		Bucket:                  &x.bucket,
		VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
	})
	if _, limited := h.Limits[Versions]; limited {
		if err == nil {
			t.Error("the server keeps versions")
		}
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// testVersioned renames a file and a directory in a bucket with versioning, with or without a response to the delete.
// Another client replaces the file right before or right after the delete. What it stores before the delete may be
// deleted only on a server without conditional deletes, and must then be among the older versions. No version may be
// removed.
func testVersioned(t *testing.T, h Harness) {
	for _, r := range []struct {
		label, old, renamed, key string
		before, after, lost      bool
	}{
		{label: "file", old: "old", renamed: "new", key: "old"},
		{label: "file-replaced", old: "old", renamed: "new", key: "old", before: true},
		{label: "file-stored-after", old: "old", renamed: "new", key: "old", after: true},
		{label: "file-without-response", old: "old", renamed: "new", key: "old", lost: true},
		{label: "file-replaced-without-response", old: "old", renamed: "new", key: "old", before: true, lost: true},
		{label: "directory", old: "d", renamed: "e", key: "d/old"},
		{label: "directory-replaced", old: "d", renamed: "e", key: "d/old", before: true},
		{label: "directory-stored-after", old: "d", renamed: "e", key: "d/old", after: true},
		{label: "directory-without-response", old: "d", renamed: "e", key: "d/old", lost: true},
	} {
		t.Run(r.label, func(t *testing.T) {
			x := h.openVersioned(t, nil)
			if x == nil {
				return
			}
			x.put(r.key, []byte("before"))
			x.put(r.key, []byte("first"))
			versions := 2
			later := func() { versions++; x.put(r.key, []byte("later")) }
			x.spy.Before(func(_ context.Context, operation string, _ any) error {
				if r.before && isDelete(operation) {
					x.spy.Before(nil)
					later()
				}
				return nil
			})
			x.spy.After(func(operation string, _ any) error {
				if !isDelete(operation) || !r.after && !r.lost {
					return nil
				}
				x.spy.After(nil)
				if r.after {
					later() // newer than the delete marker
				}
				if r.lost {
					return io.ErrUnexpectedEOF
				}
				return nil
			})
			err := x.Rename(r.old, r.renamed)
			x.spy.Before(nil)
			x.spy.After(nil)
			stays := r.before && !x.hasException(deletedUnseen)
			switch {
			case stays:
				wantError(t, err, syscall.ESTALE)
			default:
				wantNoError(t, err)
			}
			moved := strings.Replace(r.key, r.old, r.renamed, 1)
			want := []string{moved}
			if stays || r.after {
				want = append(want, r.key)
				x.wantContent(r.key, []byte("later"))
			}
			x.wantKeys(want...)
			x.wantContent(moved, []byte("first"))
			out, err := x.client.ListObjectVersions(
				t.Context(), &s3.ListObjectVersionsInput{Bucket: &x.bucket, Prefix: &r.key})
			if err != nil || len(out.Versions) != versions {
				t.Errorf("got %d versions, %v; want all %d", len(out.Versions), err, versions)
			}
		})
	}
}

// isDelete reports whether a request deletes objects.
func isDelete(operation string) bool {
	return operation == "DeleteObject" || operation == "DeleteObjects"
}

// testVersionedDenied deletes and renames a file in a bucket with versioning whose policy denies deletes. The error
// must be the same as without versioning.
func testVersionedDenied(t *testing.T, h Harness) {
	x := h.openVersioned(t, nil)
	if x == nil {
		return
	}
	x.put("file", []byte("first"))
	x.spy.Before(func(_ context.Context, operation string, in any) error {
		if in, ok := in.(*s3.DeleteObjectsInput); ok {
			in.Delete.Objects[0].Key = aws.String("elsewhere")
		} else if isDelete(operation) {
			return responseError(http.StatusForbidden, "AccessDenied")
		}
		return nil
	})
	x.spy.After(func(_ string, out any) error {
		if out, ok := out.(*s3.DeleteObjectsOutput); ok {
			out.Deleted, out.Errors = nil, []types.Error{{Key: aws.String("file"), Code: aws.String("AccessDenied")}}
		}
		return nil
	})
	if err := x.Remove("file"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("Remove: got %v, want a permission error", err)
	}
	if err := x.Rename("file", "new"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("Rename: got %v, want a permission error", err)
	}
	x.wantContent("file", []byte("first"))
}

// testStamps renames and copies directories with files whose ETags prove nothing. Another session must be able to
// complete an interrupted attempt, but a copy of a copy must not count as the copy.
func testStamps(t *testing.T, h Harness) {
	x := h.open(t, nil)
	content := random(h.PartSize + 1)
	x.write("d/a", content)
	x.write("d/b", content[1:])
	copied := make(chan struct{})
	x.spy.Before(func(_ context.Context, _ string, in any) error {
		if in, ok := in.(*s3.CopyObjectInput); ok && *in.Key == "e/b" {
			<-copied
			return responseError(http.StatusForbidden, "AccessDenied")
		}
		return nil
	})
	x.spy.After(func(operation string, _ any) error {
		if operation == "CopyObject" {
			close(copied)
		}
		return nil
	})
	wantError(t, x.Copy(t.Context(), "d", "e"), fs.ErrPermission)
	x.spy.Before(nil)
	x.spy.After(nil)
	if x.head("e/a").Metadata[stamp] == "" {
		t.Error("the copy has no stamp")
	}
	x.Fs = x.session(t.Context(), nil)
	x.spy.Reset()
	// Each copy is newer than its source, by less than the rounding of HeadObject.
	x.spy.After(redate("e", later(time.Second-time.Millisecond)))
	x.rename("d", "e")
	x.spy.After(nil)
	if n := x.spy.Counts()["CopyObject"]; n != 1 {
		t.Errorf("%d files were copied, want 1", n)
	}
	x.wantKeys("e/a", "e/b")
	x.wantContent("e/a", content)
	x.wantContent("e/b", content[1:])
	wantNoError(t, x.Copy(t.Context(), "e/a", "file"))
	wantNoError(t, x.tryAppend("e/b", []byte("added")))
	for _, key := range []string{"file", "e/b"} {
		if value, stamped := x.head(key).Metadata[stamp]; stamped {
			t.Errorf("%s is not a copy from a renamed directory but has the stamp %s", key, value)
		}
	}
	// A stamp does not count if another object has it.
	x.rename("e", "d")
	x.write("e/a", bytes.Repeat([]byte("o"), len(content)))
	metadata := map[string]string{stamp: x.head("d/a").Metadata[stamp]}
	_, err := x.client.CopyObject(t.Context(), &s3.CopyObjectInput{
		Bucket: &x.bucket, Key: aws.String("e/a"), CopySource: aws.String(x.bucket + "/e/a"),
		MetadataDirective: types.MetadataDirectiveReplace,
		Metadata:          metadata,
	})
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, x.Rename("d", "e"), syscall.ENOTEMPTY)
}

// testRequestsAtOnce copies a directory of large files and counts the requests in flight: 32 files in parallel, and 32
// parts of them.
func testRequestsAtOnce(t *testing.T, h Harness) {
	const most, files = 64, 20
	x := h.open(t, &driver.Options{CopyLimit: 1})
	keys := numbered("d/", files)
	x.put(keys[0], random(2*h.PartSize+1000))
	for _, key := range keys[1:] {
		in := &s3.CopyObjectInput{Bucket: &x.bucket, Key: &key, CopySource: aws.String(x.bucket + "/" + keys[0])}
		if _, err := x.client.CopyObject(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	peak := x.gauge(func(in any) int64 {
		if _, isHead := in.(*s3.HeadObjectInput); isHead {
			return 0
		}
		return 1
	})
	x.spy.Reset()
	if err := x.Copy(t.Context(), "d", "e"); err != nil {
		t.Fatal(err)
	}
	if n := x.spy.Counts()["UploadPartCopy"]; (n == 2*files) != x.profile.PartCopy {
		t.Errorf("the files were copied by %d parts", n)
	}
	if peak.Load() > most || peak.Load() < most/8 {
		t.Errorf("up to %d parallel requests, want at most %d", peak.Load(), most)
	}
}
