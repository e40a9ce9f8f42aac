package journal

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"sync/atomic"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/panics"
)

// An Entry is the record of an upload that this process works on. Its methods do nothing for a nil one, which stands
// for an upload outside of any journal.
type Entry struct {
	journal        *Journal
	cancel         context.CancelCauseFunc // ends the upload when another session has taken it over
	stopHeartbeats context.CancelFunc      // ends the heartbeat
	client         *ClientWait             // nil for an upload without an owner, where a stall does not matter

	stalled atomic.Bool  // another session may have the upload
	bound   atomic.Int64 // the next TailOffset of the record

	mu      lock // held during a write of the record
	record  Record
	written bool // S3 has the record
	ended   bool // the heartbeat writes no more
	taken   bool // another session has the upload
}

// A lock is a mutex that a goroutine may hold during a request to S3. A goroutine that waits for a lock counts as
// blocked in a bubble of testing/synctest. One that waits for a sync.Mutex does not.
type lock chan struct{}

// Lock waits until no other goroutine holds the lock.
func (l lock) Lock() { l <- struct{}{} }

// Unlock releases the lock.
func (l lock) Unlock() { <-l }

// A ClientWait holds since when an upload waits for bytes of its client. It is nil where the upload does not wait.
// The time has a monotonic reading: a clock that is set must not make another session take over an upload that goes
// on.
type ClientWait struct{ since atomic.Pointer[time.Time] }

// Begin says that the upload begins to wait.
func (c *ClientWait) Begin() {
	now := time.Now()
	c.since.Store(&now)
}

// End says that bytes have come.
func (c *ClientWait) End() { c.since.Store(nil) }

// tooLong reports whether the upload has waited for stallAfter.
func (c *ClientWait) tooLong() bool {
	if c == nil {
		return false
	}
	since := c.since.Load()
	return since != nil && time.Since(*since) >= stallAfter
}

// Enter makes the entry of an upload that S3 has just created, and writes its record. If the record cannot be
// written, the upload continues without one, the log has a warning, and the next heartbeat tries again.
func (j *Journal) Enter(ctx context.Context, r Record, client *ClientWait, cancel context.CancelCauseFunc) *Entry {
	e := j.Take(ctx, r, client, cancel)
	e.write(ctx, func(*Record) {})
	return e
}

// Resume makes the entry of an interrupted upload, whose parts count up to an offset. The last part after it may end
// with the file, and a client that found its whole file there would send no more. So these parts count only when the
// client has sent a byte after them to this session too, see ByteAfter. The error is ErrTakenOver if another session
// was faster, and then there is no entry. After another error S3 may have made this session the holder, and the entry
// can be given up.
func (j *Journal) Resume(
	ctx context.Context, r Record, offset int64, client *ClientWait, cancel context.CancelCauseFunc,
) (*Entry, error) {
	r.TailOffset = offset
	err := j.takeOver(ctx, &r, live)
	if errors.Is(err, ErrTakenOver) {
		return nil, err
	}
	return j.Take(ctx, r, client, cancel), err
}

// Take makes the entry of a record, and begins its heartbeat, which ends with ctx.
func (j *Journal) Take(ctx context.Context, r Record, client *ClientWait, cancel context.CancelCauseFunc) *Entry {
	e := &Entry{journal: j, record: r, written: r.etag != "", client: client, cancel: cancel, mu: make(lock, 1)}
	e.bound.Store(r.TailOffset)
	ctx, e.stopHeartbeats = context.WithCancel(ctx)
	j.mu.Lock()
	before := j.open[r.Name]
	j.open[r.Name] = e
	j.mu.Unlock()
	if before != nil {
		before.cancel(ErrTakenOver) // a stalled session of this process, which would otherwise notice it later
	}
	panics.Go(func() { e.sendHeartbeats(ctx) })
	return e
}

// sendHeartbeats writes heartbeats while the upload lasts. When the client has stalled, it writes that too.
func (e *Entry) sendHeartbeats(ctx context.Context) {
	begun, failed := time.Now(), false
	for s3api.Sleep(ctx, stallCheckInterval) == nil {
		stalls := e.client.tooLong() && !e.stalled.Load()
		interval := e.record.heartbeat
		if failed || !e.Recorded() {
			interval = heartbeatInterval
		}
		if !stalls && time.Since(begun) < interval {
			continue
		}
		begun = time.Now()
		failed = !e.write(ctx, func(r *Record) {
			if !stalls {
				return
			}
			// before the check, so that either this check or the client's next byte notices the other
			e.stalled.Store(true)
			if r.state = stalled; !e.client.tooLong() {
				r.state = live
				e.stalled.Store(false)
			}
		})
	}
}

// write changes the record unless the upload has ended. If another session has taken the upload over, write ends it.
// Other errors go to the log, because the next heartbeat tries again. It reports whether S3 has the record.
func (e *Entry) write(ctx context.Context, change func(*Record)) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return false
	}
	change(&e.record)
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer done()
	err := panics.Catch(func() error { return e.put(ctx, bytes.NewReader(nil)) })
	switch {
	case err == nil:
	case errors.Is(err, ErrTakenOver):
		e.ended = true
		e.cancel(ErrTakenOver)
	default:
		e.journal.log.Warn("record of an upload could not be written; the next heartbeat tries again",
			"key", e.record.Key, "upload", e.record.Upload, "err", err)
	}
	return err == nil
}

// put writes the record, which the caller has locked. The tail is the bytes that follow the parts that count.
func (e *Entry) put(ctx context.Context, tail s3object.Content) error {
	e.record.TailOffset = e.bound.Load()
	err := e.journal.put(ctx, &e.record, tail)
	e.written = e.written || err == nil
	e.taken = e.taken || errors.Is(err, ErrTakenOver)
	return err
}

// Record returns the record as this session has written it last.
func (e *Entry) Record() Record {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.record
}

// ConfirmHolder makes sure that the upload still belongs to this session: before the session completes it, or when a
// stalled client sends again.
func (e *Entry) ConfirmHolder(ctx context.Context) error {
	if e == nil || !e.stalled.Load() {
		return nil
	}
	return e.hold(ctx)
}

// IsHolder reports whether the record still belongs to this session, so that no other one has had the upload.
func (e *Entry) IsHolder(ctx context.Context) bool { return e == nil || e.hold(ctx) == nil }

// hold writes the record as the one of a session that works on the upload.
func (e *Entry) hold(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return ErrTakenOver
	}
	e.record.state = live
	err := e.put(ctx, bytes.NewReader(nil))
	if err == nil {
		e.stalled.Store(false)
	}
	return err
}

// ByteAfter says that the client has sent a byte after an offset, so that the parts up to there count. It does not
// wait: the next heartbeat writes it into the record of a resumed upload. In another one all parts count.
func (e *Entry) ByteAfter(offset int64) {
	if e != nil && e.bound.Load() != unknownOffset {
		e.bound.Store(offset)
	}
}

// BoundParts makes sure that the part at an offset does not count, before it is sent. In a resumed upload no part does
// after the offset of ByteAfter. In another one BoundParts writes the offset into the record.
func (e *Entry) BoundParts(ctx context.Context, offset int64) error {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended || e.bound.Load() != unknownOffset {
		return nil
	}
	e.bound.Store(offset)
	err := e.put(ctx, bytes.NewReader(nil))
	if !e.written && errors.Is(err, fs.ErrPermission) {
		return nil // S3 takes no records from this server, so no session finds the upload
	}
	return err
}

// Interrupt writes the record of an upload that its owner can resume while the key has this state, see [Record]. The
// tail is the bytes that follow the parts. The uploads of the owner may take maxBytes together, or any number with 0.
func (e *Entry) Interrupt(
	ctx context.Context, state string, offset int64, tail s3object.Content, maxBytes int64,
) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return ErrTakenOver
	}
	e.ended = true
	e.record.state = interrupted
	e.record.KeyState = &state
	e.bound.Store(offset)
	err := e.put(ctx, tail)
	if err != nil {
		return err
	}
	e.journal.interrupted.Add(1)
	e.journal.mu.Lock()
	defer e.journal.mu.Unlock()
	owner, _ := ownerOf(e.record.Name)
	e.journal.limits[owner] = maxBytes
	return nil
}

// Recorded reports whether S3 has the record, so that a session or a sweep can find the upload.
func (e *Entry) Recorded() bool {
	if e == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.written
}

// BeginAbort writes into the record that this session is about to abort the upload, or leaves that to a sweep. The
// error is ErrTakenOver if another session has the upload.
func (e *Entry) BeginAbort(ctx context.Context) error {
	if e == nil || e.client == nil {
		return nil // it has no owner, so no other session can want it
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.taken:
		return ErrTakenOver
	case e.ended:
		return nil
	}
	e.ended = true
	if !e.written {
		return nil
	}
	e.record.state = ending
	return e.put(ctx, bytes.NewReader(nil))
}

// Release ends the work on the upload. The record stays as it is.
func (e *Entry) Release() {
	if e == nil {
		return
	}
	e.stopHeartbeats()
	e.mu.Lock()
	e.ended = true
	e.mu.Unlock()
	e.journal.mu.Lock()
	defer e.journal.mu.Unlock()
	if e.journal.open[e.record.Name] == e {
		delete(e.journal.open, e.record.Name)
	}
}

// Remove ends the work on an upload that S3 has completed or aborted, and deletes the record. If that fails, a later
// sweep deletes it.
func (e *Entry) Remove(ctx context.Context) {
	if e == nil {
		return
	}
	e.Release()
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer done()
	if err := e.journal.bucket.Delete(ctx, e.record.Name); err != nil {
		e.journal.log.Warn("record of an upload could not be deleted; a later sweep deletes it",
			"key", e.record.Key, "record", e.record.Name, "err", err)
	}
}
