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

// A state determines which sessions may change a record. The values are stored in records, so a new value needs a new
// format. Package upload has phases with the same names.
type state string

const (
	live        state = "live"        // the session of the holder works on the upload
	stalled     state = "stalled"     // the session waits for a client that sends nothing
	interrupted state = "interrupted" // the session has ended
	ending      state = "ending"      // the holder removes the upload
)

// A Record describes an open upload. The body of the record of an interrupted upload begins with the last received
// bytes, which are too few for a part. Every body ends with random bytes, see versionBytes.
type Record struct {
	Name     string // key of the record itself
	Key      string // key of the file
	Upload   string // ID of the multipart upload, if any
	PartSize int64  // bytes of the first part
	state    state
	holder   string // random name of the session or server that last wrote the record

	heartbeat time.Duration // heartbeat interval of the holder

	// TailOffset is the offset in the object where the bytes of the body belong. Parts at or after it do not count. It
	// is unknownOffset while all parts count: before the last part of an upload that no session has resumed.
	TailOffset int64

	// Staged means that the upload creates an object below the reserved prefix, which is copied to Key after its
	// inspection.
	Staged bool

	// KeyState is the state of the key when the upload was interrupted, see [s3api.Bucket.State]. If the key has
	// another state now, the upload must not be resumed. It is nil if the upload was never interrupted.
	KeyState *string

	// Began is the start time of the upload, by the clock of this process. It is slightly too early if another process
	// wrote the record.
	Began time.Time

	etag      string // ETag of the version last read or written, if any
	write     string // the name of the request that stored this version
	attempted bool   // a write was sent, so S3 may have the record even if it has confirmed none

	// The following fields are set only in a record that was read.
	TailSize int64         // bytes of the body that belong to the object
	ModTime  time.Time     // by the clock of S3
	age      time.Duration // since ModTime
}

const unknownOffset = -1

// keyStatePrefix precedes the state of a key in the metadata, so that the value is never empty.
const keyStatePrefix = "of:"

// Names of the user metadata of a record. The key is stored in base64, because metadata may contain only ASCII.
const (
	recordKey      = "key"
	recordUpload   = "upload"
	recordPartSize = "part-size"
	recordOffset   = "offset"
	recordState    = "state"
	recordHolder   = "holder"
	recordSilence  = "heartbeat-seconds"
	recordKeyState = "key-state"
	recordBegan    = "began"   // nanoseconds between the starts of the process and the upload, and the process name
	recordElapsed  = "elapsed" // milliseconds since the upload began
	recordStaged   = "staged"
)

const (
	// nonceBytes is the number of random bytes in the names of records and holders.
	nonceBytes = 8

	// versionBytes is the number of random bytes at the end of a record's body. They give each version its own ETag.
	versionBytes = 16

	// ownerBytes and segmentBytes are the sizes of the hashes of the owner and of each segment of the key in the name
	// of a record. Short hashes leave room for deep keys. They may collide, so callers compare the key in the record.
	ownerBytes, segmentBytes = 8, 4

	// maxLevels is the maximum number of segments with a hash of their own. The rest of the key is hashed as a whole.
	maxLevels = 32

	// nameSeparator separates the owner from the random end of the name of a record.
	nameSeparator = "-"

	// ClockSlack is the maximum error of an age that is computed from two timestamps of S3, which are whole seconds.
	ClockSlack = 2 * time.Second
)

func hashPrefix(text string, bytes int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:bytes])
}

// recordsOf returns the common prefix of the names of the records of a key and of all keys below it. If the key is a
// directory with more than j.levels segments, it is the prefix of a directory above it.
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

// ownerOf returns the owner ID and the random end of the name of a record.
func ownerOf(name string) (owner, end string) {
	owner, end, _ = strings.Cut(path.Base(name), nameSeparator)
	return owner, end
}

// NewRecord returns the record of an upload that this process is about to create. The owner is empty if the upload
// cannot be resumed. The first part has partSize bytes. The caller sets Upload when S3 has returned the ID.
func (j *Journal) NewRecord(owner, key string, partSize int64, began time.Time) Record {
	r := Record{
		Name: j.recordsOf(key) + j.OwnerID(owner) + nameSeparator + nonce(), Key: key, PartSize: partSize,
		Began: began,
		state: live, holder: nonce(), heartbeat: heartbeatInterval, TailOffset: unknownOffset,
	}
	if owner == "" {
		r.heartbeat = j.ownerlessInterval
	}
	return r
}

func nonce() string {
	b := make([]byte, nonceBytes)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// ErrTakenOver is returned if a session cannot continue an upload because another session works on it or has ended it.
var ErrTakenOver = s3error.New(syscall.EAGAIN, "another session took over the upload")

// put writes a record whose body begins with tail, the bytes that belong at its TailOffset. The error is ErrTakenOver
// if another holder has written the record since it was read or last written.
func (j *Journal) put(ctx context.Context, r *Record, tail s3object.Content) error {
	err := j.tryPut(ctx, r, tail)
	if !errors.Is(err, syscall.ESTALE) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// An earlier write of this holder may have succeeded although its response was lost.
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
		ctx, r.Name, &a, c, io.NewSectionReader(appended{tail, version}, 0, tail.Size()+versionBytes),
		s3api.Sums{})
	if err == nil {
		r.etag, r.write = made.ETag, made.Name
	}
	return err
}

// appended is a content followed by a suffix.
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

// ErrNoRecord is returned if an object in the journal is not a record, for example because a tool that copied the
// bucket has lost the metadata. Such an object does no harm, and a sweep removes it. The error wraps EIO.
var ErrNoRecord = s3error.New(syscall.EIO, "object in the upload journal is not a record")

// Read reads the metadata of a record. listed is the record from a listing, or contains only its key. Read makes sure
// that the state and the ETag belong to the same version, because the next write relies on both. The error is
// ErrNoRecord if the object is not a record.
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

// beganAt returns when an upload began. Its record has the given metadata and was written age ago.
func (j *Journal) beganAt(metadata map[string]string, age time.Duration) time.Time {
	text, process, _ := strings.Cut(metadata[recordBegan], nameSeparator)
	if since, err := strconv.ParseInt(text, 10, 64); err == nil && process == j.changes.process {
		return j.changes.begun.Add(time.Duration(since))
	}
	elapsed, _ := strconv.ParseInt(metadata[recordElapsed], 10, 64)
	return time.Now().Add(-age - time.Duration(elapsed)*time.Millisecond - ClockSlack)
}

// silent reports whether the holder of the record has missed enough heartbeats to count as dead.
func (r *Record) silent() bool { return r.age >= missedHeartbeats*r.heartbeat }

// inUse reports whether a session works on the upload or removes it, so that other sessions must leave it alone.
func (r *Record) inUse() bool {
	return !r.silent() && (r.state == live || r.state == ending)
}

// CanResume reports whether the state of the record allows the owner to resume the upload.
func (r *Record) CanResume() bool { return r.state != ending && !r.inUse() }

// CountsPart reports whether a part that ends at the given offset counts, which is false for parts after TailOffset.
func (r *Record) CountsPart(end int64) bool {
	return r.TailOffset == unknownOffset || end <= r.TailOffset
}

// EndedBy reports whether the file has changed so that the upload must not be resumed: the state of its key differs
// from KeyState or, without a KeyState, the object was stored after the upload began. The arguments are the results of
// [s3api.Bucket.State].
func (r *Record) EndedBy(object *s3api.Version, state string, age time.Duration) bool {
	if r.KeyState != nil {
		return state != *r.KeyState
	}
	return object.Key != "" && age < time.Since(r.Began)-ClockSlack
}

// MultipartUpload returns the upload with the ID in the record. The object that it creates has the random end of the
// record's name in its metadata.
func (r *Record) MultipartUpload() s3api.Upload {
	_, end := ownerOf(r.Name)
	u := s3api.Upload{Key: r.Key, ID: r.Upload, Name: end}
	if r.Staged {
		u.Key = r.Name[:strings.LastIndex(r.Name, s3object.Reserved)] + s3object.Reserved + "/inspect/" + end
	}
	return u
}

// takeOver makes the caller the holder of a record that was read, and sets its state. The error is ErrTakenOver if
// another session was faster.
func (j *Journal) takeOver(ctx context.Context, r *Record, s state) error {
	r.state, r.holder, r.heartbeat = s, nonce(), heartbeatInterval
	return j.put(ctx, r, bytes.NewReader(nil))
}

// Body returns the version of the record that was read, for downloading its body. The first TailSize bytes belong to
// the object.
func (j *Journal) Body(r Record) s3api.Version {
	return s3api.Version{Bucket: j.bucket, Key: r.Name, Size: r.TailSize + versionBytes, ETag: r.etag}
}
