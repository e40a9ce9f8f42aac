package s3sim

import (
	"encoding/xml"
	"net/http"
	"time"
)

// A defaultRetention is the rule of a bucket with Object Lock for objects that come without a retention. The zero
// value is no rule.
type defaultRetention struct {
	Mode        string
	Days, Years int `xml:",omitempty"`
}

// A retention protects a version of an object. The zero value protects nothing.
type retention struct {
	mode  string
	until time.Time
	hold  bool // a legal hold
}

// The longest default retention.
const maxDays, maxYears = 36_500, 100

// The modes of a retention. With a permission that each caller of the simulator has, governance can be bypassed.
const governance, compliance = "GOVERNANCE", "COMPLIANCE"

// protects reports whether the version must not be deleted by a request with these headers.
func (r retention) protects(h http.Header) bool { return r.hold || r.runs(h) }

// runs reports whether the time of the retention has not ended, and the request does not bypass it.
func (r retention) runs(h http.Header) bool {
	bypassed := r.mode == governance && bypasses(h)
	return r.mode != "" && !bypassed && time.Now().Before(r.until)
}

func bypasses(h http.Header) bool { return h.Get("X-Amz-Bypass-Governance-Retention") == "true" }

// describe sets the headers of a retention.
func (r retention) describe(h http.Header) {
	if r.mode != "" {
		h.Set("X-Amz-Object-Lock-Mode", r.mode)
		h.Set("X-Amz-Object-Lock-Retain-Until-Date", stamp(r.until))
	}
	if r.hold {
		h.Set("X-Amz-Object-Lock-Legal-Hold", "ON")
	}
}

// retain reads the retention of a new object: from the headers, or from the rule of the bucket.
func (b *bucket) retain(h http.Header) (retention, *reply) {
	mode, until, hold := h.Get("X-Amz-Object-Lock-Mode"), h.Get("X-Amz-Object-Lock-Retain-Until-Date"),
		h.Get("X-Amz-Object-Lock-Legal-Hold")
	var given retention
	if mode+until != "" {
		var refusal *reply
		if given, refusal = parseRetention(mode, until); refusal != nil {
			return retention{}, refusal
		}
	}
	switch {
	case b.lock == nil && mode+until+hold == "":
		return retention{}, nil
	case b.lock == nil:
		return retention{}, refuse(http.StatusBadRequest, "InvalidRequest", "Bucket is missing ObjectLockConfiguration")
	case hold != "" && hold != "ON" && hold != "OFF":
		return retention{}, invalidArg("Legal Hold must be either of 'ON' or 'OFF'")
	}
	given.hold = hold == "ON"
	if given.mode == "" && b.lock.Mode != "" {
		given.mode, given.until = b.lock.Mode, time.Now().AddDate(b.lock.Years, 0, b.lock.Days)
	}
	return given, nil
}

func parseRetention(mode, until string) (retention, *reply) {
	end, err := time.Parse(time.RFC3339, until)
	switch {
	case mode == "" || until == "":
		return retention{}, invalidArg(
			"x-amz-object-lock-retain-until-date and x-amz-object-lock-mode must both be supplied.")
	case mode != governance && mode != compliance:
		return retention{}, invalidArg("Unknown wormMode directive.")
	case err != nil:
		return retention{}, invalidArg("The retain until date must be provided in ISO 8601 format")
	case !end.After(time.Now()):
		return retention{}, invalidArg("The retain until date must be in the future!")
	}
	return retention{mode: mode, until: end.UTC()}, nil
}

// summed refuses bytes of an object with a retention that come without Content-MD5 and without a checksum.
func (r retention) summed(q *request) *reply {
	if r == (retention{}) || q.header.Get("Content-Md5") != "" || len(q.checksums) > 0 {
		return nil
	}
	return refuse(http.StatusBadRequest, "InvalidRequest",
		"Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests with Object Lock parameters")
}

func protected() *reply {
	return refuse(http.StatusForbidden, "AccessDenied", "Access Denied because object protected by object lock.")
}

// A lockConfiguration is the Object Lock of a bucket in XML.
type lockConfiguration struct {
	XMLName           xml.Name `xml:"ObjectLockConfiguration"`
	ObjectLockEnabled string
	Rule              *struct{ DefaultRetention *defaultRetention }
}

func (b *bucket) getLock() *reply {
	if b.lock == nil {
		return refuse(
			http.StatusNotFound, "ObjectLockConfigurationNotFoundError",
			"Object Lock configuration does not exist for this bucket.")
	}
	out := lockConfiguration{ObjectLockEnabled: enabled}
	if b.lock.Mode != "" {
		out.Rule = &struct{ DefaultRetention *defaultRetention }{b.lock}
	}
	return answerXML(http.StatusOK, &out)
}

func (b *bucket) putLock(q *request) *reply {
	var in lockConfiguration
	switch {
	case len(q.body) == 0:
		return refuse(http.StatusBadRequest, "MissingRequestBodyError", "Request Body is empty")
	case xml.Unmarshal(q.body, &in) != nil || in.ObjectLockEnabled != enabled:
		return malformed()
	}
	rule := &defaultRetention{}
	if in.Rule != nil {
		rule = in.Rule.DefaultRetention
		switch {
		case rule == nil, rule.Mode != governance && rule.Mode != compliance, (rule.Days == 0) == (rule.Years == 0):
			return malformed()
		case rule.Days < 0 || rule.Years < 0:
			return invalidArg("Default retention period must be a positive integer value.")
		case rule.Days > maxDays || rule.Years > maxYears:
			return invalidArg("Default retention period too large.")
		}
	}
	if b.versioning != enabled {
		return refuse(http.StatusConflict, "InvalidBucketState",
			"Versioning must be 'Enabled' on the bucket to apply a Object Lock configuration")
	}
	b.lock = rule
	return ok()
}

// A retentionElement is the retention of a version in XML.
