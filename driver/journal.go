package driver

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/driver/internal/attributes"
	"github.com/babelftp/babelftp/driver/internal/checksums"
	"github.com/babelftp/babelftp/driver/internal/endpoint"
	"github.com/babelftp/babelftp/driver/internal/keys"
	"github.com/babelftp/babelftp/driver/internal/profile"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3errors"
)

const (
	// recordTimeout bounds the requests for a record, which outlive the session.
	recordTimeout = 30 * time.Second

	// heartbeat is how often the record of an upload is written while a session works on it. After deadAfter without one the session
	// counts as dead, by the clock of S3: several heartbeats may fail before.
	heartbeat = 30 * time.Second
	deadAfter = 2 * time.Minute

	// stallAfter is how long a client may send nothing until another session of the same owner may take the upload over. It is
	// looked for every stallCheck.
	stallAfter = 10 * time.Second
	stallCheck = 5 * time.Second
)

// A Journal is the journal of the multipart uploads that are open, in the bucket itself. Any server finds there what an owner can resume,
// and what nobody will end ([Journal.Sweep]). Share one among all file systems of a process in a bucket below a prefix.
//
// S3 tells of an open upload its key, its ID and when it began, but nothing that its server could have written there. So the journal has a
// record for each, an object "prefix.babelftp/uploads/...", from before the upload is created to its end. What is not in the journal
// was begun by others and is never touched.
//
// A record is in one of four states. The session that works on an upload keeps it live, by a heartbeat. When its client sends nothing for a
// while it is stalled, and another session of the owner may take it over. When the session ends without completing it, it is
// interrupted. Before somebody removes it, it is ending. Every change is a conditional write on the version of the record that was
// read, so that of two who want an upload one gets it; the body of a record ends with random bytes that make each version's ETag
// different. On a server without conditional writes a look right before takes their place.
//
// A record costs three requests, or two for an upload without an owner. They are made for uploads of more than one part only.
type Journal struct {
	bucket *s3api.Bucket
	prefix string                // of the records
	common attributes.Attributes // of the records
	log    *slog.Logger

	mu       sync.Mutex
	open     map[string]*journalEntry // by the name of the record; those that this process works on
	trimming map[string]bool          // owners whose interrupted uploads are being counted; true: count again
}

// NewJournal returns the journal of the uploads to keys that start with prefix, without a request. Its records are objects too. The logger
// may be nil.
func NewJournal(client s3api.Client, bucketName, prefix string, profile profile.Profile, objects attributes.Objects, log *slog.Logger) *Journal {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Journal{
		bucket:   s3api.NewBucket(client, bucketName, profile, &endpoint.Stats{}, defaultIdleTimeout),
		prefix:   prefix + keys.Reserved + "/uploads/",
		common:   objects.Common(),
		log:      log.With("bucket", bucketName),
		open:     map[string]*journalEntry{},
		trimming: map[string]bool{},
	}
}

// A state is what becomes of an upload, as its record tells.
type state string

const (
	stateLive        state = "live"
	stateStalled     state = "stalled"
	stateInterrupted state = "interrupted"
	stateEnding      state = "ending"
)

// A record says what is known of an open upload. Its body is the bytes that came last and are too few for a part, where the upload was
// interrupted, and then the random bytes of this version.
type record struct {
	name     string // its own key
	key      string // of the object that is being made
	upload   string // the ID of the multipart upload, empty when there is none
	partSize int64  // what its parts are cut by
	state    state
	holder   string // a random name of whoever wrote the record last

	// tailOffset is where in the object the bytes of the body belong. Parts at or after it do not count. It is unknownOffset where nothing
	// bounds the parts.
	tailOffset int64

	etag string // of the version that was read or written last; empty before

	tailSize int64         // bytes of the body that belong to the object; only as read
	modTime  time.Time     // by the clock of S3; only as read
	age      time.Duration // the same
}

const unknownOffset = -1

// The user metadata of a record. Its key is in base64, because metadata hold ASCII only.
const (
	recordKey      = "key"
	recordUpload   = "upload"
	recordPartSize = "part-size"
	recordOffset   = "offset"
	recordState    = "state"
	recordHolder   = "holder"
)

const (
	// nonceBytes make the names of records different from each other, and those of their holders.
	nonceBytes = 8

	// versionBytes make the bodies of a record different from each other.
	versionBytes = 16

	// ownerBytes and keyBytes are how much of a hash stands in the name of a record.
	ownerBytes, keyBytes = 8, 16
)

func hashed(text string, bytes int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:bytes])
}

// recordsOfOwner is what the names of the records of an owner's uploads start with.
func (l *Journal) recordsOfOwner(owner string) string {
	return l.prefix + hashed(owner, ownerBytes) + keys.Separator
}

// recordsOf is what the names of the records of an owner's uploads to a key start with.
func (l *Journal) recordsOf(owner, key string) string {
	return l.recordsOfOwner(owner) + hashed(key, keyBytes) + keys.Separator
}

func (l *Journal) newRecord(owner, key string, partSize int64) record {
	return record{
		name: l.recordsOf(owner, key) + nonce(), key: key, partSize: partSize,
		state: stateLive, holder: nonce(), tailOffset: unknownOffset,
	}
}

func nonce() string {
	b := make([]byte, nonceBytes)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// errTakenOver is why a session cannot go on with an upload: another one works on it, or has ended it.
var errTakenOver = s3errors.New(syscall.EAGAIN, "another session has taken the upload over")

// put writes a record, with the bytes that belong at its tailOffset. The error is errTakenOver where another holder has written it since.
func (l *Journal) put(ctx context.Context, r *record, tail checksums.Content) error {
	err := l.tryPut(ctx, r, tail)
	if r.etag == "" || !errors.Is(err, syscall.ESTALE) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// A write of this holder's may have taken effect after it was given up.
	now, readErr := l.read(ctx, r.name)
	switch {
	case errors.Is(readErr, fs.ErrNotExist):
		return errTakenOver
	case readErr != nil:
		return readErr
	case now.holder != r.holder:
		return errTakenOver
	}
	r.etag = now.etag
	if err = l.tryPut(ctx, r, tail); errors.Is(err, syscall.ESTALE) || errors.Is(err, fs.ErrNotExist) {
		return errTakenOver
	}
	return err
}

func (l *Journal) tryPut(ctx context.Context, r *record, tail checksums.Content) error {
	c, err := l.bucket.Precondition(ctx, r.name, s3api.Condition{ETag: r.etag}, l.bucket.Profile.ConditionalPut)
	if err != nil {
		return err
	}
	version := make([]byte, versionBytes)
	_, _ = rand.Read(version) // never fails
	a := l.attributes(r)
	etag, err := l.bucket.Put(ctx, r.name, &a, c, io.NewSectionReader(appended{tail, version}, 0, tail.Size()+versionBytes), nil)
	if err == nil {
		r.etag = etag
	}
	return err
}

// An appended content has some bytes behind it.
type appended struct {
	checksums.Content
	rest []byte
}

// ReadAt implements io.ReaderAt.
func (a appended) ReadAt(p []byte, offset int64) (int, error) {
	n := 0
	if offset < a.Size() {
		var err error
		if n, err = a.Content.ReadAt(p[:min(int64(len(p)), a.Size()-offset)], offset); err != nil && !errors.Is(err, io.EOF) {
			return n, err
		}
	}
	if at := offset + int64(n) - a.Size(); n < len(p) && at >= 0 && at < int64(len(a.rest)) {
		n += copy(p[n:], a.rest[at:])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (l *Journal) attributes(r *record) attributes.Attributes {
	a := l.common
	a.Metadata = map[string]string{
		recordKey:      base64.RawURLEncoding.EncodeToString([]byte(r.key)),
		recordUpload:   r.upload,
		recordPartSize: strconv.FormatInt(r.partSize, 10),
		recordOffset:   strconv.FormatInt(r.tailOffset, 10),
		recordState:    string(r.state),
		recordHolder:   r.holder,
	}
	return a
}

// read reads a record but its body. The error is EIO for an object that is none.
func (l *Journal) read(ctx context.Context, name string) (*record, error) {
	v, a, age, err := l.bucket.HeadWithAge(ctx, name)
	if err != nil {
		return nil, err
	}
	key, keyErr := base64.RawURLEncoding.DecodeString(a.Metadata[recordKey])
	partSize, partErr := strconv.ParseInt(a.Metadata[recordPartSize], 10, 64)
	offset, offsetErr := strconv.ParseInt(a.Metadata[recordOffset], 10, 64)
	r := &record{
		name: name, key: string(key), upload: a.Metadata[recordUpload], partSize: partSize, tailOffset: offset,
		state: state(a.Metadata[recordState]), holder: a.Metadata[recordHolder], etag: v.ETag,
		tailSize: v.Size - versionBytes, modTime: v.ModTime, age: max(0, age),
	}
	if errors.Join(keyErr, partErr, offsetErr) != nil || len(key) == 0 || r.state == "" || r.tailSize < 0 {
		return nil, s3errors.New(syscall.EIO, "object among the records of uploads is none")
	}
	return r, nil
}

// untouchable tells whether a session works on the upload, or removes it: nobody else may.
func (r *record) untouchable() bool {
	return r.age < deadAfter && (r.state == stateLive || r.state == stateEnding)
}

// claim makes the caller the holder of a record that it has read, in a state of its own. The error is errTakenOver where somebody else was
// faster.
func (l *Journal) claim(ctx context.Context, r *record, s state) error {
	r.state, r.holder = s, nonce()
	return l.put(ctx, r, bytes.NewReader(nil))
}

// delete ends what a record is about: the multipart upload, then the record. The error is errTakenOver where somebody else has it.
func (l *Journal) delete(ctx context.Context, r *record) error {
	if err := l.findUnnamed(ctx, r); err != nil {
		return err
	}
	if err := l.claim(ctx, r, stateEnding); err != nil {
		return err
	}
	if r.upload != "" {
		if err := l.bucket.AbortUpload(ctx, s3api.Upload{Key: r.key, ID: r.upload}); err != nil {
			return err
		}
	}
	return l.bucket.Delete(ctx, r.name)
}

// findUnnamed finds the upload of a record that does not name one: its server died before it knew the ID, or before it could write it
// down. It is the upload to this key that began when the record was written.
func (l *Journal) findUnnamed(ctx context.Context, r *record) error {
	if r.upload != "" || r.tailOffset != unknownOffset || !l.bucket.Profile.ListUploads {
		return nil
	}
	uploads, err := l.bucket.OpenUploads(ctx, r.key)
	if err != nil {
		return err
	}
	for _, u := range uploads {
		if u.Initiated.Sub(r.modTime).Abs() <= createTimeout+time.Second {
			r.upload = u.ID
			break
		}
	}
	return nil
}

// An journalEntry is the record of an upload that this process works on. Its methods do nothing for a nil one, which stands for an upload
// outside of any journal.
type journalEntry struct {
	journal *Journal
	lost    context.CancelCauseFunc // ends the upload when another session has taken it over
	stop    context.CancelFunc      // ends the heartbeat
	client  *clientWait             // nil where a stall does not matter

	stalled atomic.Bool // another session may have the upload

	mu      lock // held while the record is written
	record  record
	written bool // there is one
	ended   bool // the heartbeat has nothing to write any more
}

// A lock is a mutex that may be held while S3 is asked. A goroutine that waits for it counts as blocked in a bubble of testing/synctest,
// which one that waits for a sync.Mutex does not.
type lock chan struct{}

// Lock waits until nobody else has the lock.
func (l lock) Lock() { l <- struct{}{} }

// Unlock lets somebody else have it.
func (l lock) Unlock() { <-l }

// A clientWait says since when an upload waits for bytes of its client, in nanoseconds since 1970, and 0 where it does not.
type clientWait struct{ since atomic.Int64 }

func (c *clientWait) begin() { c.since.Store(time.Now().UnixNano()) }
func (c *clientWait) end()   { c.since.Store(0) }

// tooLong tells whether the client has stalled.
func (c *clientWait) tooLong() bool {
	if c == nil {
		return false
	}
	since := c.since.Load()
	return since != 0 && time.Since(time.Unix(0, since)) >= stallAfter
}

// enter makes the entry of an upload that is about to be created, and writes its record: a server that dies leaves no upload without
// one. A record that could not be written is no matter to the upload itself.
func (l *Journal) enter(ctx context.Context, r record, client *clientWait, lost context.CancelCauseFunc) *journalEntry {
	e := l.take(ctx, r, client, lost)
	e.write(ctx, "recorded", func(*record) {})
	return e
}

// take makes the entry of a record, and begins its heartbeat, which ends with ctx.
func (l *Journal) take(ctx context.Context, r record, client *clientWait, lost context.CancelCauseFunc) *journalEntry {
	e := &journalEntry{journal: l, record: r, written: r.etag != "", client: client, lost: lost, mu: make(lock, 1)}
	ctx, e.stop = context.WithCancel(ctx)
	l.mu.Lock()
	before := l.open[r.name]
	l.open[r.name] = e
	l.mu.Unlock()
	if before != nil {
		before.lost(errTakenOver) // a stalled session of this process, which would learn of it later
	}
	go e.beat(ctx)
	return e
}

// beat writes the record again and again while the upload lasts, and says in it when the client has stalled.
func (e *journalEntry) beat(ctx context.Context) {
	written := time.Now()
	for s3api.Sleep(ctx, stallCheck) == nil {
		stalls := e.client.tooLong() && !e.stalled.Load()
		if !stalls && time.Since(written) < heartbeat {
			continue
		}
		written = time.Now()
		e.write(ctx, "refreshed", func(r *record) {
			if !stalls {
				return
			}
			e.stalled.Store(true) // before the look, so that either this or the client's next byte sees the other
			if r.state = stateStalled; !e.client.tooLong() {
				r.state = stateLive
				e.stalled.Store(false)
			}
		})
	}
}

// write changes the record unless the upload has ended. If another session has taken the upload over, it ends the upload. Other errors go to
// the log, because the next heartbeat tries again.
func (e *journalEntry) write(ctx context.Context, what string, change func(*record)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return
	}
	change(&e.record)
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer done()
	err := e.journal.put(ctx, &e.record, bytes.NewReader(nil))
	switch {
	case err == nil:
		e.written = true
	case errors.Is(err, errTakenOver):
		e.ended = true
		e.lost(errTakenOver)
	default:
		e.journal.log.Warn("record of an upload could not be "+what, "key", e.record.key, "upload", e.record.upload, "error", err)
	}
}

// named writes the ID of the upload into the record. It does not wait.
func (e *journalEntry) named(ctx context.Context, id string) {
	if e == nil {
		return
	}
	e.mu.Lock()
	e.record.upload = id
	e.mu.Unlock()
	if e.client != nil || !e.journal.bucket.Profile.ListUploads {
		go e.write(ctx, "completed", func(*record) {})
	} // else the heartbeat writes it, and until then a sweep finds the upload by its key
}

// hold makes sure that the upload is this session's, before it is completed, or when the client of a stalled one sends again.
func (e *journalEntry) hold(ctx context.Context) error {
	if e == nil || !e.stalled.Load() {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return errTakenOver
	}
	e.record.state = stateLive
	err := e.journal.put(ctx, &e.record, bytes.NewReader(nil))
	if err == nil {
		e.stalled.Store(false)
	}
	return err
}

// bound says that parts at or after an offset do not count from now on, for whoever resumes the upload.
func (e *journalEntry) bound(ctx context.Context, offset int64) error {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.written || e.ended {
		return nil
	}
	e.record.tailOffset = offset
	return e.journal.put(ctx, &e.record, bytes.NewReader(nil))
}

// interrupt writes the record of an upload that its owner can resume, with the bytes that follow the parts.
func (e *journalEntry) interrupt(ctx context.Context, offset int64, tail checksums.Content) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return errTakenOver
	}
	e.ended = true
	e.record.tailOffset, e.record.state = offset, stateInterrupted
	err := e.journal.put(ctx, &e.record, tail)
	e.written = e.written || err == nil
	return err
}

// recorded tells whether there is a record by which the upload can be found.
func (e *journalEntry) recorded() bool {
	if e == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.written
}

// end says that the upload is about to be aborted. The error is errTakenOver where another session has it.
func (e *journalEntry) end(ctx context.Context) error {
	if e == nil || e.client == nil {
		return nil // nobody else wants it
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended || !e.written {
		return nil
	}
	e.ended = true
	e.record.state = stateEnding
	return e.journal.put(ctx, &e.record, bytes.NewReader(nil))
}

// abandon ends the work on an upload that was not created, as far as is known. Where the answer was lost there may be one: a sweep finds
// it.
func (e *journalEntry) abandon(ctx context.Context, err error) {
	if errors.Is(err, syscall.EAGAIN) {
		e.leave()
		return
	}
	e.remove(ctx)
}

// leave ends the work on the upload and lets the record be.
func (e *journalEntry) leave() {
	if e == nil {
		return
	}
	e.stop()
	e.mu.Lock()
	e.ended = true
	e.mu.Unlock()
	e.journal.mu.Lock()
	defer e.journal.mu.Unlock()
	if e.journal.open[e.record.name] == e {
		delete(e.journal.open, e.record.name)
	}
}

// remove ends the work on an upload of which nothing is left. A record that cannot be removed is found by a sweep.
func (e *journalEntry) remove(ctx context.Context) {
	if e == nil {
		return
	}
	e.leave()
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer done()
	if err := e.journal.bucket.Delete(ctx, e.record.name); err != nil {
		e.journal.log.Warn("record of an upload could not be removed", "key", e.record.key, "record", e.record.name, "error", err)
	}
}

const (
	// sweepInterval is how often to sweep, where uploads may be older.
	sweepInterval = time.Hour

	// clockSkew is by how much the clocks of this server and of S3 may differ before a sweep comes late.
	clockSkew = time.Minute
)

// SweepInterval is how often to sweep uploads of an age: every hour, or more often where they are abandoned sooner.
func SweepInterval(age time.Duration) time.Duration { return min(sweepInterval, age) }

// Sweep removes the uploads that nobody has worked on for as long as age says, and for two minutes at least where their server may still
// live, and returns how many. It takes one request for each
// 1,000 records and four for each upload that it ends.
func (l *Journal) Sweep(ctx context.Context, age time.Duration) (int, error) {
	swept := 0
	var failed error
	now := time.Now()
	for v, err := range l.bucket.Walk(ctx, l.prefix) {
		if err != nil {
			return swept, err
		}
		if now.Sub(v.ModTime) < age-clockSkew || l.works(v.Key) { // the record tells its age by the clock of S3
			continue
		}
		ended, err := l.sweep(ctx, v.Key, age)
		failed = errors.Join(failed, err)
		if ended {
			swept++
		}
	}
	return swept, failed
}

// sweep ends an upload unless somebody has worked on it since.
func (l *Journal) sweep(ctx context.Context, name string, age time.Duration) (bool, error) {
	r, err := l.read(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist): // another server was faster
		return false, nil
	case err != nil:
		return false, err
	case r.age < age, r.untouchable():
		return false, nil
	}
	since := r.modTime
	switch err := l.delete(ctx, r); {
	case errors.Is(err, errTakenOver):
		return false, nil
	case err != nil:
		return false, err
	}
	l.log.Info("abandoned upload removed", "key", r.key, "upload", r.upload, "since", since)
	return true, nil
}

// works tells whether this process works on the upload of a record.
func (l *Journal) works(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open[name] != nil
}
