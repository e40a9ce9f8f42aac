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
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// A state says which sessions may change a record. The words are those of the phases of package upload. The values are
// in records, so a new one needs another format.
type state string

const (
	live        state = "live"        // the session of the holder works on the upload
	stalled     state = "stalled"     // it waits for a client that sends nothing
	interrupted state = "interrupted" // it has given the upload up
	ending      state = "ending"      // the holder removes the upload
)

// A Record describes an open upload. The body of an interrupted one begins with the last bytes that came, too few for
// a part. Every body ends with the random bytes of its version.
type Record struct {
	Name     string // key of the record itself
	Key      string // of the object that the upload makes
	Upload   string // the ID of the multipart upload, empty when there is none
	PartSize int64  // bytes of the first part
	state    state
	holder   string // a random name of the session or server that wrote the record last

	heartbeat time.Duration // between two heartbeats of the holder

	// TailOffset is where in the object the bytes of the body belong. Parts at or after it do not count. It is
	// unknownOffset where nothing bounds the parts: in an upload that no session has resumed, and whose last part is
	// not under way.
	TailOffset int64

	// Staged says that the upload makes an object below the reserved prefix, which another request copies to Key. So
	// the bytes of an upload that was resumed can be judged before the file is there.
	Staged bool

	// KeyState is the state of the key when the upload was interrupted, see [s3api.Bucket.State]. If the key has
	// another state now, no session may resume the upload. It is nil if the upload was never interrupted.
	KeyState *string

	Began time.Time // by the clock of this process; a little early if another process wrote the record

	etag      string // of the version that was read or written last; empty before
	write     string // the name of the request that has stored that version
	attempted bool   // S3 may have the record, though it has confirmed none

	TailSize int64         // bytes of the body that belong to the object; only as read
	ModTime  time.Time     // by the clock of S3; only as read
	age      time.Duration // since ModTime; only as read
}

const unknownOffset = -1

// keyStatePrefix is what the state of a key begins with in a record, so that the value is never empty.
const keyStatePrefix = "of:"

// The user metadata of a record. Its key is in base64, because metadata hold ASCII only.
const (
	recordKey      = "key"
	recordUpload   = "upload"
	recordPartSize = "part-size"
	recordOffset   = "offset"
	recordState    = "state"
	recordHolder   = "holder"
	recordSilence  = "heartbeat-seconds"
	recordKeyState = "key-state"
	recordBegan    = "began"   // nanoseconds since the process began, and its name
	recordElapsed  = "elapsed" // milliseconds since the upload began
	recordStaged   = "staged"
)

const (
	// nonceBytes make the names of records different from each other, and those of their holders.
	nonceBytes = 8

	// versionBytes make the bodies of a record different from each other.
	versionBytes = 16

	// ownerBytes and segmentBytes are how many bytes of the hashes of the owner, and of each segment of the key, the
	// name of a record contains. Few bytes per segment leave room for deep keys. Two keys may have one name: the key in
	// the record decides.
	ownerBytes, segmentBytes = 8, 4

	// maxLevels is how many segments of a key have a hash of their own. What follows has one together.
	maxLevels = 32

	// nameSeparator is between the owner and the random end of the name of a record.
	nameSeparator = "-"

	// ClockSlack bounds the error of an age by two times of S3, which are whole seconds.
	ClockSlack = 2 * time.Second
)

func hashPrefix(text string, bytes int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:bytes])
}

// recordsOf returns what the names of the records of a key begin with, also those of keys below it. For a key that ends
// with a slash, it is that of the directory, or of one above it if that is many levels deep.
func (j *Journal) recordsOf(key string) string {
	segments := strings.SplitN(strings.TrimPrefix(key, j.root), s3object.Separator, j.levels)
	if strings.HasSuffix(key, s3object.Separator) {
		segments = segments[:len(segments)-1]
	}
	name := j.prefix
	for _, segment := range segments {
		name += hashPrefix(segment, segmentBytes) + s3object.Separator
	}
	return name
}

// ownerOf returns the ID of the owner, and the random end, of the name of a record.
func ownerOf(name string) (owner, end string) {
	owner, end, _ = strings.Cut(path.Base(name), nameSeparator)
	return owner, end
}

// NewRecord describes an upload of an owner to a key, which this process is about to create. The caller sets the ID
// when S3 has told it. The first part has partSize bytes.
func (j *Journal) NewRecord(owner, key string, partSize int64, began time.Time) Record {
	r := Record{
		Name: j.recordsOf(key) + j.OwnerID(owner) + nameSeparator + nonce(), Key: key, PartSize: partSize,
		Began: began,
		state: live, holder: nonce(), heartbeat: heartbeatInterval, TailOffset: unknownOffset,
	}
	if owner == "" {
		r.heartbeat = j.withoutOwner
	}
	return r
}

func nonce() string {
	b := make([]byte, nonceBytes)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// ErrTakenOver says that a session cannot continue an upload: another session works on it, or has ended it.
var ErrTakenOver = s3error.New(syscall.EAGAIN, "another session has taken the upload over")

// put writes a record, with the bytes that belong at its TailOffset. The error is ErrTakenOver if another holder has
// written it since.
func (j *Journal) put(ctx context.Context, r *Record, tail s3object.Content) error {
	err := j.tryPut(ctx, r, tail)
	if !errors.Is(err, syscall.ESTALE) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// An earlier write of this holder may have succeeded although its answer was lost.
	now, readErr := j.Read(ctx, s3api.Version{Key: r.Name})
	switch {
	case errors.Is(readErr, fs.ErrNotExist):
		return ErrTakenOver
	case readErr != nil:
		return readErr
	case now.holder != r.holder:
		return ErrTakenOver
	}
	r.etag, r.write = now.etag, now.write
	if err = j.tryPut(ctx, r, tail); errors.Is(err, syscall.ESTALE) || errors.Is(err, fs.ErrNotExist) {
		return ErrTakenOver
	}
	return err
}

func (j *Journal) tryPut(ctx context.Context, r *Record, tail s3object.Content) error {
	version := make([]byte, versionBytes)
	_, _ = rand.Read(version) // never fails
	a := j.attributes(r)
	c := s3api.Condition{ETag: r.etag, Name: r.write, Absent: r.etag == "" && r.attempted}
	r.attempted = true
	made, err := j.bucket.Put(
		ctx, r.Name, &a, c, io.NewSectionReader(appended{tail, version}, 0, tail.Size()+versionBytes), nil)
	if err == nil {
		r.etag, r.write = made.ETag, made.Name
	}
	return err
}

// appended is a content with some bytes added at its end.
type appended struct {
	s3object.Content
	suffix []byte
}

// ReadAt implements io.ReaderAt.
func (a appended) ReadAt(p []byte, offset int64) (int, error) {
	n := 0
	if left := a.Size() - offset; left > 0 {
		var err error
		n, err = a.Content.ReadAt(p[:min(int64(len(p)), left)], offset)
		if n == len(p) || int64(n) < left {
			return n, err
		}
	}
	m, err := bytes.NewReader(a.suffix).ReadAt(p[n:], offset+int64(n)-a.Size())
	return n + m, err
}

func (j *Journal) attributes(r *Record) s3object.Attributes {
	a := j.common
	a.Metadata = map[string]string{
		recordKey:      base64.RawURLEncoding.EncodeToString([]byte(r.Key)),
		recordUpload:   r.Upload,
		recordPartSize: strconv.FormatInt(r.PartSize, 10),
		recordOffset:   strconv.FormatInt(r.TailOffset, 10),
		recordState:    string(r.state),
		recordHolder:   r.holder,
		recordSilence:  strconv.FormatInt(int64(r.heartbeat/time.Second), 10),
		recordBegan:    strconv.FormatInt(int64(r.Began.Sub(j.changes.begun)), 10) + nameSeparator + j.changes.process,
		recordElapsed:  strconv.FormatInt(time.Since(r.Began).Milliseconds(), 10),
	}
	if r.KeyState != nil {
		a.Metadata[recordKeyState] = keyStatePrefix + *r.KeyState
	}
	if r.Staged {
		a.Metadata[recordStaged] = "yes"
	}
	return a
}

// ErrNoRecord says that an object in the journal is no record. A tool that moves objects may have lost its metadata.
// It harms nothing, and a sweep removes it. The error is an EIO.
var ErrNoRecord = s3error.New(syscall.EIO, "object in the upload journal is not a record")

// Read reads a record without its body. listed is the record in a listing, or only its key. The state and the ETag are
// of one version, because the next write relies on both. The error is ErrNoRecord if the object is not a record.
func (j *Journal) Read(ctx context.Context, listed s3api.Version) (*Record, error) {
	v, a, age, err := j.bucket.HeadExact(ctx, listed)
	if err != nil {
		return nil, err
	}
	key, keyErr := base64.RawURLEncoding.DecodeString(a.Metadata[recordKey])
	partSize, partErr := strconv.ParseInt(a.Metadata[recordPartSize], 10, 64)
	offset, offsetErr := strconv.ParseInt(a.Metadata[recordOffset], 10, 64)
	r := &Record{
		Name: listed.Key, Key: string(key), Upload: a.Metadata[recordUpload], PartSize: partSize, TailOffset: offset,
		state: state(a.Metadata[recordState]), holder: a.Metadata[recordHolder], etag: v.ETag, write: v.Name,
		TailSize: v.Size - versionBytes, ModTime: v.ModTime, age: max(0, age),
		Staged: a.Metadata[recordStaged] != "", Began: j.beganAt(a.Metadata, max(0, age)),
	}
	if keyState, ok := strings.CutPrefix(a.Metadata[recordKeyState], keyStatePrefix); ok {
		r.KeyState = &keyState
	}
	seconds, _ := strconv.ParseInt(a.Metadata[recordSilence], 10, 32)
	r.heartbeat = max(heartbeatInterval, time.Duration(seconds)*time.Second)
	if j.bucket.Profile.PersistentUploads {
		r.heartbeat = max(r.heartbeat, lateCompletion/missedHeartbeats)
	}
	if errors.Join(keyErr, partErr, offsetErr) != nil || len(key) == 0 || r.TailSize < 0 || r.state == "" {
		return nil, ErrNoRecord
	}
	return r, nil
}

// beganAt returns when an upload began, by its record, which was written an age ago.
func (j *Journal) beganAt(metadata map[string]string, age time.Duration) time.Time {
	text, process, _ := strings.Cut(metadata[recordBegan], nameSeparator)
	if since, err := strconv.ParseInt(text, 10, 64); err == nil && process == j.changes.process {
		return j.changes.begun.Add(time.Duration(since))
	}
	elapsed, _ := strconv.ParseInt(metadata[recordElapsed], 10, 64)
	return time.Now().Add(-age - time.Duration(elapsed)*time.Millisecond - ClockSlack)
}

// silent reports whether the holder of the record has missed so many heartbeats that it counts as dead.
func (r *Record) silent() bool { return r.age >= missedHeartbeats*r.heartbeat }

// inUse reports whether a session works on the upload, or removes it, so that no other session may.
func (r *Record) inUse() bool {
	return !r.silent() && (r.state == live || r.state == ending)
}

// CanResume reports whether the owner can resume the upload, by the state of the record.
func (r *Record) CanResume() bool { return r.state != ending && !r.inUse() }

// CountsPart reports whether a part that ends at an offset counts. It does not if it ends after TailOffset.
func (r *Record) CountsPart(end int64) bool {
	return r.TailOffset == unknownOffset || end <= r.TailOffset
}

// EndedBy reports whether the object of the key was stored since the upload began, or the key has another state than
// when the upload was interrupted. The age is that of the object, see [s3api.Bucket.State].
func (r *Record) EndedBy(object *s3api.Version, state string, age time.Duration) bool {
	if r.KeyState != nil {
		return state != *r.KeyState
	}
	return object.Key != "" && age < time.Since(r.Began)-ClockSlack
}

// MultipartUpload returns the upload that the record names. The object that it makes has the random end of the record's
// name in its metadata.
func (r *Record) MultipartUpload() s3api.Upload {
	_, end := ownerOf(r.Name)
	u := s3api.Upload{Key: r.Key, ID: r.Upload, Name: end}
	if r.Staged {
		u.Key = r.Name[:strings.LastIndex(r.Name, s3object.Reserved)] + s3object.Reserved + "/inspect/" + end
	}
	return u
}

// takeOver makes the caller the holder of a record that it has read, and sets the state. The error is ErrTakenOver if
// another session was faster.
func (j *Journal) takeOver(ctx context.Context, r *Record, s state) error {
	r.state, r.holder, r.heartbeat = s, nonce(), heartbeatInterval
	return j.put(ctx, r, bytes.NewReader(nil))
}

// Body returns the version of the record that was read. Its first TailSize bytes belong to the object.
func (j *Journal) Body(r Record) s3api.Version {
	return s3api.Version{Bucket: j.bucket, Key: r.Name, Size: r.TailSize + versionBytes, ETag: r.etag}
}
