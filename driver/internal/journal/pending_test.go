package journal_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/drivertest/s3spy"
	"github.com/babelftp/babelftp/driver/internal/journal"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// TestAbort checks that an administrator can list all uploads, but abort only those that no session works on.
func TestAbort(t *testing.T) {
	const tail, offset = "the last bytes", 2 * partSize
	s := newStorage(t)
	process, other := s.process(), s.process()
	live, _, _ := s.create(process, "live")
	kept, _, _ := s.create(process, key)
	must.OK(t, kept.Interrupt(t.Context(), "", offset, strings.NewReader(tail), 0))
	kept.Release()

	pending, all, err := other.Pending(t.Context(), 10)
	if err != nil || all != 2 || len(pending) != 2 {
		t.Fatalf("%d of %d uploads are pending: %v", len(pending), all, err)
	}
	ids := map[string]string{}
	for _, p := range pending {
		ids[p.Key] = p.ID
		want, state := int64(offset+len(tail)), "interrupted"
		if p.Key == "live" {
			want, state = -1, "live"
		}
		if p.OwnerID != other.OwnerID(owner) || p.Bytes != want || p.State != state || p.Written.IsZero() {
			t.Errorf("pending: %+v", p)
		}
	}
	if some, all, err := other.Pending(t.Context(), 1); err != nil || all != 2 || len(some) != 1 {
		t.Errorf("with limit 1, %d of %d uploads were returned: %v", len(some), all, err)
	}
	if err := other.Abort(t.Context(), ids["live"]); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("abort of an upload in use: %v", err)
	}
	for _, id := range []string{"", "no-such-upload", "../x/y", "a-b-c-d"} {
		if err := other.Abort(t.Context(), id); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("abort of %q: %v", id, err)
		}
	}
	must.OK(t, other.Abort(t.Context(), ids[key]))
	if err := other.Abort(t.Context(), ids[key]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("second abort: %v", err)
	}
	s.wantKeys(live.Record().Name)
	s.wantUploads("live")
}

// TestAbortWhileResumed resumes an upload while an administrator aborts it, and checks that exactly one succeeds.
func TestAbortWhileResumed(t *testing.T) {
	s3test.Run(t, func(t *testing.T, server *s3test.Server) {
		s := storageOn(t, server)
		for range 10 {
			s.abortWhileResumed()
		}
	})
}

func (s *storage) abortWhileResumed() {
	s.t.Helper()
	ctx := s.t.Context()
	kept, upload, _ := s.create(s.process(), key)
	must.OK(s.t, kept.Interrupt(ctx, "", partSize, strings.NewReader(""), 0))
	kept.Release()
	owners, administrators := s.process(), s.process()
	r := s.read(owners, kept.Record().Name)
	pending, _, err := administrators.Pending(ctx, 1)
	if err != nil || len(pending) != 1 {
		s.t.Fatal(pending, err)
	}
	aborted := make(chan error)
	go func() { aborted <- administrators.Abort(ctx, pending[0].ID) }()
	e, resumed := owners.Resume(ctx, *r, partSize, nil, func(error) {})
	switch err := <-aborted; {
	case err == nil && resumed == nil, err != nil && resumed != nil:
		s.t.Errorf("abort: %v, resume: %v", err, resumed)
	case err != nil && !errors.Is(err, syscall.EBUSY):
		s.t.Error(err)
	}
	if resumed == nil {
		s.wantUploads(key)
		must.OK(s.t, s.AbortUpload(ctx, upload))
		e.Remove(ctx)
	}
}

// TestTornRead reads a record while another session resumes the upload, on a server that returns the state of the old
// version with the ETag of the new one. The upload must not be aborted.
func TestTornRead(t *testing.T) {
	s := newStorage(t)
	kept, _, _ := s.create(s.process(), key)
	must.OK(t, kept.Interrupt(t.Context(), "", partSize, strings.NewReader(""), 0))
	kept.Release()
	owners := s.process()
	r := *s.read(owners, kept.Record().Name)
	pending, _, err := owners.Pending(t.Context(), 1)
	if err != nil || len(pending) != 1 {
		t.Fatal(pending, err)
	}
	resume := func() {
		e, err := owners.Resume(t.Context(), r, partSize, nil, func(error) {})
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(e.Release)
	}
	// The first HEAD response has the ETag of the new version, and everything else from the old one.
	var once sync.Once
	tearing := s3spy.Intercept(s.client, func(ctx context.Context, in any, send func() (any, error)) error {
		out, err := send()
		if in, isHead := in.(*s3.HeadObjectInput); isHead && err == nil {
			once.Do(func() {
				resume()
				if now, err := s.client.HeadObject(ctx, in); err == nil {
					out.(*s3.HeadObjectOutput).ETag = now.ETag
				}
			})
		}
		return err
	})
	administrators := journal.New(tearing, s.bucket, "", versitygw(), s3object.Objects{}, journal.NewChanges(), nil)
	if err := administrators.Abort(t.Context(), pending[0].ID); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("abort of a resumed upload: %v", err)
	}
	s.wantUploads(key)
}

// TestPendingEnds checks that uploads that end while the journal is read do not count.
func TestPendingEnds(t *testing.T) {
	s := newStorage(t)
	s.create(s.process(), "stays")
	ends, _, _ := s.create(s.process(), "ends")
	key := ends.Record().Name
	vanishing := s3spy.Intercept(s.client, func(ctx context.Context, in any, send func() (any, error)) error {
		_, err := send()
		if _, isList := in.(*s3.ListObjectsV2Input); isList && err == nil {
			_, err = s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: &key})
		}
		return err
	})
	j := journal.New(vanishing, s.bucket, "", versitygw(), s3object.Objects{}, journal.NewChanges(), nil)
	if pending, all, err := j.Pending(t.Context(), 10); err != nil || all != 1 || len(pending) != 1 ||
		pending[0].Key != "stays" {
		t.Errorf("%d uploads are pending, %+v: %v", all, pending, err)
	}
}
