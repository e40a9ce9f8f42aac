package s3object

import (
	"iter"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// A Rule gives attributes to a file, in addition to the attributes of [Objects], or instead of them. Zero values give
// nothing.
type Rule struct {
	ContentType  string
	CacheControl string
	StorageClass types.StorageClass
	KMSKeyID     string            // the object is encrypted with this KMS key
	Tags         map[string]string // replace tags with the same keys
	Metadata     map[string]string // replace metadata with the same keys, which are in lower case

	// LockMode and LockFor lock a version of the object from its creation on (Object Lock). Both are zero for no lock.
	LockMode  types.ObjectLockMode
	LockFor   time.Duration
	LegalHold bool
}

// An Origin is the way in which a file gets its name.
type Origin int

// The origins.
const (
	Uploaded Origin = iota // written by a client
	Copied                 // copied or renamed within S3
)

// Apply adds the attributes of the rule. The caller must have read the tags of a tagged object. Metadata that does not
// fit within S3's limit is omitted.
func (r *Rule) Apply(a *Attributes) {
	if r.ContentType != "" {
		a.ContentType = &r.ContentType
	}
	if r.CacheControl != "" {
		a.cacheControl = &r.CacheControl
	}
	if r.StorageClass != "" {
		a.StorageClass = r.StorageClass
	}
	if r.KMSKeyID != "" {
		a.Encryption = Encryption{Algorithm: types.ServerSideEncryptionAwsKms, KMSKeyID: &r.KMSKeyID}
	}
	if len(r.Tags) > 0 {
		a.Tags, a.tagsChanged = TagQuery(r.withTags(a.Tags)), true
	}
	for _, key := range slices.Sorted(maps.Keys(r.Metadata)) {
		others := maps.Clone(a.Metadata)
		delete(others, key)
		if HasRoom(others, key, r.Metadata[key]) {
			a.SetMetadata(key, r.Metadata[key])
		}
	}
	r.ApplyLock(a)
}

// ApplyLock adds only the lock. S3 copies the other attributes of an object, but not its lock.
func (r *Rule) ApplyLock(a *Attributes) {
	a.lock = lock{r.LockMode, r.LockFor, r.LegalHold}
}

// withTags yields the tags of the rule, and the tags of an object with other keys.
func (r *Rule) withTags(query *string) iter.Seq2[string, string] {
	tags := map[string]string{}
	if query != nil {
		values, _ := url.ParseQuery(*query) // written by TagQuery
		for key := range values {
			tags[key] = values.Get(key)
		}
	}
	maps.Copy(tags, r.Tags)
	return maps.All(tags)
}

// A lock protects a version of an object from being deleted:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-lock.html
type lock struct {
	mode      types.ObjectLockMode
	duration  time.Duration
	legalHold bool
}

// Unlocked returns the attributes without the lock, for an object that the driver has to delete.
func (a Attributes) Unlocked() *Attributes {
	a.lock = lock{}
	return &a
}

// until returns the end of the lock of an object that is created now.
func (l *lock) until() *time.Time {
	if l.mode == "" {
		return nil
	}
	// S3 keeps seconds; MinIO refuses other times.
	until := time.Now().Add(l.duration).Truncate(time.Second)
	return &until
}

// hold returns the value of the header for a legal hold.
func (l *lock) hold() types.ObjectLockLegalHoldStatus {
	if l.legalHold {
		return types.ObjectLockLegalHoldStatusOn
	}
	return ""
}
