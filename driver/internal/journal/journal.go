// Package journal keeps a record of each open multipart upload, in the bucket itself. So any replica can resume or
// remove the upload. S3 operations: PutObject, HeadObject, ListObjectsV2, DeleteObject, AbortMultipartUpload.
//
// Package upload makes an [Entry] when it has created an upload, and ends it with the upload. The owner's next
// session finds the record by [Journal.Records] and takes it over by [Journal.Resume]. [Journal.Sweep] removes the
// uploads on which no session works.
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
	// idleTimeout is how long S3 may send nothing of a record before its connection counts as broken.
	idleTimeout = 30 * time.Second

	// recordTimeout bounds the requests for a record, which outlive the session.
	recordTimeout = 30 * time.Second

	// heartbeatInterval is how often a session writes the record of the upload that it works on, if an owner can
	// resume it. After missedHeartbeats without one the session counts as dead, by the clock of S3.
	heartbeatInterval = 30 * time.Second
	missedHeartbeats  = 4

	// lateCompletion is how long after the last heartbeat OpenStack Swift may perform a request to complete an upload.
	// To abort the upload before would remove the parts of the object.
	lateCompletion = 10 * time.Minute

	// stallAfter is how long a client may send nothing until another session of the same owner may take the upload
	// over. The session checks that every stallCheck.
	stallAfter         = 10 * time.Second
	stallCheckInterval = 5 * time.Second
)

// A Journal is the journal of the open multipart uploads to keys that start with a prefix. All file systems of a
// process there share one.
//
// S3 tells the key, the ID and the begin of an open upload, but a server cannot add anything there. So the journal
// has a record for each upload, an object "prefix.babelftp/uploads-1/...", which names the upload by its ID. It is
// written when S3 has created the upload, before the first part, and exists until the upload ends. The journal never
// touches an upload that no record names, because other software may have begun it. Such an upload of this server has
// no parts: its server died before it wrote the record, or never got the ID.
//
// A record is in one of four states:
//
//   - live: a session works on the upload, and writes a heartbeat. The record says how often.
//   - stalled: the client has sent nothing for a while, and another session of the owner may take the upload over.
//   - interrupted: the session has ended without completing the upload.
//   - ending: a server is about to remove the upload.
//
// Every change is a conditional write on the version of the record that the session has read. So of two sessions that
// want an upload, one gets it. The body of a record ends with random bytes, which make the ETag of each version
// different. On a server without conditional writes, a HEAD right before takes their place. A response with the state
// of one version and the ETag of the next would let both sessions write. So a session trusts a state only after two
// responses with one ETag if the server reads the two one after the other.
//
// A record costs two requests. Only uploads of more than one part have records. Each upload has its own: a server that
// resumes an upload would have to read the journals of all other servers. It has one from its begin, because a killed
// server would leave the young ones. A record from before the upload would lack the ID, and a key and a time also fit
// uploads of other software.
//
// An upload whose bytes must be judged before they have their name is staged: it makes an object below
// "prefix.babelftp/inspect/", which its session copies. The record stays until that object is deleted, so that a sweep
// finds both.
//
// A command that stores, moves or removes a name, or a directory above it, ends all interrupted uploads to that name,
// whoever owns them. The command makes no request for that, because a small file is one request to S3. Instead the
// process remembers what its sessions have changed ([Changes]), resumes nothing that began before, and removes it
// within seconds ([Journal.RemoveChanged]). The name of a record has a hash of each segment of the key, so that one
// listing finds the uploads of all owners below all directories. Changes by S3 programs and other replicas show in the
// state of the key, which a record has from when the upload was interrupted ([s3api.Bucket.State]).
//
// Within a replica a client waits for its upload that is just ending. Another replica has only the record, and cannot
// tell an upload that ends in a moment from one that takes hours. So there a client gets the size of before the upload
// at once.
type Journal struct {
	bucket *s3api.Bucket
	root   string // of the keys
	prefix string // of the records
	levels int    // directories of the name of a record, at most

	common s3object.Attributes // of the records
	log    *slog.Logger

	withoutOwner time.Duration // between the heartbeats of an upload without an owner

	interrupted, swept atomic.Int64 // uploads, see Stats

	changes *Changes

	mu     sync.Mutex
	open   map[string]*Entry // the uploads that this process works on, by the name of the record
	limits map[string]int64  // of the bytes of the owners that RemoveChanged checks next, 0 for none
}

// New returns the journal of the uploads to keys that start with prefix. It makes no request. The records are objects
// of the bucket too. The logger may be nil.
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

		withoutOwner: heartbeatInterval,
	}
	room := s3object.MaxKeyBytes - len(j.prefix) - 2*ownerBytes - 2*nonceBytes - 1
	j.levels = min(max(room/(2*segmentBytes+1), 1), maxLevels)
	return j
}

// SetAbandonedAfter says at which age sweeps remove the uploads on which no session works. No session waits for the
// end of an upload without an owner. So it has a heartbeat every quarter of that age, not every 30 seconds. In a
// bucket that keeps versions each heartbeat stays. Call it before any upload begins. Each record says how long its
// session may be silent, so that other servers may sweep at another age.
func (j *Journal) SetAbandonedAfter(age time.Duration) {
	j.withoutOwner = max(heartbeatInterval, age/missedHeartbeats)
}

// Stats counts the uploads of this process.
type Stats struct {
	Open        int64 // that it works on
	Interrupted int64 // that were interrupted and kept so far
	Swept       int64 // that [Journal.Sweep] has removed so far
}

// Stats returns the counts.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	defer j.mu.Unlock()
	return Stats{Open: int64(len(j.open)), Interrupted: j.interrupted.Load(), Swept: j.swept.Load()}
}

// Records returns the records of an owner's uploads to a key, the first thousand.
func (j *Journal) Records(ctx context.Context, owner, key string) ([]s3api.Version, error) {
	page, err := j.bucket.List(ctx, s3api.Listing{Prefix: j.recordsOf(key) + j.OwnerID(owner) + nameSeparator})
	if err != nil {
		return nil, err
	}
	return page.Versions, nil
}
