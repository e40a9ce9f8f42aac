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

// TestAbort removes an interrupted upload with its parts, and none on which a session works.
func TestAbort(t *testing.T) {
	const tail, offset = "the last bytes", 2 * partSize
	s := newStorage(t)
	process, other := s.process(), s.process()
	live, _, _ := s.enter(process, "live")
	kept, _, _ := s.enter(process, key)
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
			t.Errorf("pending is %+v", p)
		}
	}
	if some, all, err := other.Pending(t.Context(), 1); err != nil || all != 2 || len(some) != 1 {
		t.Errorf("%d of %d uploads are returned where one may be: %v", len(some), all, err)
	}
	if err := other.Abort(t.Context(), ids["live"]); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("the abort of an upload on which a session works: %v", err)
	}
	for _, id := range []string{"", "no-such-upload", "../x/y", "a-b-c-d"} {
		if err := other.Abort(t.Context(), id); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the abort of %q: %v", id, err)
		}
	}
	must.OK(t, other.Abort(t.Context(), ids[key]))
	if err := other.Abort(t.Context(), ids[key]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the second abort: %v", err)
	}
	s.wantKeys(live.Record().Name)
	s.wantUploads("live")
}

// TestAbortWhileResumed lets an owner resume an upload while an administrator aborts it: one of the two happens.
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
	kept, upload, _ := s.enter(s.process(), key)
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

// TestTornRead reads a record that is written at the same moment, on a server that answers with the state of one
// version and the ETag of the next. Another session has resumed the upload then, so it is not aborted.
func TestTornRead(t *testing.T) {
	s := newStorage(t)
	kept, _, _ := s.enter(s.process(), key)
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
	// The first look at an object has the ETag from after that, and all else from before.
	var once sync.Once
	tearing := s3spy.Intercept(s.client, func(ctx context.Context, in any, send func() (any, error)) error {
		out, err := send()
		if in, looks := in.(*s3.HeadObjectInput); looks && err == nil {
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
		t.Errorf("the abort of an upload that is resumed: %v", err)
	}
	s.wantUploads(key)
}

// TestPendingEnds counts no uploads that end while the journal is read.
func TestPendingEnds(t *testing.T) {
	s := newStorage(t)
	s.enter(s.process(), "stays")
	ends, _, _ := s.enter(s.process(), "ends")
	key := ends.Record().Name
	vanishing := s3spy.Intercept(s.client, func(ctx context.Context, in any, send func() (any, error)) error {
		_, err := send()
		if _, lists := in.(*s3.ListObjectsV2Input); lists && err == nil {
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
