package s3sim

import (
	"encoding/xml"
	"net/http"
	"time"
)

// A defaultRetention is the default retention of a bucket with Object Lock, in days. The zero value means that
// there is no rule. Requests cannot set a retention.
type defaultRetention struct {
	Mode string
	Days int
}

// retainedUntil returns the time from which a new version may be deleted. It is zero if the bucket has no rule.
func (b *bucket) retainedUntil() time.Time {
	if b.lock == nil || b.lock.Mode == "" {
		return time.Time{}
	}
	return time.Now().AddDate(0, 0, b.lock.Days)
}

// summed rejects content for a retained object if the request has neither Content-MD5 nor a checksum.
func summed(retained time.Time, q *request) *reply {
	if retained.IsZero() || q.header.Get("Content-Md5") != "" || len(q.checksums) > 0 {
		return nil
	}
	return refuse(http.StatusBadRequest, "InvalidRequest")
}

// A lockConfiguration is a bucket's Object Lock configuration in XML form.
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
	b.lock, b.versioning = &in.Rule.DefaultRetention, enabled // Object Lock requires versioning
	return ok()
}
