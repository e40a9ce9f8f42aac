package journal_test

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/internal/journal"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/driver/profile"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

func TestMain(m *testing.M) { s3test.Main(m) }

const (
	owner    = "alice"
	key      = "dir/café"
	partSize = 5 << 20
)

// A storage is a bucket that several processes share.
type storage struct {
	t      *testing.T
	client *s3.Client
	bucket string
	*s3api.Bucket
}

func newStorage(t *testing.T) *storage {
	t.Helper()
	return storageOn(t, s3test.Start(t, "sim-aws"))
}

// storageOn creates a bucket on a server.
func storageOn(t *testing.T, server *s3test.Server) *storage {
	t.Helper()
	s := &storage{t: t, client: server.Client(), bucket: server.Bucket(t)}
	s.Bucket = s3api.NewBucket(s.client, s.bucket, versitygw(), &s3api.Stats{}, time.Minute)
	return s
}

func versitygw() profile.Profile {
	p, _ := profile.Named("versitygw")
	return p
}

// process returns the journal of a new process.
func (s *storage) process() *journal.Journal {
	return journal.New(s.client, s.bucket, "", versitygw(), s3object.Objects{}, journal.NewChanges(), nil)
}

// create creates a multipart upload with a record. canceled becomes true when another session has taken over the
// upload.
func (s *storage) create(
	j *journal.Journal, key string,
) (e *journal.Entry, upload s3api.Upload, canceled *atomic.Bool) {
	s.t.Helper()
	canceled = &atomic.Bool{}
	upload, err := s.CreateUpload(s.t.Context(), key, "", &s3object.Attributes{}, s3api.PartChecksums{})
	must.OK(s.t, err)
	r := j.NewRecord(owner, key, partSize, time.Now())
	r.Upload = upload.ID
	e = j.Create(s.t.Context(), r, &journal.ClientWait{}, func(error) { canceled.Store(true) })
	s.t.Cleanup(e.Release)
	return e, upload, canceled
}

// read reads a record.
func (s *storage) read(j *journal.Journal, name string) *journal.Record {
	s.t.Helper()
	r, err := j.Read(s.t.Context(), s3api.Version{Key: name})
	must.OK(s.t, err)
	return r
}

// wantKeys checks that the bucket has exactly these objects.
func (s *storage) wantKeys(want ...string) {
	s.t.Helper()
	if got := s3test.Objects(s.t, s.client, s.bucket); strings.Join(got, " ") != strings.Join(want, " ") {
		s.t.Errorf("the bucket has %q, want %q", got, want)
	}
}

// wantUploads checks that S3 has open uploads to exactly these keys.
func (s *storage) wantUploads(want ...string) {
	s.t.Helper()
	if got := s3test.OpenUploads(s.t, s.client, s.bucket); !slices.Equal(got, want) {
		s.t.Errorf("open uploads are to %q, want %q", got, want)
	}
}

// TestIsHolder checks that a session holds its record until another session takes it over or removes it.
func TestIsHolder(t *testing.T) {
	s := newStorage(t)
	e, _, _ := s.create(s.process(), key)
	if !e.IsHolder(t.Context()) {
		t.Error("the session that created the upload is not the holder")
	}
	other := s.process()
	r := *s.read(other, e.Record().Name)
	next, err := other.Resume(t.Context(), r, partSize, &journal.ClientWait{}, func(error) {})
	must.OK(t, err)
	if e.IsHolder(t.Context()) || !next.IsHolder(t.Context()) {
		t.Error("the session that took over the upload is not the only holder")
	}
	next.Remove(t.Context())
	if e.IsHolder(t.Context()) || next.IsHolder(t.Context()) {
		t.Error("a removed record has a holder")
	}
}

// TestResumeOnce resumes an upload in several processes at once, and checks that exactly one of them gets it.
func TestResumeOnce(t *testing.T) {
	const processes = 4
	s := newStorage(t)
	e, _, _ := s.create(s.process(), key)
	must.OK(t, e.Interrupt(t.Context(), "", partSize, strings.NewReader(""), 0))
	record := s.read(s.process(), e.Record().Name)
	var resumed atomic.Int32
	var all sync.WaitGroup
	for range processes {
		all.Go(func() {
			next, err := s.process().Resume(t.Context(), *record, partSize, &journal.ClientWait{}, func(error) {})
			switch {
			case err == nil:
				resumed.Add(1)
				next.Release()
			case !errors.Is(err, journal.ErrTakenOver):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := resumed.Load(); n != 1 {
		t.Errorf("%d processes hold the upload, want 1", n)
	}
	if r := s.read(s.process(), e.Record().Name); r.CanResume() || !r.CountsPart(partSize) || r.CountsPart(partSize+1) {
		t.Errorf("record after the resume: %+v", r)
	}
}

// TestTakenOver checks that a session cannot write a record that another process has taken over.
func TestTakenOver(t *testing.T) {
	for name, write := range map[string]func(ctx context.Context, e *journal.Entry) error{
		"interrupt": func(ctx context.Context, e *journal.Entry) error {
			return e.Interrupt(ctx, "", 0, strings.NewReader(""), 0)
		},
		"bound-parts": func(ctx context.Context, e *journal.Entry) error { return e.BoundParts(ctx, partSize) },
		"begin-abort": func(ctx context.Context, e *journal.Entry) error { return e.BeginAbort(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStorage(t)
			e, _, _ := s.create(s.process(), key)
			other := s.process()
			next, err := other.Resume(
				t.Context(), *s.read(other, e.Record().Name), partSize, &journal.ClientWait{}, func(error) {})
			must.OK(t, err)
			defer next.Release()
			if err := write(t.Context(), e); !errors.Is(err, journal.ErrTakenOver) {
				t.Errorf("got error %v, want %v", err, journal.ErrTakenOver)
			}
			if err := next.BoundParts(t.Context(), partSize); err != nil {
				t.Errorf("write by the new holder: %v", err)
			}
		})
	}
}

// TestTakenOverInSameProcess checks that a session ends at once if a session of the same process takes over its upload.
func TestTakenOverInSameProcess(t *testing.T) {
	s := newStorage(t)
	j := s.process()
	e, _, canceled := s.create(j, key)
	next, err := j.Resume(t.Context(), *s.read(j, e.Record().Name), partSize, &journal.ClientWait{}, func(error) {})
	must.OK(t, err)
	defer next.Release()
	if !canceled.Load() {
		t.Error("the previous session was not canceled")
	}
}

// TestRecords checks that only the records of one owner and one key are found, even if owner and key joined with a
// slash are ambiguous.
func TestRecords(t *testing.T) {
	s := newStorage(t)
	j := s.process()
	for _, r := range []journal.Record{
		j.NewRecord("a", "b/c", partSize, time.Now()), j.NewRecord("a/b", "c", partSize, time.Now()),
		j.NewRecord("a", "b/c", partSize, time.Now()),
		j.NewRecord("a", "b", partSize, time.Now()),
	} {
		j.Create(t.Context(), r, nil, func(error) {}).Release()
	}
	for _, test := range []struct {
		owner, key string
		want       int
	}{{"a", "b/c", 2}, {"a/b", "c", 1}, {"a", "b", 1}, {"a", "c", 0}, {"", "b/c", 0}} {
		records, err := s.process().Records(t.Context(), test.owner, test.key)
		if err != nil || len(records) != test.want {
			t.Errorf("%s, %s: %d records, %v; want %d", test.owner, test.key, len(records), err, test.want)
		}
	}
}

// TestOtherFormats checks that records of other format versions are ignored.
func TestOtherFormats(t *testing.T) {
	s := newStorage(t)
	names := []string{".babelftp/uploads-0/00000000/1-2", ".babelftp/uploads-2/00000000/1-2"}
	for _, name := range names {
		upload, err := s.CreateUpload(t.Context(), name, "", &s3object.Attributes{}, s3api.PartChecksums{})
		must.OK(t, err)
		_, err = s.client.PutObject(t.Context(), &s3.PutObjectInput{
			Bucket: &s.bucket, Key: &name, Body: strings.NewReader(strings.Repeat("x", 16)),
			Metadata: map[string]string{
				"key": base64.RawURLEncoding.EncodeToString([]byte(name)), "upload": upload.ID, "part-size": "5",
				"offset": "0", "state": "interrupted", "holder": "1", "heartbeat-seconds": "30",
			},
		})
		must.OK(t, err)
	}
	j := s.process()
	if n, err := j.Sweep(t.Context(), 0); n != 0 || err != nil {
		t.Errorf("%d uploads were swept, %v", n, err)
	}
	s.wantKeys(names...)
	s.wantUploads(names...)
	if pending, all, err := j.Pending(t.Context(), 10); len(pending) > 0 || all > 0 || err != nil {
		t.Errorf("%d of %d uploads are shown, %v", len(pending), all, err)
	}
}

// TestDeepKeys checks that records of keys with many segments have valid names and are found.
func TestDeepKeys(t *testing.T) {
	s := newStorage(t)
	for _, prefix := range []string{"", strings.Repeat("p", 700) + "/", strings.Repeat("p", 940) + "/"} {
		changes := journal.NewChanges()
		j := journal.New(s.client, s.bucket, prefix, versitygw(), s3object.Objects{}, changes, nil)
		key := prefix + strings.Repeat("d/", (s3object.MaxKeyBytes-len(prefix))/2-1) + "f"
		e := j.Create(t.Context(), j.NewRecord(owner, key, partSize, time.Now()), nil, func(error) {})
		must.OK(t, e.Interrupt(t.Context(), "", 0, strings.NewReader("tail"), 0))
		e.Release()
		name := e.Record().Name
		listed, err := j.Records(t.Context(), owner, key)
		if err != nil || len(listed) != 1 || len(name) > s3object.MaxKeyBytes {
			t.Errorf("%d records, %v; the name has %d bytes", len(listed), err, len(name))
		}
		j.Changed(prefix + "d/e/")
		must.OK(t, j.RemoveChanged(t.Context()))
		s.wantKeys(name)
		j.Changed(key[:len(key)-1])
		must.OK(t, j.RemoveChanged(t.Context()))
		s.wantKeys()
	}
}

// TestRecordWithoutUpload removes a record without an upload ID, the record of an interrupted upload that had no parts
// yet. An upload of other software to the same key must not be aborted.
func TestRecordWithoutUpload(t *testing.T) {
	for name, remove := range map[string]func(t *testing.T, s *storage) error{
		"sweep": func(t *testing.T, s *storage) error {
			_, err := s.process().Sweep(t.Context(), 0)
			return err
		},
		"owner": func(t *testing.T, s *storage) error {
			j := s.process()
			_, err := j.RemoveOf(t.Context(), owner, key)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStorage(t)
			foreign, err := s.CreateUpload(t.Context(), key, "", &s3object.Attributes{}, s3api.PartChecksums{})
			must.OK(t, err)
			j := s.process()
			e := j.Create(t.Context(), j.NewRecord(owner, key, partSize, time.Now()), nil, func(error) {})
			must.OK(t, e.Interrupt(t.Context(), "", 0, strings.NewReader("tail"), 0))
			e.Release()
			if err := remove(t, s); err != nil {
				t.Error(err)
			}
			s.wantKeys()
			s.wantUploads(key)
			if err := s.AbortUpload(t.Context(), foreign); err != nil {
				t.Error(err)
			}
		})
	}
}
