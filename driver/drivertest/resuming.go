package drivertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// A process is a server process for a bucket: an upload journal and the file systems that share it.
type process struct {
	*fixture
	journal *driver.Journal
}

func (x *fixture) process() *process {
	j := driver.NewEndpoint().NewJournal(x.spy, x.bucket, "", x.profile, driver.Objects{}, nil)
	return &process{fixture: x, journal: j}
}

// as opens a file system for a user, with opts[0] if given.
func (p *process) as(owner string, opts ...driver.Options) *Fs {
	o := append(opts, driver.Options{})[0]
	o.Journal, o.Owner = p.journal, owner
	return p.session(p.Context(), &o)
}

const (
	reserved   = ".babelftp/"
	create     = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	resumeFlag = os.O_WRONLY | os.O_CREATE
)

// begin opens a file and writes to it.
func (x *fixture) begin(session *Fs, name string, flag int, offset int64, content []byte) afero.File {
	x.Helper()
	f, err := session.OpenAt(name, flag, offset)
	if err != nil {
		x.Fatalf("open %q at %d: %v", name, offset, err)
	}
	if _, err := io.Copy(f, readerOnly{bytes.NewReader(content)}); err != nil {
		x.Fatalf("write %q: %v", name, err)
	}
	return f
}

var errInterrupted = errors.New("broken by the test")

// interrupt uploads the beginning of a file and then disconnects the client.
func (x *fixture) interrupt(session *Fs, name string, flag int, offset int64, content []byte) {
	x.Helper()
	f := x.begin(session, name, flag, offset, content)
	f.(aborter).Abort(errInterrupted)
	wantError(x, f.Close(), errInterrupted)
}

// pendingSize returns the offset at which a user can resume an upload, or 0.
func (x *fixture) pendingSize(session *Fs, name string) int64 {
	x.Helper()
	info, err := session.PendingUpload(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	if err != nil {
		x.Fatalf("pending upload of %q: %v", name, err)
	}
	if info.IsDir() || info.ModTime().IsZero() {
		x.Errorf("unexpected pending upload of %q: %v", name, info)
	}
	return info.Size()
}

// wantPending checks the offset at which a user can resume an upload. 0 means that nothing is pending.
func (x *fixture) wantPending(session *Fs, name string, size int64) {
	x.Helper()
	if n := x.pendingSize(session, name); n != size {
		x.Errorf("%d bytes of %q are pending, want %d", n, name, size)
	}
}

// resume checks that all but the last byte of what was sent are pending, and sends the rest of the file from there.
func (x *fixture) resume(session *Fs, name string, sent int, content []byte) {
	x.Helper()
	x.wantPending(session, name, int64(sent-1))
	x.close(x.begin(session, name, resumeFlag, int64(sent-1), content[sent-1:]))
	x.wantContent(name, content)
	x.wantNoUploads(name)
}

// records returns the keys below the driver's reserved prefix.
func (x *fixture) records() []string {
	return slices.DeleteFunc(x.keys(), func(key string) bool { return !strings.HasPrefix(key, reserved) })
}

// wantNothingPending checks that there are no records and no uploads to key, and that the bucket has exactly these
// keys.
func (x *fixture) wantNothingPending(key string, keys ...string) {
	x.Helper()
	x.wantNoUploads(key)
	x.wantKeys(keys...)
}

func testJournal(t *testing.T, h Harness) {
	for _, test := range []struct {
		label string
		run   func(x *fixture)
	}{
		{"while-open", (*fixture).testJournalWhileOpen},
		{"abandoned", (*fixture).testSweep},
		{"abort-fails", (*fixture).testSweepLeftBehind},
		{"no-record", (*fixture).testUnrecorded},
		{"no-record-of-ours", (*fixture).testForeignRecord},
	} {
		t.Run(test.label, func(t *testing.T) { test.run(h.open(t, nil)) })
	}
}

// testJournalWhileOpen checks that an upload has a record until its end, and that listings do not show it.
func (x *fixture) testJournalWhileOpen() {
	p := x.process()
	session := p.as("")
	for label, end := range map[string]func(f afero.File) error{
		"closed": func(f afero.File) error { return f.Close() },
		"broken": func(f afero.File) error {
			f.(aborter).Abort(errInterrupted)
			if err := f.Close(); !errors.Is(err, errInterrupted) {
				return fmt.Errorf("close: %w", err)
			}
			return nil
		},
	} {
		x.run(label, func(x *fixture) {
			f := x.begin(session, "dir/"+label, create, 0, random(x.partSize+1))
			x.awaitRecords(1)
			x.Fs = session
			if slices.Contains(x.list("/"), reserved) {
				x.Error("the listing shows the journal")
			}
			wantNoError(x, end(f))
			x.wantNoUploads("dir/" + label)
			if records := x.records(); len(records) > 0 {
				x.Errorf("unexpected objects %q", records)
			}
		})
	}
	x.run("small", func(x *fixture) {
		x.spy.Reset()
		f := x.begin(session, "small", create, 0, random(x.partSize))
		x.close(f)
		if n := x.spy.Total(); n != 1 {
			x.Errorf("got requests %v", x.spy.Counts())
		}
	})
	x.wantKeys("dir/closed", "small")
}

// awaitRecords waits until there are n records. The driver writes them in the background.
func (x *fixture) awaitRecords(n int) {
	x.Helper()
	deadline := time.Now().Add(time.Minute)
	for len(x.records()) != n {
		if time.Now().After(deadline) {
			x.Fatalf("the records are %q, want %d", x.records(), n)
		}
	}
}

// awaitParts waits until the only upload to a key has n parts.
func (x *fixture) awaitParts(key string, n int) {
	x.Helper()
	uploads := x.uploads(key)
	if len(uploads) != 1 {
		x.Fatalf("uploads to %q: %v", key, uploads)
	}
	deadline := time.Now().Add(time.Minute)
	for {
		parts, err := x.client.ListParts(
			x.Context(), &s3.ListPartsInput{Bucket: &x.bucket, Key: &key, UploadId: uploads[0].UploadId})
		x.must(err)
		if len(parts.Parts) == n {
			return
		}
		if time.Now().After(deadline) {
			x.Fatalf("the upload to %q has %d parts, want %d", key, len(parts.Parts), n)
		}
	}
}

// testSweep lets one server die and another one sweep.
func (x *fixture) testSweep() {
	died := x.process()
	for _, name := range []string{"file", "dir/été +%"} {
		x.begin(died.as(""), name, create, 0, random(2*x.partSize+1))
		x.awaitParts(name, 2) // a part that arrives after the upload was aborted stays on some servers
	}
	x.interrupt(died.as("alice"), "small", create, 0, random(1000))
	x.awaitRecords(3)
	foreign, err := x.client.CreateMultipartUpload(
		x.Context(), &s3.CreateMultipartUploadInput{Bucket: &x.bucket, Key: aws.String("file")})
	x.must(err)
	p := x.process()
	if n, err := p.journal.Sweep(x.Context(), 0); err != nil || n != 1 {
		x.Errorf("got %d uploads, %v; want 1, because the others are in use", n, err)
	}
	x.interrupt(died.as("alice"), "small", create, 0, random(1000))
	x.advanceClock()
	defer x.spy.After(nil)
	for _, sweep := range []struct {
		age     time.Duration
		ended   int
		uploads int // number of uploads to file
		records int
	}{{time.Hour, 0, 2, 3}, {0, 3, 1, 0}, {0, 0, 1, 0}} {
		n, err := p.journal.Sweep(x.Context(), sweep.age)
		if err != nil || n != sweep.ended {
			x.Errorf("older than %v: %d uploads, %v; want %d", sweep.age, n, err, sweep.ended)
		}
		if n := len(x.uploads("file")); n != sweep.uploads {
			x.Errorf("older than %v: %d uploads are left, want %d", sweep.age, n, sweep.uploads)
		}
		if records := x.records(); len(records) != sweep.records {
			x.Errorf("older than %v: the records %q are left, want %d", sweep.age, records, sweep.records)
		}
	}
	if swept, interrupted := p.journal.Stats().Swept, died.journal.Stats().Interrupted; swept != 4 || interrupted != 2 {
		x.Errorf("got %d swept and %d interrupted uploads, want 4 and 2", swept, interrupted)
	}
	x.wantNoUploads("dir/été +%")
	x.wantKeys()
	_, err = x.client.AbortMultipartUpload(x.Context(), &s3.AbortMultipartUploadInput{
		Bucket: &x.bucket, Key: aws.String("file"), UploadId: foreign.UploadId,
	})
	if err != nil {
		x.Errorf("unexpected error for the upload of another client: %v", err)
	}
}

// testSweepLeftBehind fails to abort an upload. A sweep must remove it.
func (x *fixture) testSweepLeftBehind() {
	p := x.process()
	f := x.begin(p.as(""), "file", create, 0, random(x.partSize+1))
	x.awaitRecords(1)
	x.failRequests(always, "AbortMultipartUpload")
	f.(aborter).Abort(errInterrupted)
	wantError(x, f.Close(), errInterrupted)
	if n := len(x.uploads("file")); n != 1 {
		x.Fatalf("%d uploads left, so the test proves nothing", n)
	}
	x.advanceClock()
	if _, err := p.journal.Sweep(s3api.WithRetries(x.Context(), retries()), 0); err == nil {
		x.Error("missing error for an upload that cannot be aborted")
	}
	x.spy.Before(nil)
	if n, err := p.journal.Sweep(x.Context(), 0); n != 1 || err != nil {
		x.Errorf("%d uploads, %v", n, err)
	}
	x.spy.After(nil)
	x.wantNothingPending("file")
}

// testUnrecorded checks that an upload succeeds without its record.
func (x *fixture) testUnrecorded() {
	x.spy.Before(func(_ context.Context, _ string, in any) error {
		if put, ok := in.(*s3.PutObjectInput); ok && strings.HasPrefix(*put.Key, reserved) {
			return responseError(403, "AccessDenied")
		}
		return nil
	})
	p := x.process()
	x.close(x.begin(p.as(""), "file", create, 0, random(x.partSize+1)))
	x.wantContent("file", random(x.partSize+1))
	x.interrupt(p.as("alice"), "other", create, 0, random(x.partSize+1))
	x.interrupt(p.as("alice"), "small", create, 0, random(10))
	x.spy.Before(nil)
	x.wantKeys("file")
}

// testForeignRecord stores an object that is not a record among the records. A sweep must remove it, but only when it
// is old.
func (x *fixture) testForeignRecord() {
	x.put(reserved+"uploads-1/else", []byte("else"))
	p := x.process()
	if n, err := p.journal.Sweep(x.Context(), time.Hour); n != 0 || err != nil {
		x.Errorf("%d uploads, %v", n, err)
	}
	x.wantKeys(reserved + "uploads-1/else")
	x.advanceClock()
	defer x.spy.After(nil)
	for _, age := range []time.Duration{time.Hour, 0} {
		if n, err := p.journal.Sweep(x.Context(), age); n != 0 || err != nil {
			x.Errorf("older than %v: %d uploads, %v", age, n, err)
		}
		if left := len(x.records()); (left == 0) != (age == 0) {
			x.Errorf("older than %v: %d objects are left", age, left)
		}
	}
}

// testLostMetadata removes the metadata of a record, as a tool may do that moves a bucket to another provider. The
// owner can no longer resume the upload, but everything else with this file and with others works, and a sweep removes
// the record.
func (x *fixture) testLostMetadata() {
	p := x.process()
	quotas, _ := x.quotas("", 4000)
	alice := p.as("alice", driver.Options{Quotas: quotas})
	x.interrupt(alice, "file", create, 0, random(1000))
	records := x.records()
	if len(records) != 1 {
		x.Fatalf("the records are %q", records)
	}
	x.put(records[0], []byte("without metadata"))
	x.run("size", func(x *fixture) {
		x.wantPending(alice, "file", 0)
	})
	x.run("restart", func(x *fixture) {
		wantError(x, errorOf(alice.OpenAt("file", resumeFlag, 999)), fs.ErrNotExist)
	})
	x.run("remove-nothing", func(x *fixture) { wantError(x, alice.RemoveFile("file"), fs.ErrNotExist) })
	x.run("append", func(x *fixture) {
		x.close(x.begin(alice, "file", resumeFlag|os.O_APPEND, 0, []byte("appended")))
		x.wantContent("file", []byte("appended"))
	})
	x.run("replace", func(x *fixture) {
		x.close(x.begin(alice, "file", create, 0, []byte("replaced")))
		x.wantContent("file", []byte("replaced"))
	})
	x.run("remove", func(x *fixture) {
		wantNoError(x, alice.RemoveFile("file"))
	})
	x.run("resume", func(x *fixture) {
		x.interrupt(alice, "file", create, 0, random(1000))
		x.resume(alice, "file", 1000, random(1000))
		x.delete("file")
	})
	x.run("pending", func(x *fixture) {
		if pending, all, err := p.journal.Pending(x.Context(), 10); len(pending) != 0 || all != 0 || err != nil {
			x.Errorf("%d of %d uploads are pending, %v", len(pending), all, err)
		}
	})
	x.run("limit", func(x *fixture) {
		for i := range 3 { // only two of them may stay
			x.interrupt(alice, fmt.Sprint("other", i), create, 0, random(1000))
		}
		wantNoError(x, p.journal.RemoveChanged(x.Context()))
		if records := x.records(); len(records) != 3 {
			x.Errorf("records are %q", records)
		}
	})
	x.run("sweep", func(x *fixture) {
		x.advanceClock()
		defer x.spy.After(nil)
		if _, err := p.journal.Sweep(x.Context(), 0); err != nil {
			x.Error(err)
		}
		x.wantKeys()
	})
}

func testResume(t *testing.T, h Harness) {
	t.Run("sizes", func(t *testing.T) { testResumeSizes(t, h) })
	t.Run("after-errors", func(t *testing.T) { testResumeAfterErrors(t, h) })
	for _, test := range []struct {
		label string
		run   func(x *fixture)
	}{
		{"invisible", (*fixture).testPendingInvisible},
		{"again-and-again", (*fixture).testInterruptedAgain},
		{"offsets", (*fixture).testResumeOffsets},
		{"appended-to", (*fixture).testPendingAppended},
		{"live", (*fixture).testLiveUntouched},
		{"limit", (*fixture).testPendingLimit},
		{"started-over", (*fixture).testPendingReplaced},
		{"replaced-by-others", (*fixture).testPendingReplacedByOthers},
		{"stored-meanwhile", (*fixture).testStoredBeforeInterrupt},
		{"wrong-bytes", (*fixture).testWrongBytesDiscarded},
		{"not-completed", (*fixture).testResumeNotCompleted},
		{"removed", (*fixture).testPendingRemoved},
		{"appended", (*fixture).testInterruptedAppend},
		{"stale-record", (*fixture).testStaleRecord},
		{"record-without-metadata", (*fixture).testLostMetadata},
		{"part-not-sent", (*fixture).testResumePartNotSent},
		{"other-part-size", (*fixture).testResumeOtherPartSize},
		{"requests", (*fixture).testResumeRequests},
	} {
		t.Run(test.label, func(t *testing.T) { test.run(h.open(t, nil)) })
	}
}

// testResumeSizes interrupts uploads after different numbers of bytes. Another process resumes them in each way that
// clients use.
func testResumeSizes(t *testing.T, h Harness) {
	x := h.open(t, nil)
	size := 2*h.PartSize + 1000
	content := random(size)
	for label, sent := range map[string]int{
		"nothing": 0, "one-byte": 1, "two-bytes": 2, "small": 1000, "part-less-one": h.PartSize - 1, "part": h.PartSize,
		"part-and-one": h.PartSize + 1, "parts": 2*h.PartSize + 77, "two-parts": 2 * h.PartSize, "all": size,
	} {
		for way, flag := range map[string]int{"restart": resumeFlag, "append": resumeFlag | os.O_APPEND} {
			x.run(label+"-"+way, func(x *fixture) {
				name := label + "-" + way
				x.interrupt(x.process().as("alice"), name, create, 0, content[:sent])
				alice := x.process().as("alice")
				from := x.pendingSize(alice, name)
				if want := int64(max(sent-1, 0)); from != want {
					x.Errorf("got %d pending bytes, want %d", from, want)
				}
				offset := from
				if flag&os.O_APPEND != 0 {
					offset = 0
				}
				if from == 0 {
					flag |= os.O_TRUNC
				}
				f := x.begin(alice, name, flag, offset, content[from:])
				if at, err := f.Seek(0, io.SeekEnd); at != int64(size) || err != nil {
					x.Errorf("the file ends at %d, %v", at, err)
				}
				x.close(f)
				x.wantContent(name, content)
				x.wantNoUploads(name)
				x.wantPending(alice, name, 0)
			})
		}
	}
	if records := x.records(); len(records) > 0 {
		x.Errorf("unexpected objects %q", records)
	}
}

// testResumeAfterErrors interrupts uploads with each kind of error.
func testResumeAfterErrors(t *testing.T, h Harness) {
	sent := 2*h.PartSize + 1000
	content := random(3 * h.PartSize)
	for _, test := range []struct {
		label string
		kind  error
		run   func(x *fixture, f afero.File, end context.CancelFunc)
	}{
		{"aborted", errInterrupted, func(_ *fixture, f afero.File, _ context.CancelFunc) {
			f.(aborter).Abort(errInterrupted)
		}},
		{"session-ended", context.Canceled, func(_ *fixture, _ afero.File, end context.CancelFunc) { end() }},
		{"source-failed", errInterrupted, func(_ *fixture, f afero.File, _ context.CancelFunc) {
			_, _ = io.Copy(f, iotest.ErrReader(errInterrupted))
		}},
		{"refused-before-commit", errInterrupted, func(*fixture, afero.File, context.CancelFunc) {}},
	} {
		t.Run(test.label, func(t *testing.T) {
			x := h.open(t, nil)
			ctx, end := context.WithCancel(t.Context())
			defer end()
			p := x.process()
			session := x.session(
				ctx, &driver.Options{Journal: p.journal, Owner: "alice", BeforeCommit: func(context.Context) error { return errInterrupted }})
			f := x.begin(session, "file", create, 0, content[:sent])
			test.run(x, f, end)
			wantError(x, f.Close(), test.kind)
			x.spy.Before(nil)
			if x.exists("file") {
				x.Error("the object exists")
			}
			x.resume(p.as("alice"), "file", sent, content)
			x.wantKeys("file")
		})
	}
}

// testPendingInvisible checks that other users do not see an interrupted upload.
func (x *fixture) testPendingInvisible() {
	p := x.process()
	x.interrupt(p.as("alice"), "dir/file", create, 0, random(x.partSize+1000))
	bob := p.as("bob")
	for label, session := range map[string]*Fs{"another-user": bob, "without-owner": p.as(""),
		"herself": p.as("alice")} {
		x.run(label, func(x *fixture) {
			if label != "herself" && x.pendingSize(session, "dir/file") != 0 {
				x.Error("the pending upload is visible")
			}
			wantError(x, errorOf(session.Stat("dir/file")), fs.ErrNotExist)
			wantError(x, errorOf(session.Open("dir/file")), fs.ErrNotExist)
			wantError(x, errorOf(session.StatDir("dir")), fs.ErrNotExist)
			x.Fs = session
			x.wantList("/")
			wantError(x, errorOf(session.Stat(reserved)), syscall.EILSEQ)
			if label != "herself" {
				wantError(x, errorOf(session.OpenAt("dir/file", resumeFlag, int64(x.partSize))), fs.ErrNotExist)
			}
		})
	}
	x.close(x.begin(bob, "dir/file", create, 0, random(10)))
	x.wantContent("dir/file", random(10))
	x.wantPending(p.as("alice"), "other", 0)
}

// testInterruptedAgain interrupts and resumes an upload several times.
func (x *fixture) testInterruptedAgain() {
	content := random(4*x.partSize + 12345)
	sent := 0
	for round := 0; ; round++ {
		session := x.process().as("alice")
		from := int(x.pendingSize(session, "file"))
		if from > sent {
			x.Fatalf("got %d pending bytes of %d", from, sent)
		}
		if round == 12 {
			x.close(x.begin(session, "file", resumeFlag, int64(from), content[from:]))
			break
		}
		flag := resumeFlag
		if from == 0 {
			flag = create
		}
		sent = min(from+[]int{300, x.partSize / 3, 0, 1, x.partSize + 5, 7}[round%6], len(content))
		x.interrupt(session, "file", flag, int64(from), content[from:sent])
		if again := int(x.pendingSize(session, "file")); again < from || again < sent-1 {
			x.Errorf("round %d: got %d pending bytes of %d, %d before", round, again, sent, from)
		}
	}
	x.wantContent("file", content)
	x.wantNothingPending("file", "file")
}

// testResumeOffsets opens a file at other offsets than the size of its pending upload.
func (x *fixture) testResumeOffsets() {
	pending := 2*x.partSize + 99
	content := random(3 * x.partSize)
	for label, object := range map[string][]byte{"no-object": nil, "object": random(x.partSize + 50)} {
		x.run(label, func(x *fixture) {
			session := x.process().as("alice")
			if object != nil {
				x.put("file", object)
			}
			x.interrupt(session, "file", create, 0, content[:pending+1])
			for _, offset := range []int{1, x.partSize, x.partSize + 50, 2 * x.partSize, pending - 1, pending + 1,
				1 << 40} {
				_, err := session.OpenAt("file", resumeFlag, int64(offset))
				x.wantResumeError(err, pending)
			}
			f := x.begin(session, "file", resumeFlag, int64(pending), nil)
			x.wantResumeError(f.Close(), pending) // it needs at least one more byte
			if object != nil {
				x.wantContent("file", object)
			}
			x.close(x.begin(session, "file", resumeFlag, int64(pending), content[pending:]))
			x.wantContent("file", content)
			x.wantNothingPending("file", "file")
			x.delete("file")
		})
	}
}

// wantResumeError checks that an error names the offset at which an upload can be resumed.
func (x *fixture) wantResumeError(err error, size int) {
	x.Helper()
	var refused *driver.ResumeError
	if !errors.As(err, &refused) || refused.Size != int64(size) || !errors.Is(err, fs.ErrInvalid) {
		x.Errorf("got error %v, want one that contains %d", err, size)
	}
}

// testPendingAppended appends to a file that has a pending upload.
func (x *fixture) testPendingAppended() {
	content := random(x.partSize + 1000)
	appendTo := func(session *Fs, name string, content []byte) error {
		return WriteAt(session, name, resumeFlag|os.O_APPEND, 0, content)
	}
	for label, size := range map[string]int{"small": 999, "parts": x.partSize + 500} {
		x.run(label, func(x *fixture) {
			p := x.process()
			x.interrupt(p.as("alice"), label, create, 0, content[:size+1])
			for _, added := range [][]byte{nil, []byte("added")} {
				x.wantResumeError(appendTo(p.as("alice"), label, added), size) // without requesting the size first
			}
			wantNoError(x, appendTo(p.as("bob"), label, []byte("bob's")))
			x.wantContent(label, []byte("bob's"))
			alice := p.as("alice")
			x.wantPending(alice, label, 0)
			wantNoError(x, appendTo(alice, label, []byte(" hers")))
			x.wantContent(label, []byte("bob's hers"))
			x.delete(label)
		})
	}
	x.run("asked-then-stored", func(x *fixture) {
		p := x.process()
		alice := p.as("alice")
		x.interrupt(alice, "file", create, 0, content[:1000])
		x.wantPending(alice, "file", 999)
		x.put("file", []byte("finished"))
		x.wantResumeError(appendTo(alice, "file", content[999:]), len("finished"))
		if err := appendTo(alice, "file", []byte(" more")); err != nil { // the report only applied to one append
			x.Error(err)
		}
		x.wantContent("file", []byte("finished more"))
		x.delete("file")
	})
	x.run("asked-then-stored-then-restarted", func(x *fixture) {
		p := x.process()
		x.interrupt(p.as("alice"), "file", create, 0, content[:1000])
		alice := p.as("alice")
		x.wantPending(alice, "file", 999)
		x.close(x.begin(p.as("alice"), "file", create, 0, random(2000))) // ends the pending upload
		_, err := alice.OpenAt("file", resumeFlag, 999)
		x.wantResumeError(err, 2000)
		x.wantContent("file", random(2000))
		x.delete("file")
	})
	x.run("asked-then-stored-then-seen", func(x *fixture) {
		alice := x.process().as("alice")
		x.interrupt(alice, "file", create, 0, content[:1000])
		x.wantPending(alice, "file", 999)
		x.put("file", []byte("finished"))
		if _, err := alice.StatFile("file"); err != nil {
			x.Error(err)
		}
		wantNoError(x, appendTo(alice, "file", []byte(" more")))
		x.wantContent("file", []byte("finished more"))
		x.delete("file")
	})
	x.run("nothing-appended", func(x *fixture) { // so nothing replaces the upload
		p := x.process()
		x.put("file", []byte("old"))
		x.interrupt(p.as("alice"), "file", create, 0, content)
		wantNoError(x, appendTo(p.as("alice"), "file", nil))
		x.wantContent("file", []byte("old"))
		sent := len(content) - 1
		x.close(x.begin(p.as("alice"), "file", resumeFlag, int64(sent), content[sent:]))
		x.wantContent("file", content)
		x.delete("file")
	})
	x.run("broken-off", func(x *fixture) { // appending to a log again must not fail
		alice := x.process().as("alice")
		x.interrupt(alice, "log", resumeFlag|os.O_APPEND, 0, content[:1000])
		wantNoError(x, appendTo(alice, "log", []byte("line")))
		x.wantContent("log", []byte("line"))
	})
}

// testLiveUntouched checks that other sessions of an owner do not touch an upload on which a session is working.
func (x *fixture) testLiveUntouched() {
	content := random(2*x.partSize + 77)
	for label, process := range map[string]func() *process{"other-process": x.process, "same-process": nil} {
		x.run(label, func(x *fixture) {
			p := x.process()
			live := x.begin(p.as("alice"), "file", create, 0, content[:x.partSize+1000])
			x.awaitRecords(1)
			x.awaitParts("file", 1)
			other := p
			if process != nil {
				other = process()
			}
			alice := other.as("alice")
			x.wantPending(alice, "file", 0)
			wantError(x, errorOf(alice.OpenAt("file", resumeFlag, int64(x.partSize))), fs.ErrNotExist)
			wantError(x, alice.RemoveFile("file"), fs.ErrNotExist)
			x.close(x.begin(alice, "file", resumeFlag|os.O_APPEND, 0, []byte("appended")))
			x.wantContent("file", []byte("appended"))
			x.close(x.begin(alice, "file", create, 0, random(x.partSize+9)))
			x.wantContent("file", random(x.partSize+9))
			wantNoError(x, alice.RemoveFile("file"))
			if _, err := live.Write(content[x.partSize+1000:]); err != nil {
				x.Error(err)
			}
			x.close(live)
			x.wantContent("file", content)
			x.wantNothingPending("file", "file")
			x.delete("file")
		})
	}
}

// testPendingReplaced sends the file again from another process. From then on no session can resume the old upload,
// even if the file is deleted, and its bytes are removed soon.
func (x *fixture) testPendingReplaced() {
	sizes := map[string]int{"small": 1000, "parts": x.partSize + 1000}
	p, other := x.process(), x.process()
	alice := p.as("alice")
	for label, size := range sizes {
		x.run(label, func(x *fixture) {
			x.interrupt(other.as("alice"), label, create, 0, random(2*x.partSize+9))
			x.close(x.begin(alice, label, create, 0, random(size)))
			for process, session := range map[string]*Fs{"this": alice, "other": other.as("alice")} {
				_, err := session.OpenAt(label, resumeFlag, int64(2*x.partSize+8))
				var refused *driver.ResumeError
				if process == "other" && (!errors.As(err, &refused) || !refused.Changed || refused.Size != int64(size)) {
					x.Errorf("resuming after the file was replaced: unexpected error %v", err)
				}
				wantError(x, err, fs.ErrInvalid)
				x.wantPending(session, label, 0)
			}
			x.wantContent(label, random(size))
			x.delete(label)
			x.wantPending(alice, label, 0)
		})
	}
	remove := func() {
		x.spy.Reset()
		wantNoError(x, p.journal.RemoveChanged(x.Context()))
	}
	remove()
	lists, sorted := x.spy.Counts()["ListObjectsV2"], x.profile.SortedListings
	if sorted && lists != 1 {
		x.Errorf("got requests %v", x.spy.Counts())
	}
	remove()
	if n := x.spy.Total(); n > 1 {
		x.Errorf("removing a missing file: got requests %v", x.spy.Counts())
	}
	for label := range sizes {
		x.wantNoUploads(label)
		x.wantPending(x.process().as("alice"), label, 0)
	}
	x.wantKeys()
}

// testPendingReplacedByOthers lets another S3 client store the file. The upload can no longer be resumed, even if the
// file is deleted.
func (x *fixture) testPendingReplacedByOthers() {
	content := random(x.partSize + 1000)
	x.put("file", random(20))
	alice := x.process().as("alice")
	x.interrupt(alice, "file", create, 0, content)
	x.put("file", random(21))
	_, err := x.process().as("alice").OpenAt("file", resumeFlag, int64(x.partSize+999))
	var refused *driver.ResumeError
	if !errors.As(err, &refused) || !refused.Changed || refused.Size != 21 {
		x.Errorf("resuming after the file was replaced: unexpected error %v", err)
	}
	x.delete("file")
	again := x.process().as("alice")
	x.wantPending(again, "file", 0)
	wantError(x, errorOf(again.OpenAt("file", resumeFlag, int64(x.partSize+999))), fs.ErrNotExist)
}

// testStoredBeforeInterrupt lets a client reconnect and store the file before its old session notices the interruption.
func (x *fixture) testStoredBeforeInterrupt() {
	sizes := map[string]int{"small": 1000, "parts": x.partSize + 1000}
	p, begun := x.process(), map[string]afero.File{}
	for label, size := range sizes {
		begun[label] = x.begin(p.as("alice"), label, create, 0, random(size))
	}
	time.Sleep(3100 * time.Millisecond) // times in S3 are rounded to seconds
	for label, size := range sizes {
		x.run(label, func(x *fixture) {
			old := begun[label]
			x.close(x.begin(p.as("alice"), label, create, 0, random(size+5)))
			old.(aborter).Abort(errInterrupted)
			wantError(x, old.Close(), errInterrupted)
			x.wantPending(p.as("alice"), label, 0)
			x.wantContent(label, random(size+5))
			x.wantNoUploads(label)
		})
	}
	if records := x.records(); len(records) > 0 {
		x.Errorf("unexpected objects %q", records)
	}
}

// testWrongBytesDiscarded checks that an owner cannot resume an upload with wrong bytes.
func (x *fixture) testWrongBytesDiscarded() {
	p := x.process()
	wrong := fmt.Errorf("too many: %w", fs.ErrInvalid)
	refuse := driver.Options{BeforeCommit: func(context.Context) error { return wrong }}
	for label, size := range map[string]int{"small": 1000, "parts": x.partSize + 1000} {
		x.run(label, func(x *fixture) {
			wantError(x, x.begin(p.as("alice", refuse), label, create, 0, random(size)).Close(), wrong)
			x.wantNothingPending(label)
			x.interrupt(p.as("alice"), label, create, 0, random(size))
			wantError(x, x.begin(p.as("alice", refuse), label, resumeFlag, int64(size-1), random(size)).Close(), wrong)
			x.wantNothingPending(label)
		})
	}
}

// testResumePartNotSent disconnects the client when a part is full but not sent yet.
func (x *fixture) testResumePartNotSent() {
	session := x.process().as("alice")
	f := x.begin(session, "file", create, 0, random(x.partSize))
	x.spy.Before(func(_ context.Context, operation string, _ any) error {
		if operation == "CreateMultipartUpload" {
			f.(aborter).Abort(errInterrupted)
		}
		return nil
	})
	wantError(x, errorOf(f.Write([]byte{0})), errInterrupted)
	wantError(x, f.Close(), errInterrupted)
	x.resume(session, "file", x.partSize, random(x.partSize))
}

// testResumeOtherPartSize interrupts an upload before its first part, resumes it with another part size, and interrupts
// it again.
func (x *fixture) testResumeOtherPartSize() {
	size := 3 * x.partSize
	content := random(size)
	x.interrupt(x.process().as("alice", driver.Options{PartSize: int64(x.partSize) + 1<<20}), "file", create, 0, content[:1000])
	alice := x.process().as("alice")
	from := x.pendingSize(alice, "file")
	x.interrupt(alice, "file", resumeFlag, from, content[from:])
	x.resume(alice, "file", size, content)
	x.wantKeys("file")
}

// testResumeNotCompleted interrupts an upload after its last part. The client must not find all of its bytes, because
// it would then send no more.
func (x *fixture) testResumeNotCompleted() {
	for label, size := range map[string]int{"part": x.partSize, "parts": 2 * x.partSize, "more": 2*x.partSize + 1} {
		x.run(label, func(x *fixture) {
			x.spy.Before(func(_ context.Context, operation string, in any) error {
				put, ok := in.(*s3.PutObjectInput)
				if operation == "CompleteMultipartUpload" || ok && !strings.HasPrefix(*put.Key, reserved) {
					return responseError(503, "SlowDown")
				}
				return nil
			})
			session := x.process().as("alice")
			f := x.begin(session, label, create, 0, random(size))
			if err := f.Close(); err == nil {
				x.Error("Close returned no error")
			}
			x.spy.Before(nil)
			x.resume(session, label, size, random(size))
		})
	}
}

// testPendingRemoved removes a file that only has a pending upload.
func (x *fixture) testPendingRemoved() {
	session := x.process().as("alice")
	x.interrupt(session, "file", create, 0, random(x.partSize+1000))
	wantNoError(x, session.RemoveFile("file"))
	x.wantNothingPending("file")
	wantError(x, session.RemoveFile("file"), fs.ErrNotExist)
	x.put("file", nil)
	x.interrupt(session, "file", create, 0, random(10))
	wantNoError(x, session.RemoveFile("file"))
	x.wantNothingPending("file")
}

// testInterruptedAppend interrupts an upload that appends to an object. The object must stay, and the client can append
// again.
func (x *fixture) testInterruptedAppend() {
	for label, size := range map[string]int{"small": 1000, "parts": x.partSize} {
		x.run(label, func(x *fixture) {
			x.put(label, random(size))
			session := x.process().as("alice")
			x.interrupt(session, label, resumeFlag|os.O_APPEND, 0, random(x.partSize+1000))
			x.wantPending(session, label, 0)
			x.wantContent(label, random(size))
			x.wantNoUploads(label)
		})
	}
}

// advanceClock moves the clock of S3 forward by a quarter of an hour, so that everything is older.
func (x *fixture) advanceClock() {
	const ahead = 15 * time.Minute
	x.spy.After(func(_ string, out any) error {
		switch out := out.(type) {
		case *s3.HeadObjectOutput:
			out.LastModified = aws.Time(out.LastModified.Add(-ahead))
		case *s3.ListMultipartUploadsOutput:
			for i := range out.Uploads {
				out.Uploads[i].Initiated = aws.Time(aws.ToTime(out.Uploads[i].Initiated).Add(-ahead))
			}
		}
		return nil
	})
}

// testPendingLimit interrupts more uploads than an owner may have pending.
func (x *fixture) testPendingLimit() {
	p := x.process()
	quotas, usage := x.quotas("", 6*x.partSize)
	x.must(usage.Count(x.Context()))
	alice := p.as("alice", driver.Options{Quotas: quotas})
	for i := range 5 {
		x.interrupt(alice, fmt.Sprint("file", i), create, 0, random(x.partSize+1000))
	}
	wantNoError(x, p.journal.RemoveChanged(x.Context()))
	var pending int64
	for i := range 5 {
		pending += x.pendingSize(alice, fmt.Sprint("file", i))
	}
	if want := int64(2 * (x.partSize + 999)); pending != want {
		x.Errorf("got %d pending bytes, want %d", pending, want)
	}
	if records := x.records(); len(records) != 2 {
		x.Errorf("records are %q", records)
	}
	wantNoError(x, usage.Count(x.Context()))
	if used, _ := usage.Used(); used != 0 {
		x.Errorf("got usage %d", used)
	}
}

// testStaleRecord leaves a record whose upload no longer exists.
func (x *fixture) testStaleRecord() {
	p := x.process()
	x.interrupt(p.as("alice"), "file", create, 0, random(x.partSize+1000))
	if n := len(x.uploads("file")); n != 1 {
		x.Fatalf("got %d open uploads", n)
	}
	x.abortUploads("file")
	x.wantPending(p.as("alice"), "file", 0)
	x.wantNothingPending("file")
}

// testResumeRequests counts the requests for upload records.
func (x *fixture) testResumeRequests() {
	alice := x.process().as("alice")
	checks := 0 // instead of a condition
	if !x.profile.ConditionalPut {
		checks = 1
	}
	for _, test := range []struct {
		label string
		most  int
		run   func()
	}{
		{"write", 1, func() { x.close(x.begin(alice, "small", create, 0, random(1000))) }},
		{"ask", 1, func() { x.pendingSize(alice, "file") }},
		{"interrupt", 4, func() { x.interrupt(alice, "file", create, 0, random(1000)) }},
		{"pending-size", 3, func() { x.pendingSize(alice, "file") }},
		{"resume", 8 + checks, func() { x.close(x.begin(alice, "file", resumeFlag, 999, random(1000))) }},
	} {
		x.spy.Reset()
		test.run()
		if n := x.spy.Total(); n > test.most {
			x.Errorf("%s took %d requests, %v; want at most %d", test.label, n, x.spy.Counts(), test.most)
		}
	}
}
