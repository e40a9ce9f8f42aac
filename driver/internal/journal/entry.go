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

// An Entry is the journal record of an upload that this process works on. The methods of a nil Entry do nothing; it is
// used for uploads without a journal.
type Entry struct {
	journal        *Journal
	cancel         context.CancelCauseFunc // called when another session took over the upload
	stopHeartbeats context.CancelFunc
	client         *ClientWait // nil for an upload without an owner, which cannot be taken over

	stalled atomic.Bool  // the record may say that the upload is stalled, so another session may take it over
	bound   atomic.Int64 // TailOffset of the next version of the record

	mu        chanMutex // held while the record is written
	record    Record
	written   bool // S3 has the record
	ended     bool // no more heartbeats
	takenOver bool // by another session
}

// A chanMutex is a mutex that a goroutine may hold during a request to S3. Unlike a sync.Mutex, it lets a goroutine
// that waits for it count as blocked in a testing/synctest bubble.
type chanMutex chan struct{}

// Lock implements sync.Locker.
func (m chanMutex) Lock() { m <- struct{}{} }

// Unlock implements sync.Locker.
func (m chanMutex) Unlock() { <-m }

// A ClientWait records since when an upload has been waiting for bytes from its client; nil means that it does not
// wait. The time includes a monotonic clock reading, so that setting the wall clock cannot make another session take
// over an active upload.
type ClientWait struct{ since atomic.Pointer[time.Time] }

// Begin records that the upload starts to wait.
func (c *ClientWait) Begin() {
	now := time.Now()
	c.since.Store(&now)
}

// End records that bytes have arrived.
func (c *ClientWait) End() { c.since.Store(nil) }

// tooLong reports whether the upload has waited for at least stallAfter.
func (c *ClientWait) tooLong() bool {
	if c == nil {
		return false
	}
	since := c.since.Load()
	return since != nil && time.Since(*since) >= stallAfter
}

// Create returns the entry of an upload that S3 has just created, and writes its record. If that fails, Create logs a
// warning, the upload continues without a record, and the next heartbeat tries again.
func (j *Journal) Create(ctx context.Context, r Record, client *ClientWait, cancel context.CancelCauseFunc) *Entry {
	e := j.Take(ctx, r, client, cancel)
	e.write(ctx, func(*Record) {})
	return e
}

// Resume takes over an interrupted upload whose parts count up to the given offset. Parts after the offset may contain
// the end of the file. They count only after the client has sent another byte to this session, see ByteAfter. Otherwise
// a client could find that its whole file is already stored and send nothing.
//
// If another session was faster, the error is ErrTakenOver and the entry is nil. After any other error this session may
// have become the holder, and the caller must release the entry.
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

// Take returns the entry of a record and starts its heartbeats, which end with ctx. If another session of this process
// has an entry for the same record, Take cancels that session's upload.
func (j *Journal) Take(ctx context.Context, r Record, client *ClientWait, cancel context.CancelCauseFunc) *Entry {
	e := &Entry{journal: j, record: r, written: r.etag != "", client: client, cancel: cancel, mu: make(chanMutex, 1)}
	e.bound.Store(r.TailOffset)
	ctx, e.stopHeartbeats = context.WithCancel(ctx)
	j.mu.Lock()
	before := j.open[r.Name]
	j.open[r.Name] = e
	j.mu.Unlock()
	if before != nil {
		before.cancel(ErrTakenOver) // the stalled session would otherwise notice it only later
	}
	panics.Go(func() { e.sendHeartbeats(ctx) })
	return e
}

// sendHeartbeats writes heartbeats until ctx ends. When the client stalls, it also writes that into the record.
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
			// set stalled before the check, so that either this check or ConfirmHolder notices the other
			e.stalled.Store(true)
			if r.state = stalled; !e.client.tooLong() {
				r.state = live
				e.stalled.Store(false)
			}
		})
	}
}

// write applies change to the record and writes it, unless the entry has ended. If another session has taken over the
// upload, write cancels the upload. Other errors are only logged, because the next heartbeat tries again. It reports
// whether S3 has stored the record.
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

// put writes the record with the tail, the bytes that belong at its TailOffset. The caller must hold e.mu.
func (e *Entry) put(ctx context.Context, tail s3object.Content) error {
	e.record.TailOffset = e.bound.Load()
	err := e.journal.put(ctx, &e.record, tail)
	e.written = e.written || err == nil
	e.takenOver = e.takenOver || errors.Is(err, ErrTakenOver)
	return err
}

// Record returns the record as this session last wrote it.
func (e *Entry) Record() Record {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.record
}

// ConfirmHolder makes sure that the upload still belongs to this session, and returns ErrTakenOver if it does not. Call
// it before the upload is completed and when the client has sent bytes. It makes a request only if the upload had
// stalled.
func (e *Entry) ConfirmHolder(ctx context.Context) error {
	if e == nil || !e.stalled.Load() {
		return nil
	}
	return e.hold(ctx)
}

// IsHolder reports whether the record still belongs to this session, which means that no other session has taken over
// the upload. It always makes a request.
func (e *Entry) IsHolder(ctx context.Context) bool { return e == nil || e.hold(ctx) == nil }

// hold writes the record with the state live.
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

// ByteAfter tells the entry that the client has sent a byte after offset, so the parts up to offset count. It makes no
// request; the next heartbeat writes the offset into the record. It has no effect unless the upload was resumed,
// because otherwise all parts count anyway.
func (e *Entry) ByteAfter(offset int64) {
	if e != nil && e.bound.Load() != unknownOffset {
		e.bound.Store(offset)
	}
}

// BoundParts writes offset into the record, so that the part that starts there does not count. Call it before a full
// last part is sent. It does nothing if the upload was resumed, because then parts only count after a call of
// ByteAfter.
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
		return nil // S3 accepts no records from this server, so no session can find the upload
	}
	return err
}

// Interrupt writes the record of an interrupted upload. Its owner can resume it as long as the key has the given state,
// see [Record.KeyState]. The tail contains the bytes after the parts, which end at offset. All interrupted uploads of
// the owner together may hold maxBytes; 0 means no limit.
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

// BeginAbort marks the record as ending, so that no other session takes over the upload while this one aborts it. The
// error is ErrTakenOver if another session already has. Do not abort the upload after any error.
func (e *Entry) BeginAbort(ctx context.Context) error {
	if e == nil || e.client == nil {
		return nil // without an owner, no other session can take over the upload
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.takenOver:
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

// Release ends the work on the upload and leaves the record unchanged.
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

// Remove ends the work on an upload that S3 has completed or aborted, and deletes its record. If the deletion fails, a
// later sweep repeats it.
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
