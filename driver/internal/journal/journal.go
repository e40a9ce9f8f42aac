// Package journal records the open multipart uploads of all replicas in the bucket itself, so that any replica can
// resume or remove an interrupted upload. It uses the S3 operations PutObject, HeadObject, ListObjectsV2, DeleteObject
// and AbortMultipartUpload.
//
// The life of a record:
//
//   - Package upload creates a multipart upload and then its record with [Journal.Create]. The returned [Entry] writes
//     heartbeats into the record while the upload is in progress.
//   - [Entry.Remove] deletes the record when S3 has completed or aborted the upload. [Entry.Interrupt] marks it as
//     interrupted if the client disconnects.
//   - The next session of the owner finds the record with [Journal.Records] and takes it over with [Journal.Resume].
//   - [Journal.Sweep] and [Journal.RemoveChanged], which the server calls periodically, remove uploads that nobody will
//     resume.
//
// [Journal] describes the format of records and how sessions and replicas coordinate through them.
package journal

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/driver/profile"
)

const (
	// idleTimeout is the time without any bytes of a response after which the connection counts as broken.
	idleTimeout = 30 * time.Second

	// recordTimeout limits the requests for a record, which continue after the session has ended.
	recordTimeout = 30 * time.Second

	// heartbeatInterval is the interval at which a session writes the record of its upload, if the upload has an owner
	// and can therefore be resumed. After missedHeartbeats intervals without a heartbeat, by the clock of S3, the
	// session counts as dead.
	heartbeatInterval = 30 * time.Second
	missedHeartbeats  = 4

	// lateCompletion is the time after the last heartbeat during which OpenStack Swift may still perform a request to
	// complete an upload. An abort before that would remove the parts of the completed object.
	lateCompletion = 10 * time.Minute

	// stallAfter is the time without bytes from the client after which another session of the same owner may take over
	// the upload. The session checks this every stallCheckInterval.
	stallAfter         = 10 * time.Second
	stallCheckInterval = 5 * time.Second
)

// A Journal records the open multipart uploads to keys that begin with a prefix. All file systems of a process with the
// same bucket and prefix share one Journal.
//
// S3 stores the key, the ID and the start time of an open upload, but a server cannot attach anything to it. The
// journal therefore has a record for each upload, an object "prefix.babelftp/uploads-1/...", which contains the upload
// ID. The record is written after S3 has created the upload and before the first part, and exists until the upload
// ends. The journal never touches an upload without a record, because other software may have created it. If this
// server crashes before it writes the record, or never receives the upload ID, an upload without parts is left behind.
//
// A record is in one of four states:
//
//   - live: a session works on the upload and writes heartbeats. The record contains their interval.
//   - stalled: the client has sent no bytes for a while, and another session of the owner may take over the upload.
//   - interrupted: the session has ended without completing the upload.
//   - ending: a server is about to remove the upload.
//
// Every change is a conditional write, based on the version of the record that the session has read. If two sessions
// want the same upload, only one gets it. The body of a record ends with random bytes, which give each version a
// different ETag. If a server does not support conditional writes, the session sends a HEAD request before the write
// instead. A server may also return the state of one version with the ETag of the next, which would let both sessions
// write. On such servers, a session trusts a state only after two responses with the same ETag.
//
// A record costs two requests. Uploads that consist of a single request have none. Each upload has a record of its own,
// because with one journal per server, a server that resumes an upload would have to read the journals of all others.
// The record is written at the start of the upload and not only when it is interrupted, because a server that is killed
// would otherwise leave its current uploads behind. It cannot be written before the upload is created, because it would
// lack the ID, and a key and a time alone could also match an upload of other software.
//
// An upload that must be inspected before the file becomes visible is staged: it creates an object below
// "prefix.babelftp/inspect/", which its session then copies to the file. The record stays until this object is deleted,
// so that a sweep finds both.
//
// A command that stores, moves or removes a file, or a directory above it, ends all interrupted uploads to this file,
// regardless of their owner. The command makes no additional request for this, because storing a small file takes only
// one. Instead, the process remembers the keys that its sessions have changed ([Changes]), does not resume uploads that
// began before the change, and removes them within seconds ([Journal.RemoveChanged]). The name of a record contains a
// hash of each segment of the key, so that a single listing finds the uploads of all owners below all directories.
// Changes by other replicas and other S3 clients are detected by the state of the key, which is recorded when an upload
// is interrupted ([s3api.Bucket.State]).
//
// Within a replica, a client that asks for the size of a file waits while an upload of the same file is ending. Another
// replica sees only the record and cannot distinguish an upload that is about to end from one that takes hours. There,
// the client immediately gets the size from before the upload.
type Journal struct {
	bucket *s3api.Bucket
	root   string // prefix of the keys of files
	prefix string // prefix of the keys of records
	levels int    // maximum number of directories in the name of a record

	common s3object.Attributes // attributes of the records
	log    *slog.Logger

	ownerlessInterval time.Duration // between the heartbeats of an upload without an owner

	interrupted, swept atomic.Int64 // uploads, see Stats

	changes *Changes

	mu     sync.Mutex
	open   map[string]*Entry // the uploads that this process works on, by the name of the record
	limits map[string]int64  // maximum bytes of the owners that RemoveChanged has to check, 0 if unlimited
}

// New returns the journal of the uploads to keys that begin with prefix. It makes no request. The attributes of records
// follow from objects. If log is nil, nothing is logged.
func New(
	client s3api.Client, bucketName, prefix string, profile profile.Profile, objects s3object.Objects,
	changes *Changes, log *slog.Logger,
) *Journal {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	j := &Journal{
		bucket:  s3api.NewBucket(client, bucketName, profile, &s3api.Stats{}, idleTimeout),
		root:    prefix,
		prefix:  prefix + s3object.Reserved + "/uploads-" + format + s3object.Separator,
		common:  objects.Common(),
		log:     log.With("bucket", bucketName),
		changes: changes,
		open:    map[string]*Entry{},
		limits:  map[string]int64{},

		ownerlessInterval: heartbeatInterval,
	}
	room := s3object.MaxKeyBytes - len(j.prefix) - 2*ownerBytes - 2*nonceBytes - 1
	j.levels = min(max(room/(2*segmentBytes+1), 1), maxLevels)
	return j
}

// SetAbandonedAfter sets the age at which sweeps remove uploads that no session works on. Call it before any upload
// begins. The age determines the heartbeat interval of uploads without an owner: a quarter of the age instead of 30
// seconds, because no session waits for them to become idle, and because each heartbeat stays in a bucket that keeps
// versions. Each record contains its own interval, so other servers may sweep at another age.
func (j *Journal) SetAbandonedAfter(age time.Duration) {
	j.ownerlessInterval = max(heartbeatInterval, age/missedHeartbeats)
}

// Stats counts the uploads of this process.
type Stats struct {
	Open        int64 // currently in progress
	Interrupted int64 // interrupted and kept so far
	Swept       int64 // removed by [Journal.Sweep] so far
}

// Stats returns the current counts.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	return Stats{Open: int64(len(j.open)), Interrupted: j.interrupted.Load(), Swept: j.swept.Load()}
}

// Records returns the records of an owner's uploads to a key, at most 1,000.
func (j *Journal) Records(ctx context.Context, owner, key string) ([]s3api.Version, error) {
	page, err := j.bucket.List(ctx, s3api.Listing{Prefix: j.recordsOf(key) + j.OwnerID(owner) + nameSeparator})
	if err != nil {
		return nil, err
	}
	return page.Versions, nil
}
