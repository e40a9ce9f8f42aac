package s3sim

import (
	"encoding/xml"
	"net/http"
	"time"
)

// A defaultRetention is the rule of a bucket with Object Lock: each version is retained for so many days. The zero
// value is no rule. A request cannot give a retention of its own.
type defaultRetention struct {
	Mode string
	Days int
}

// retainedUntil is when a new version may be deleted: the zero time where the bucket has no rule.
func (b *bucket) retainedUntil() time.Time {
	if b.lock == nil || b.lock.Mode == "" {
		return time.Time{}
	}
	return time.Now().AddDate(0, 0, b.lock.Days)
}

// summed refuses bytes of an object that is retained which come without Content-MD5 and without a checksum.
func summed(retained time.Time, q *request) *reply {
	if retained.IsZero() || q.header.Get("Content-Md5") != "" || len(q.checksums) > 0 {
		return nil
	}
	return refuse(http.StatusBadRequest, "InvalidRequest")
}

// A lockConfiguration is the Object Lock of a bucket in XML.
type lockConfiguration struct {
	XMLName           xml.Name `xml:"ObjectLockConfiguration"`
	ObjectLockEnabled string
	Rule              struct{ DefaultRetention defaultRetention }
}

func (b *bucket) putLock(q *request) *reply {
	var in lockConfiguration
	if xml.Unmarshal(q.body, &in) != nil || in.ObjectLockEnabled != enabled {
		return malformed()
	}
	b.lock, b.versioning = &in.Rule.DefaultRetention, enabled // S3 locks versions, so it keeps them
	return ok()
}
