package driver

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// recordTimeout bounds the requests for a record, which outlive the session.
const recordTimeout = 30 * time.Second

// A Ledger keeps an account of the multipart uploads that are open, in the bucket itself: whichever server comes next finds those
// that nobody has ended, and ends them ([Ledger.Sweep]). Share one among all file systems of a process in a bucket below a prefix.
//
// S3 tells of an open upload its key, its ID and when it began, but nothing that whoever began it could have written there. So the
// ledger has a record beside it, an object "prefix.babelftp/uploads/...", from the first part to the end of the upload. What is not
// in the ledger was begun by others and is never touched.
//
// A record costs two requests. They are made for uploads of more than one part only, the first while the parts are on their way. A
// server that dies between the beginning of an upload and its record, which takes S3 milliseconds, leaves an upload of no parts, as
// a rule, and so does an S3 whose answer with the ID is lost; both are for the bucket's lifecycle rules.
type Ledger struct {
	bucket *bucket
	prefix string     // of the records
	common attributes // of the records
	log    *slog.Logger

	mu   sync.Mutex
	open map[string]*entry // by the name of the record; those that this process works on
}

// NewLedger returns the ledger of the uploads to keys that start with prefix, without a request. Its records are objects too. The logger
// may be nil.
func NewLedger(client Client, bucketName, prefix string, objects Objects, log *slog.Logger) *Ledger {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Ledger{
		bucket: &bucket{client: client, name: bucketName, route: NewRoute(), patience: defaultPatience},
		prefix: prefix + reserved + "/uploads/",
		common: objects.common(),
		log:    log.With("bucket", bucketName),
		open:   map[string]*entry{},
	}
}

// A record says what is known of an open upload. Its body is the bytes that came last and are too few for a part, where the
// upload was left to be gone on with.
type record struct {
	name     string // its own key
	key      string // of the object that is being made
	upload   string // the ID of the multipart upload, empty when there is none
	partSize int64  // what its parts are cut by
	offset   int64  // in the object, of the first byte of the body

	size    int64     // of the body; only as read
	modTime time.Time // by the clock of S3; only as read
}

// The user metadata of a record. Its key is in base64, because metadata hold ASCII only.
const (
	recordKey      = "key"
	recordUpload   = "upload"
	recordPartSize = "part-size"
	recordOffset   = "offset"
)

// nonceBytes make the names of records different from each other.
const nonceBytes = 8

// recordsOf is what the names of the records of an owner's uploads to a key start with.
func (l *Ledger) recordsOf(owner, key string) string {
	sum := sha256.Sum256([]byte(owner + "\x00" + key))
	return l.prefix + hex.EncodeToString(sum[:16]) + "."
}

func (l *Ledger) newRecord(owner, key string, partSize int64) record {
	nonce := make([]byte, nonceBytes)
	_, _ = rand.Read(nonce) // never fails
	return record{name: l.recordsOf(owner, key) + hex.EncodeToString(nonce), key: key, partSize: partSize}
}

// put writes a record.
func (l *Ledger) put(ctx context.Context, r *record, body content) error {
	a := l.attributes(r)
	in := &s3.PutObjectInput{}
	a.put(in)
	_, err := l.bucket.put(ctx, r.name, in, body)
	return err
}

func (l *Ledger) attributes(r *record) attributes {
	a := l.common
	a.metadata = map[string]string{
		recordKey:      base64.RawURLEncoding.EncodeToString([]byte(r.key)),
		recordUpload:   r.upload,
		recordPartSize: strconv.FormatInt(r.partSize, 10),
		recordOffset:   strconv.FormatInt(r.offset, 10),
	}
	return a
}

// read reads a record but its body. The error is EIO for an object that is none.
func (l *Ledger) read(ctx context.Context, name string) (*record, error) {
	v, a, err := l.bucket.head(ctx, name)
	if err != nil {
		return nil, err
	}
	key, keyErr := base64.RawURLEncoding.DecodeString(a.metadata[recordKey])
	partSize, partErr := strconv.ParseInt(a.metadata[recordPartSize], 10, 64)
	offset, offsetErr := strconv.ParseInt(a.metadata[recordOffset], 10, 64)
	if errors.Join(keyErr, partErr, offsetErr) != nil || len(key) == 0 {
		return nil, fault(syscall.EIO, "object among the records of uploads is none")
	}
	return &record{
		name: name, key: string(key), upload: a.metadata[recordUpload], partSize: partSize, offset: offset,
		size: v.size, modTime: v.modTime,
	}, nil
}

// delete ends what a record is about: the multipart upload, then the record.
func (l *Ledger) delete(ctx context.Context, r *record) error {
	if r.upload != "" {
		if err := l.bucket.abort(ctx, r.key, r.upload); err != nil {
			return err
		}
	}
	return l.bucket.delete(ctx, r.name)
}

// An entry is the record of an upload that this process works on. Its methods do nothing for a nil one, which stands for an upload
// outside of any ledger.
type entry struct {
	ledger *Ledger
	record record

	mu      sync.Mutex // held while the record is written
	written bool       // there is one
	ended   bool
}

// enter writes the record of an upload that has begun. It does not wait: whether it could be written is no matter to the upload.
func (l *Ledger) enter(ctx context.Context, r record) *entry {
	if l == nil {
		return nil
	}
	e := l.take(r)
	e.mu.Lock()
	go func() {
		defer e.mu.Unlock()
		ctx, done := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
		defer done()
		err := l.put(ctx, &e.record, bytes.NewReader(nil))
		if err != nil {
			l.log.Warn("multipart upload could not be recorded", "key", r.key, "upload", r.upload, "error", err)
		}
		e.written = err == nil
	}()
	return e
}

// take makes the entry of a record.
func (l *Ledger) take(r record) *entry {
	e := &entry{ledger: l, record: r}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[r.name] = e
	return e
}

// resume makes an entry of an upload that was kept, and its record as young as that.
func (l *Ledger) resume(ctx context.Context, r record) *entry {
	e := l.take(r)
	e.written = true
	go func() {
		ctx, done := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
		defer done()
		if err := e.refresh(ctx); err != nil {
			l.log.Warn("record of an upload could not be refreshed", "key", r.key, "upload", r.upload, "error", err)
		}
	}()
	return e
}

// refresh makes the record as young as the work on it. Body and metadata stay.
func (e *entry) refresh(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return nil
	}
	own := version{bucket: e.ledger.bucket, key: e.record.name}
	a := e.ledger.attributes(&e.record)
	in := &s3.CopyObjectInput{Key: &e.record.name}
	a.replace(in)
	_, err := e.ledger.bucket.copy(ctx, own, in, nil)
	return err
}

// keep writes the record anew with the bytes that follow the parts.
func (e *entry) keep(ctx context.Context, offset int64, body content) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.record.offset, e.ended = offset, true
	err := e.ledger.put(ctx, &e.record, body)
	e.written = e.written || err == nil
	return err
}

// recorded tells whether there is a record by which the upload can be found.
func (e *entry) recorded() bool {
	if e == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.written
}

// leave ends the work on the upload and lets the record be.
func (e *entry) leave() {
	if e == nil {
		return
	}
	e.ledger.mu.Lock()
	defer e.ledger.mu.Unlock()
	if e.ledger.open[e.record.name] == e {
		delete(e.ledger.open, e.record.name)
	}
}

// remove ends the work on an upload of which nothing is left. A record that cannot be removed is found by a sweep.
func (e *entry) remove(ctx context.Context) {
	if e == nil {
		return
	}
	defer e.leave()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer done()
	if err := e.ledger.bucket.delete(ctx, e.record.name); err != nil {
		e.ledger.log.Warn("record of an upload could not be removed", "key", e.record.key, "record", e.record.name, "error", err)
	}
}

// refreshes is how often a record is written anew within the age at which another server would take its upload for abandoned.
const refreshes = 3

// SweepInterval is how often to sweep uploads of an age: every hour, or more often so that none of those which this process works
// on gets as old.
func SweepInterval(age time.Duration) time.Duration { return min(time.Hour, age/refreshes) }

// Sweep aborts the multipart uploads, and removes what is kept of others, that nobody has worked on for as long as age says, and
// returns how many. Whoever works on one says so by calling Sweep itself, every [SweepInterval]. It takes one request for each
// 1,000 records and three for each upload that it ends.
func (l *Ledger) Sweep(ctx context.Context, age time.Duration) (int, error) {
	swept := 0
	var failed error
	now := time.Now()
	for v, err := range l.bucket.walk(ctx, l.prefix) {
		if err != nil {
			return swept, err
		}
		idle := now.Sub(v.modTime)
		if e := l.entry(v.key); e != nil {
			if idle >= age/refreshes {
				failed = errors.Join(failed, e.refresh(ctx))
			}
			continue
		}
		if idle < age {
			continue
		}
		ended, err := l.sweep(ctx, v.key, now.Add(-age))
		failed = errors.Join(failed, err)
		if ended {
			swept++
		}
	}
	return swept, failed
}

// sweep ends an upload unless somebody has worked on it since.
func (l *Ledger) sweep(ctx context.Context, name string, since time.Time) (bool, error) {
	r, err := l.read(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist): // another server was faster
		return false, nil
	case err != nil:
		return false, err
	case r.modTime.After(since):
		return false, nil
	}
	if err := l.delete(ctx, r); err != nil {
		return false, err
	}
	l.log.Info("abandoned upload removed", "key", r.key, "upload", r.upload, "since", r.modTime)
	return true, nil
}

func (l *Ledger) entry(name string) *entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open[name]
}

// abort removes a multipart upload and its parts. That there is none any more is no error.
func (b *bucket) abort(ctx context.Context, key, upload string) error {
	delay := abortDelay
	for attempt := 1; ; attempt++ {
		_, err := b.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
			Bucket: &b.name, Key: &key, UploadId: aws.String(upload),
		})
		if err == nil || isNoSuchUpload(err) {
			return nil
		}
		if attempt == abortAttempts || sleep(ctx, delay) != nil {
			return fromS3(err)
		}
		delay *= 2
	}
}
