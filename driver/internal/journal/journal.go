// Package journal keeps a record of each open multipart upload, in the bucket itself. So any replica can resume or remove the upload. S3
// operations: PutObject, HeadObject, ListObjectsV2, DeleteObject, ListMultipartUploads, AbortMultipartUpload.
//
// Package upload makes an [Entry] before it creates an upload, and ends it with the upload. The owner's next session finds the record by
// [Journal.Records] and takes it over by [Journal.Resume]. [Journal.Sweep] removes the uploads on which no session works.
package journal

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
	// CreateTimeout bounds the request that creates an upload. A sweep relies on it: no upload begins later than this after its record.
	CreateTimeout = 30 * time.Second

	// idleTimeout is how long S3 may send nothing of a record before its connection counts as broken.
	idleTimeout = 30 * time.Second

	// recordTimeout bounds the requests for a record, which outlive the session.
	recordTimeout = 30 * time.Second

	// heartbeatInterval is how often a session writes the record of the upload that it works on. After deadAfter without one the session counts
	// as dead, by the clock of S3. So several heartbeats may fail before.
	heartbeatInterval = 30 * time.Second
	deadAfter         = 2 * time.Minute

	// stallAfter is how long a client may send nothing until another session of the same owner may take the upload over. The session
	// checks that every stallCheck.
	stallAfter         = 10 * time.Second
	stallCheckInterval = 5 * time.Second
)

// A Journal is the journal of the open multipart uploads, in the bucket itself. Any replica finds there which uploads an owner can resume,
// and which no session will end ([Journal.Sweep]). All file systems of a process in a bucket below a prefix share one.
//
// S3 tells the key, the ID and the begin of an open upload, but a server cannot add anything there. So the journal has a record for each
// upload, an object "prefix.babelftp/uploads/...". It exists from before the upload is created until the upload ends. The journal never
// touches an upload without a record, because other software began it.
//
// A record is in one of four states:
//
//   - live: a session works on the upload, and writes a heartbeat.
//   - stalled: the client has sent nothing for a while, and another session of the owner may take the upload over.
//   - interrupted: the session has ended without completing the upload.
//   - ending: a server is about to remove the upload.
//
// Every change is a conditional write on the version of the record that the session has read. So of two sessions that want an upload, one
// gets it. The body of a record ends with random bytes, which make the ETag of each version different. On a server without conditional
// writes, a look right before takes their place.
//
// A record costs three requests, or two for an upload without an owner. Only uploads of more than one part have records.
type Journal struct {
	bucket *s3api.Bucket
	prefix string                // of the records
	common attributes.Attributes // of the records
	log    *slog.Logger

	mu       sync.Mutex
	open     map[string]*Entry // the uploads that this process works on, by the name of the record
	trimming map[string]bool   // the owners for whom a call of Trim counts; true: it shall count again
}

// New returns the journal of the uploads to keys that start with prefix. It makes no request. The records are objects of the bucket too.
// The logger may be nil.
func New(client s3api.Client, bucketName, prefix string, profile profile.Profile, objects attributes.Objects, log *slog.Logger) *Journal {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Journal{
		bucket:   s3api.NewBucket(client, bucketName, profile, &endpoint.Stats{}, idleTimeout),
		prefix:   prefix + keys.Reserved + "/uploads/",
		common:   objects.Common(),
		log:      log.With("bucket", bucketName),
		open:     map[string]*Entry{},
		trimming: map[string]bool{},
	}
}

// A state says which sessions may change a record.
type state string

const (
	stateLive        state = "live"
	stateStalled     state = "stalled"
	stateInterrupted state = "interrupted"
	stateEnding      state = "ending"
)

// A Record describes an open upload. The body of an interrupted one begins with the last bytes that came, too few for a part. Every body
// ends with the random bytes of its version.
type Record struct {
	Name     string // key of the record itself
	Key      string // of the object that the upload makes
	Upload   string // the ID of the multipart upload, empty when there is none
	PartSize int64  // bytes of the first part
	state    state
	holder   string // a random name of the session or server that wrote the record last

	// TailOffset is where in the object the bytes of the body belong. Parts at or after it do not count. It is unknownOffset where nothing
	// bounds the parts.
	TailOffset int64

	etag string // of the version that was read or written last; empty before

	TailSize int64         // bytes of the body that belong to the object; only as read
	ModTime  time.Time     // by the clock of S3; only as read
	age      time.Duration // since ModTime; only as read
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

	// ownerBytes and keyBytes are how many bytes of a hash the name of a record contains.
	ownerBytes, keyBytes = 8, 16
)

func hashPrefix(text string, bytes int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:bytes])
}

// recordsOfOwner returns the prefix of the names of an owner's records.
func (j *Journal) recordsOfOwner(owner string) string {
	return j.prefix + hashPrefix(owner, ownerBytes) + keys.Separator
}

// recordsOf returns the prefix of the names of the records of an owner's uploads to a key.
func (j *Journal) recordsOf(owner, key string) string {
	return j.recordsOfOwner(owner) + hashPrefix(key, keyBytes) + keys.Separator
}

// NewRecord describes an upload of an owner to a key. This process is about to create the upload. The first part has partSize bytes.
func (j *Journal) NewRecord(owner, key string, partSize int64) Record {
	return Record{
		Name: j.recordsOf(owner, key) + nonce(), Key: key, PartSize: partSize,
		state: stateLive, holder: nonce(), TailOffset: unknownOffset,
	}
}

func nonce() string {
	b := make([]byte, nonceBytes)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// ErrTakenOver says that a session cannot continue an upload: another session works on it, or has ended it.
var ErrTakenOver = s3errors.New(syscall.EAGAIN, "another session has taken the upload over")

// put writes a record, with the bytes that belong at its TailOffset. The error is ErrTakenOver if another holder has written it since.
func (j *Journal) put(ctx context.Context, r *Record, tail checksums.Content) error {
	err := j.tryPut(ctx, r, tail)
	if r.etag == "" || !errors.Is(err, syscall.ESTALE) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// An earlier write of this holder may have succeeded although its answer was lost.
	now, readErr := j.Read(ctx, r.Name)
	switch {
	case errors.Is(readErr, fs.ErrNotExist):
		return ErrTakenOver
	case readErr != nil:
		return readErr
	case now.holder != r.holder:
		return ErrTakenOver
	}
	r.etag = now.etag
	if err = j.tryPut(ctx, r, tail); errors.Is(err, syscall.ESTALE) || errors.Is(err, fs.ErrNotExist) {
		return ErrTakenOver
	}
	return err
}

func (j *Journal) tryPut(ctx context.Context, r *Record, tail checksums.Content) error {
	c, err := j.bucket.Precondition(ctx, r.Name, s3api.Condition{ETag: r.etag}, j.bucket.Profile.ConditionalPut)
	if err != nil {
		return err
	}
	version := make([]byte, versionBytes)
	_, _ = rand.Read(version) // never fails
	a := j.attributes(r)
	etag, err := j.bucket.Put(ctx, r.Name, &a, c, io.NewSectionReader(appended{tail, version}, 0, tail.Size()+versionBytes), nil)
	if err == nil {
		r.etag = etag
	}
	return err
}

// appended is a content with some bytes added at its end.
type appended struct {
	checksums.Content
	suffix []byte
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
	if at := offset + int64(n) - a.Size(); n < len(p) && at >= 0 && at < int64(len(a.suffix)) {
		n += copy(p[n:], a.suffix[at:])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (j *Journal) attributes(r *Record) attributes.Attributes {
	a := j.common
	a.Metadata = map[string]string{
		recordKey:      base64.RawURLEncoding.EncodeToString([]byte(r.Key)),
		recordUpload:   r.Upload,
		recordPartSize: strconv.FormatInt(r.PartSize, 10),
		recordOffset:   strconv.FormatInt(r.TailOffset, 10),
		recordState:    string(r.state),
		recordHolder:   r.holder,
	}
	return a
}

// Read reads a record without its body. The error is EIO for an object that is no record.
func (j *Journal) Read(ctx context.Context, name string) (*Record, error) {
	v, a, age, err := j.bucket.HeadWithAge(ctx, name)
	if err != nil {
		return nil, err
	}
	key, keyErr := base64.RawURLEncoding.DecodeString(a.Metadata[recordKey])
	partSize, partErr := strconv.ParseInt(a.Metadata[recordPartSize], 10, 64)
	offset, offsetErr := strconv.ParseInt(a.Metadata[recordOffset], 10, 64)
	r := &Record{
		Name: name, Key: string(key), Upload: a.Metadata[recordUpload], PartSize: partSize, TailOffset: offset,
		state: state(a.Metadata[recordState]), holder: a.Metadata[recordHolder], etag: v.ETag,
		TailSize: v.Size - versionBytes, ModTime: v.ModTime, age: max(0, age),
	}
	if errors.Join(keyErr, partErr, offsetErr) != nil || len(key) == 0 || r.state == "" || r.TailSize < 0 {
		return nil, s3errors.New(syscall.EIO, "object in the upload journal is no record; delete the object")
	}
	return r, nil
}

// inUse tells whether a session works on the upload, or removes it. No other session may do so then.
func (r *Record) inUse() bool {
	return r.age < deadAfter && (r.state == stateLive || r.state == stateEnding)
}

// CanResume tells whether the owner can resume the upload, by what the record says.
func (r *Record) CanResume() bool { return r.state != stateEnding && !r.inUse() }

// CountsPart tells whether a part that ends at an offset counts. It does not if it ends after TailOffset.
func (r *Record) CountsPart(end int64) bool {
	return r.TailOffset == unknownOffset || end <= r.TailOffset
}

// takeOver makes the caller the holder of a record that it has read, and sets the state. The error is ErrTakenOver if another session was
// faster.
func (j *Journal) takeOver(ctx context.Context, r *Record, s state) error {
	r.state, r.holder = s, nonce()
	return j.put(ctx, r, bytes.NewReader(nil))
}

// Body returns the version of the record that was read. Its first TailSize bytes belong to the object.
func (j *Journal) Body(r Record) s3api.Version {
	return s3api.Version{Bucket: j.bucket, Key: r.Name, Size: r.TailSize + versionBytes, ETag: r.etag}
}

// Delete aborts the multipart upload of a record, then deletes the record. The error is ErrTakenOver if another session has the upload.
func (j *Journal) Delete(ctx context.Context, r *Record) error {
	if err := j.findUnnamed(ctx, r); err != nil {
		return err
	}
	if err := j.takeOver(ctx, r, stateEnding); err != nil {
		return err
	}
	if r.Upload != "" {
		if err := j.bucket.AbortUpload(ctx, s3api.Upload{Key: r.Key, ID: r.Upload}); err != nil {
			return err
		}
	}
	return j.bucket.Delete(ctx, r.Name)
}

// findUnnamed finds the upload of a record that names none, because its server died before it wrote the ID into the record. It is the
// upload to this key that began when the server wrote the record.
func (j *Journal) findUnnamed(ctx context.Context, r *Record) error {
	if r.Upload != "" || r.TailOffset != unknownOffset || !j.bucket.Profile.ListUploads {
		return nil
	}
	uploads, err := j.bucket.OpenUploads(ctx, r.Key)
	if err != nil {
		return err
	}
	for _, u := range uploads {
		if u.Initiated.Sub(r.ModTime).Abs() <= CreateTimeout+time.Second {
			r.Upload = u.ID
			break
		}
	}
	return nil
}

// An Entry is the record of an upload that this process works on. Its methods do nothing for a nil one, which stands for an upload
// outside of any journal.
type Entry struct {
	journal        *Journal
	cancel         context.CancelCauseFunc // ends the upload when another session has taken it over
	stopHeartbeats context.CancelFunc      // ends the heartbeat
	client         *ClientWait             // nil for an upload without an owner, where a stall does not matter

	stalled atomic.Bool // another session may have the upload

	mu      lock // held during a write of the record
	record  Record
	written bool // S3 has the record
	ended   bool // the heartbeat writes no more
}

// A lock is a mutex that a goroutine may hold during a request to S3. A goroutine that waits for a lock counts as blocked in a bubble of
// testing/synctest. One that waits for a sync.Mutex does not.
type lock chan struct{}

// Lock waits until no other goroutine holds the lock.
func (l lock) Lock() { l <- struct{}{} }

// Unlock releases the lock.
func (l lock) Unlock() { <-l }

// A ClientWait holds since when an upload waits for bytes of its client, in nanoseconds since 1970. It is 0 where the upload does not wait.
type ClientWait struct{ since atomic.Int64 }

// Begin says that the upload begins to wait.
func (c *ClientWait) Begin() { c.since.Store(time.Now().UnixNano()) }

// End says that bytes have come.
func (c *ClientWait) End() { c.since.Store(0) }

// tooLong tells whether the upload has waited for stallAfter.
func (c *ClientWait) tooLong() bool {
	if c == nil {
		return false
	}
	since := c.since.Load()
	return since != 0 && time.Since(time.Unix(0, since)) >= stallAfter
}

// Enter makes the entry of an upload that the caller is about to create, and writes its record. So a server that dies leaves no upload
// without a record. If the record cannot be written, the upload continues without one, and the log has a warning.
func (j *Journal) Enter(ctx context.Context, r Record, client *ClientWait, cancel context.CancelCauseFunc) *Entry {
	e := j.Take(ctx, r, client, cancel)
	e.write(ctx, func(*Record) {})
	return e
}

// Resume makes the entry of an interrupted upload. The record no longer bounds the parts. The error is ErrTakenOver if another session was
// faster.
func (j *Journal) Resume(ctx context.Context, r Record, client *ClientWait, cancel context.CancelCauseFunc) (*Entry, error) {
	r.TailOffset = unknownOffset
	if err := j.takeOver(ctx, &r, stateLive); err != nil {
		return nil, err
	}
	return j.Take(ctx, r, client, cancel), nil
}

// Take makes the entry of a record, and begins its heartbeat, which ends with ctx.
func (j *Journal) Take(ctx context.Context, r Record, client *ClientWait, cancel context.CancelCauseFunc) *Entry {
	e := &Entry{journal: j, record: r, written: r.etag != "", client: client, cancel: cancel, mu: make(lock, 1)}
	ctx, e.stopHeartbeats = context.WithCancel(ctx)
	j.mu.Lock()
	before := j.open[r.Name]
	j.open[r.Name] = e
	j.mu.Unlock()
	if before != nil {
		before.cancel(ErrTakenOver) // a stalled session of this process, which would otherwise notice it later
	}
	go e.sendHeartbeats(ctx)
	return e
}

// sendHeartbeats writes heartbeats while the upload lasts. When the client has stalled, it writes that too.
func (e *Entry) sendHeartbeats(ctx context.Context) {
	written := time.Now()
	for s3api.Sleep(ctx, stallCheckInterval) == nil {
		stalls := e.client.tooLong() && !e.stalled.Load()
		if !stalls && time.Since(written) < heartbeatInterval {
			continue
		}
		written = time.Now()
		e.write(ctx, func(r *Record) {
			if !stalls {
				return
			}
			e.stalled.Store(true) // before the check, so that either this check or the client's next byte notices the other
			if r.state = stateStalled; !e.client.tooLong() {
				r.state = stateLive
				e.stalled.Store(false)
			}
		})
	}
}

// write changes the record unless the upload has ended. If another session has taken the upload over, write ends it. Other errors go to the
// log, because the next heartbeat tries again.
func (e *Entry) write(ctx context.Context, change func(*Record)) {
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
	case errors.Is(err, ErrTakenOver):
		e.ended = true
		e.cancel(ErrTakenOver)
	default:
		e.journal.log.Warn("record of an upload could not be written; the next heartbeat tries again",
			"key", e.record.Key, "upload", e.record.Upload, "error", err)
	}
}

// SetUpload writes the ID of the upload into the record. It does not wait.
func (e *Entry) SetUpload(ctx context.Context, id string) {
	if e == nil {
		return
	}
	e.mu.Lock()
	e.record.Upload = id
	e.mu.Unlock()
	if e.client != nil || !e.journal.bucket.Profile.ListUploads {
		go e.write(ctx, func(*Record) {})
	} // else the next heartbeat writes it, and until then a sweep finds the upload by its key
}

// Name returns the key of the record.
func (e *Entry) Name() string { return e.record.Name }

// ConfirmHolder makes sure that the upload still belongs to this session: before the session completes it, or when a stalled client sends again.
func (e *Entry) ConfirmHolder(ctx context.Context) error {
	if e == nil || !e.stalled.Load() {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return ErrTakenOver
	}
	e.record.state = stateLive
	err := e.journal.put(ctx, &e.record, bytes.NewReader(nil))
	if err == nil {
		e.stalled.Store(false)
	}
	return err
}

// BoundParts writes into the record that parts at or after an offset do not count. A session that resumes the upload ignores them.
func (e *Entry) BoundParts(ctx context.Context, offset int64) error {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.written || e.ended {
		return nil
	}
	e.record.TailOffset = offset
	return e.journal.put(ctx, &e.record, bytes.NewReader(nil))
}

// Interrupt writes the record of an upload that its owner can resume. The tail is the bytes that follow the parts.
func (e *Entry) Interrupt(ctx context.Context, offset int64, tail checksums.Content) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return ErrTakenOver
	}
	e.ended = true
	e.record.TailOffset, e.record.state = offset, stateInterrupted
	err := e.journal.put(ctx, &e.record, tail)
	e.written = e.written || err == nil
	return err
}

// Recorded tells whether S3 has the record, so that a session or a sweep can find the upload.
func (e *Entry) Recorded() bool {
	if e == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.written
}

// BeginAbort writes into the record that this session is about to abort the upload. The error is ErrTakenOver if another session has the upload.
func (e *Entry) BeginAbort(ctx context.Context) error {
	if e == nil || e.client == nil {
		return nil // it has no owner, so no other session can want it
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

// Abandon ends the work on an upload whose creation failed with an error. If the answer was lost (EAGAIN), there may be an upload. Then
// the record stays, so that a sweep finds the upload.
func (e *Entry) Abandon(ctx context.Context, err error) {
	if errors.Is(err, syscall.EAGAIN) {
		e.Release()
		return
	}
	e.Remove(ctx)
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

// Remove ends the work on an upload that S3 has completed or aborted, and deletes the record. If that fails, a later sweep deletes it.
func (e *Entry) Remove(ctx context.Context) {
	if e == nil {
		return
	}
	e.Release()
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer done()
	if err := e.journal.bucket.Delete(ctx, e.record.Name); err != nil {
		e.journal.log.Warn("record of an upload could not be deleted; a later sweep deletes it", "key", e.record.Key, "record", e.record.Name, "error", err)
	}
}

// clockSkew is by how much the clocks of this server and of S3 may differ before a sweep removes an upload late.
const clockSkew = time.Minute

// Sweep removes the uploads on which no session has worked for the duration age, and returns how many. An upload whose server may still
// live stays for two minutes at least. A sweep takes one request for each 1,000 records, and four for each upload that it removes.
func (j *Journal) Sweep(ctx context.Context, age time.Duration) (int, error) {
	swept := 0
	var failed error
	now := time.Now()
	for v, err := range j.bucket.Walk(ctx, j.prefix) {
		if err != nil {
			return swept, err
		}
		if now.Sub(v.ModTime) < age-clockSkew || j.isOpen(v.Key) { // sweep checks the age again by the clock of S3
			continue
		}
		ended, err := j.sweep(ctx, v.Key, age)
		failed = errors.Join(failed, err)
		if ended {
			swept++
		}
	}
	return swept, failed
}

// sweep removes an upload unless a session has worked on it since.
func (j *Journal) sweep(ctx context.Context, name string, age time.Duration) (bool, error) {
	r, err := j.Read(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist): // another server was faster
		return false, nil
	case err != nil:
		return false, err
	case r.age < age, r.inUse():
		return false, nil
	}
	since := r.ModTime
	switch err := j.Delete(ctx, r); {
	case errors.Is(err, ErrTakenOver):
		return false, nil
	case err != nil:
		return false, err
	}
	j.log.Info("abandoned upload removed", "key", r.Key, "upload", r.Upload, "since", since)
	return true, nil
}

// isOpen tells whether this process works on the upload of a record.
func (j *Journal) isOpen(name string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.open[name] != nil
}
