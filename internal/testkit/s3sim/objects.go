package s3sim

import (
	"cmp"
	"crypto/md5"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// decide performs a request atomically.
func (s *Server) decide(q *request) *reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := &Event{Operation: q.Operation, Time: time.Now()}
	result := s.dispatch(q, e)
	e.Status = result.status
	if s.opts.Observe != nil {
		s.opts.Observe(*e)
	}
	return result
}

func (s *Server) dispatch(q *request, e *Event) *reply {
	if q.refusal != nil {
		return q.refusal
	}
	b := s.buckets[q.Bucket]
	switch {
	case q.Name == "":
		return notImplemented()
	case q.Name == "CreateBucket":
		return s.createBucket(q)
	case b == nil:
		return refuse(http.StatusNotFound, "NoSuchBucket")
	case q.Key != "":
		e.Old = b.current(q.Key)
	}
	if s.conflicts(b, q) {
		return refuse(http.StatusConflict, "ConditionalRequestConflict")
	}
	if q.Key == "" {
		return s.dispatchBucket(b, q)
	}
	if s.overtaken(b, q) {
		e.New = e.Old
		return s.unperformedReply(q)
	}
	if result := s.failWhileEmptied(b, q, e); result != nil {
		return result
	}
	return s.dispatchObject(b, q, e)
}

func (s *Server) dispatchBucket(b *bucket, q *request) *reply {
	switch q.Name {
	case "HeadBucket":
		return &reply{status: http.StatusOK, header: http.Header{"X-Amz-Bucket-Region": {Region}}}
	case "DeleteBucket":
		return s.deleteBucket(b, q)
	case "GetBucketVersioning":
		return b.getVersioning()
	case "PutBucketVersioning":
		return s.putVersioning(b, q)
	case "PutObjectLockConfiguration":
		return b.putLock(q)
	case "ListObjectsV2":
		return s.list(b, q)
	case "ListObjectVersions":
		return s.listVersions(b, q)
	case "ListMultipartUploads":
		return s.listUploads(b, q)
	case "DeleteObjects":
		return s.deleteAll(b, q)
	}
	return notImplemented()
}

func (s *Server) dispatchObject(b *bucket, q *request, e *Event) *reply {
	switch q.Name {
	case "HeadObject", "GetObject":
		return s.get(b, q)
	case "GetObjectTagging":
		return b.getTagging(q)
	case "PutObjectTagging":
		return b.putTagging(q)
	case "PutObject":
		return s.put(b, q, e)
	case "CopyObject":
		return s.copy(b, q, e)
	case "DeleteObject":
		return s.delete(b, q, e, s.opts.Profile.ConditionalDelete)
	case "CreateMultipartUpload":
		return s.createUpload(b, q, e)
	case "UploadPart":
		return s.uploadPart(b, q)
	case "UploadPartCopy":
		return s.uploadPartCopy(b, q, e)
	case "ListParts":
		return s.listParts(b, q)
	case "CompleteMultipartUpload":
		return s.complete(b, q, e)
	case "AbortMultipartUpload":
		return s.abort(b, q)
	}
	return notImplemented()
}

// conflicts reports whether a conditional write fails because another write of the key took effect after the
// request arrived. If the object was deleted, the server reports it as missing instead.
func (s *Server) conflicts(b *bucket, q *request) bool {
	supported := map[string]bool{
		"PutObject": s.opts.Profile.ConditionalPut, "CompleteMultipartUpload": s.opts.Profile.ConditionalComplete,
		"CopyObject": s.opts.Profile.ConditionalCopy, "DeleteObject": s.opts.Profile.ConditionalDelete,
	}[q.Name]
	conditional := q.header.Get("If-None-Match") != "" || q.header.Get("If-Match") != "" && b.current(q.Key) != nil
	return s.opts.Conflicts && supported && conditional && b.changes[q.Key] != q.changes
}

// overtaken reports whether the server skips a request because a later request for the same key took effect first.
func (s *Server) overtaken(b *bucket, q *request) bool {
	return s.opts.Profile.OvertakenSuccess && (q.Name == "PutObject" || q.Name == "CopyObject") && b.changes[q.Key] != q.changes
}

// unperformedReply is the response to a request that was overtaken.
func (s *Server) unperformedReply(q *request) *reply {
	if q.Name == "CopyObject" {
		return replyXML(http.StatusOK, &copyResult{XMLName: xmlName("CopyObjectResult"), ETag: `"None"`, LastModified: stamp(s.now())})
	}
	return ok()
}

func (s *Server) createBucket(q *request) *reply {
	if s.buckets[q.Bucket] != nil {
		return refuse(http.StatusConflict, "BucketAlreadyOwnedByYou")
	}
	b := s.newBucket()
	s.buckets[q.Bucket] = b
	return &reply{status: http.StatusOK, header: http.Header{
		"Location": {"/" + q.Bucket}, "X-Amz-Bucket-Arn": {"arn:aws:s3:::" + q.Bucket},
	}}
}

func (s *Server) deleteBucket(b *bucket, q *request) *reply {
	if len(b.objects) > 0 {
		return refuse(http.StatusConflict, "BucketNotEmpty")
	}
	delete(s.buckets, q.Bucket)
	return noContent()
}

// precondition rejects a write if its condition does not hold for the current object. A server that does not
// support the condition ignores or rejects it.
func (s *Server) precondition(q *request, current *Object, supported bool) *reply {
	match, none := q.header.Get("If-Match"), q.header.Get("If-None-Match")
	switch {
	case match == "" && none == "":
		return nil
	case !supported && s.opts.RefuseUnsupported:
		return notImplemented()
	case !supported:
		return nil
	case none != "" && (none != "*" || match != ""):
		return notImplemented() // S3 responds like this to an ETag here, and to both conditions at once
	case none != "" && current != nil:
		return preconditionFailed()
	case match != "" && current == nil:
		return noSuchKey()
	case match != "" && match != "*" && !sameETag(match, current.ETag),
		s.opts.Profile.UnquotedETags && q.Name == "PutObject" && strings.HasPrefix(match, `"`):
		return preconditionFailed()
	}
	return nil
}

func sameETag(a, b string) bool { return strings.Trim(a, `"`) == strings.Trim(b, `"`) }

// matches evaluates the conditions of a read, or the conditions for the source of a copy. The ETag takes precedence
// over the time (RFC 9110, section 13.2.2).
func (o *Object) matches(h http.Header, prefix string) bool {
	if match := h.Get(prefix + "If-Match"); match != "" {
		return match == "*" || sameETag(match, o.ETag)
	}
	unmodified, err := http.ParseTime(h.Get(prefix + "If-Unmodified-Since"))
	return err != nil || !o.Modified.After(unmodified)
}

// stored returns the headers that the server stores and returns with an object.
func stored(h http.Header) http.Header {
	out := http.Header{}
	for name, values := range h {
		switch name {
		case "Content-Type", "Cache-Control", "Content-Disposition", "Content-Language", "Expires",
			"X-Amz-Storage-Class",
			"X-Amz-Website-Redirect-Location", "X-Amz-Server-Side-Encryption",
			"X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id",
			"X-Amz-Server-Side-Encryption-Bucket-Key-Enabled":
			out[name] = values
		case "Content-Encoding":
			if kept := strings.Trim(strings.ReplaceAll(values[0], "aws-chunked", ""), ", "); kept != "" {
				out.Set(name, kept)
			}
		default:
			if strings.HasPrefix(name, metadataHeader) {
				out.Set(name, strings.Join(values, ","))
			}
		}
	}
	if out.Get("Content-Type") == "" {
		out.Set("Content-Type", "binary/octet-stream")
	}
	if out.Get("X-Amz-Storage-Class") == "STANDARD" {
		out.Del("X-Amz-Storage-Class")
	}
	return out
}

// metadataHeader is the prefix of user metadata headers.
const metadataHeader = "X-Amz-Meta-"

// etag returns the ETag of content sent in one request: its MD5 sum if the profile says so.
func (s *Server) etag(h http.Header, c Content) string {
	if !s.md5ETags(h) {
		return `"opaque-` + s.next() + `"`
	}
	return `"` + hex.EncodeToString(sum(md5.New(), c...)) + `"`
}

// md5ETags reports whether objects with these headers have MD5 sums as ETags.
func (s *Server) md5ETags(h http.Header) bool {
	return s.opts.Profile.MD5ETags && !strings.HasPrefix(h.Get("X-Amz-Server-Side-Encryption"), "aws:kms")
}

func (s *Server) put(b *bucket, q *request, e *Event) *reply {
	if refusal := s.precondition(q, e.Old, s.opts.Profile.ConditionalPut); refusal != nil {
		return refusal
	}
	retained := b.retainedUntil()
	if refusal := summed(retained, q); refusal != nil {
		return refusal
	}
	o := &Object{
		Key: q.Key, Content: Content{q.body}, Modified: s.now(), header: stored(q.header), checksum: s.sentChecksum(q),
		tags: q.header.Get("X-Amz-Tagging"), retained: retained,
	}
	o.ETag = s.etag(q.header, o.Content)
	s.store(b, o)
	e.New = o
	result := ok()
	result.header.Set("ETag", o.ETag)
	b.describeNew(result.header, o)
	o.describe(result.header)
	o.checksum.describe(result.header)
	return result
}

// describe sets the encryption headers of an object.
func (o *Object) describe(h http.Header) {
	for _, name := range []string{"X-Amz-Server-Side-Encryption", "X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id"} {
		if value := o.header.Get(name); value != "" {
			h.Set(name, value)
		}
	}
}

func (s *Server) get(b *bucket, q *request) *reply {
	o, refusal := b.lookup(q)
	if refusal != nil {
		return refusal
	}
	o = q.torn(o)
	if !o.matches(q.header, "") {
		return preconditionFailed()
	}
	if o.broken && q.Name == "GetObject" {
		return refuse(http.StatusConflict, "BrokenMPU")
	}
	size := o.Content.Size()
	from, to, partial, valid := byteRange(q.header.Get("Range"), size)
	if !valid {
		return refuse(http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
	}
	result := &reply{status: http.StatusOK, header: o.header.Clone(), body: o.Content.slice(from, to)}
	h := result.header
	h.Set("ETag", o.ETag)
	b.describe(h, o)
	o.describe(h)
	h.Set("Last-Modified", o.Modified.Format(http.TimeFormat))
	h.Set("Accept-Ranges", "bytes")
	h.Set("Content-Length", strconv.FormatInt(to-from, 10))
	if n := len(tagsOf(o.tags)); n > 0 {
		h.Set("X-Amz-Tagging-Count", strconv.Itoa(n))
	}
	if partial {
		result.status = http.StatusPartialContent
		if to > from {
			h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to-1, size))
		}
	}
	if to-from == size && q.header.Get("X-Amz-Checksum-Mode") == "ENABLED" {
		o.checksum.describe(h)
	}
	for name := range q.query { // parameters of a presigned link
		if header, found := strings.CutPrefix(name, "response-"); found {
			h.Set(header, q.query.Get(name))
		}
	}
	return result
}

// byteRange parses a Range header (RFC 9110, section 14.1.2) with a first byte and an optional last byte. Any other
// form selects the whole object. valid is false if the object does not have the range.
func byteRange(value string, size int64) (from, to int64, partial, valid bool) {
	set, found := strings.CutPrefix(value, "bytes=")
	first, last, _ := strings.Cut(set, "-")
	from, err := strconv.ParseInt(first, 10, 64)
	if !found || err != nil {
		return 0, size, false, true
	}
	to = size - 1
	if last != "" {
		if to, err = strconv.ParseInt(last, 10, 64); err != nil || to < from {
			return 0, size, false, true
		}
	}
	return from, min(to, size-1) + 1, true, from < size
}

// source returns the object that a copy names and checks its conditions.
func (s *Server) source(q *request) (*Object, *reply) {
	escaped, id, _ := strings.Cut(strings.TrimPrefix(q.header.Get("X-Amz-Copy-Source"), "/"), "?versionId=")
	name, err := url.PathUnescape(escaped)
	bucket, key, _ := strings.Cut(name, "/")
	b := s.buckets[bucket]
	switch {
	case err != nil || key == "":
		return nil, invalidArg()
	case b == nil:
		return nil, refuse(http.StatusNotFound, "NoSuchBucket")
	}
	o, refusal := b.version(key, id)
	switch {
	case refusal != nil:
		return nil, refusal
	case !o.matches(q.header, "X-Amz-Copy-Source-"),
		s.opts.Profile.UncheckedSources && o.parts != nil && q.header.Get("X-Amz-Copy-Source-If-Match") != "":
		return nil, preconditionFailed()
	case o.broken:
		return nil, refuse(http.StatusConflict, "BrokenMPU")
	}
	return o, nil
}

func (s *Server) copy(b *bucket, q *request, e *Event) *reply {
	source, refusal := s.source(q)
	if refusal == nil {
		refusal = s.precondition(q, e.Old, s.opts.Profile.ConditionalCopy)
	}
	algorithm := ""
	if refusal == nil {
		algorithm, refusal = algorithmNamed(q.header)
	}
	if refusal != nil {
		return refusal
	}
	replaces := q.header.Get("X-Amz-Metadata-Directive") == "REPLACE"
	own := stored(q.header)
	header := own
	if !replaces {
		header = source.header.Clone()
		for name := range header { // headers that S3 does not copy
			if strings.HasPrefix(name, "X-Amz-") && !strings.HasPrefix(name, metadataHeader) {
				header.Del(name)
			}
		}
		for name, values := range own {
			if strings.HasPrefix(name, "X-Amz-") {
				header[name] = values
			}
		}
	}
	tags := source.tags
	if s.opts.Profile.LosesTags && replaces {
		tags = ""
	}
	if q.header.Get("X-Amz-Tagging-Directive") == "REPLACE" {
		tags = q.header.Get("X-Amz-Tagging")
	}
	changes := replaces || header.Get("X-Amz-Storage-Class") != source.header.Get("X-Amz-Storage-Class") ||
		header.Get("X-Amz-Server-Side-Encryption") != source.header.Get("X-Amz-Server-Side-Encryption")
	if source == e.Old && !changes {
		return refuse(http.StatusBadRequest, "InvalidRequest")
	}
	o := &Object{
		Key: q.Key, Content: source.Content, Modified: s.now(), header: header, tags: tags, retained: b.retainedUntil(),
	}
	o.checksum = s.withType(checksumOf(cmp.Or(algorithm, source.checksum.algorithm, s.defaultAlgorithm()), o.Content))
	o.ETag = s.etag(header, o.Content)
	s.store(b, o)
	e.New, e.Source = o, source
	result := replyXML(http.StatusOK, &copyResult{
		XMLName: xmlName("CopyObjectResult"), ETag: o.ETag, LastModified: stamp(o.Modified),
		typedSums: o.checksum.element(),
	})
	b.describeNew(result.header, o)
	o.describe(result.header)
	if source.VersionID != "" {
		result.header.Set("X-Amz-Copy-Source-Version-Id", source.VersionID)
	}
	return result
}

type copyResult struct {
	XMLName      xml.Name
	ETag         string
	LastModified string
	typedSums
}

// stamp formats a time as S3 does in XML.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// delete deletes an object or a version. It checks the condition only if conditional is set, because some servers
// support conditions only in DeleteObject.
func (s *Server) delete(b *bucket, q *request, e *Event, conditional bool) *reply {
	if refusal := s.precondition(q, e.Old, conditional); refusal != nil {
		return refusal // the condition applies to the current object, whichever version is deleted
	}
	id := q.query.Get("versionId")
	target := b.find(q.Key, id)
	result := noContent()
	switch {
	case id == "" && q.Name == "DeleteObject" && s.opts.Profile.LockedMarkers && b.lock != nil &&
		strings.HasSuffix(q.Key, "/") && e.Old != nil:
		return refuse(http.StatusBadRequest, "InvalidRequest")
	case id == "":
		if marker := s.remove(b, q.Key); marker != nil {
			b.describe(result.header, marker)
		}
		return result
	case target == nil:
		result.header.Set("X-Amz-Version-Id", id)
	case time.Now().Before(target.retained):
		return refuse(http.StatusForbidden, "AccessDenied")
	default:
		b.removeVersion(q.Key, id)
		b.describe(result.header, target)
	}
	e.New = b.current(q.Key)
	return result
}

// A deleteElement is an object of DeleteObjects in XML form.
type deleteElement struct {
	Key                   string
	ETag                  string `xml:",omitempty"`
	VersionID             string `xml:"VersionId,omitempty"`
	DeleteMarker          bool   `xml:",omitempty"`
	DeleteMarkerVersionID string `xml:"DeleteMarkerVersionId,omitempty"`
	Code                  string `xml:",omitempty"`
	Message               string `xml:",omitempty"`
}

func (s *Server) deleteAll(b *bucket, q *request) *reply {
	var in struct {
		Quiet   bool
		Objects []deleteElement `xml:"Object"`
	}
	switch {
	case !s.opts.Profile.BatchDelete:
		return notImplemented()
	case xml.Unmarshal(q.body, &in) != nil || len(in.Objects) > maxPage:
		return malformed()
	case q.header.Get("Content-Md5") == "" && len(q.checksums) == 0:
		return refuse(http.StatusBadRequest, "InvalidRequest")
	}
	out := struct {
		XMLName xml.Name `xml:"DeleteResult"`
		Deleted []deleteElement
		Errors  []deleteElement `xml:"Error"`
	}{}
	for _, o := range in.Objects {
		deleted, done := s.deleteOne(b, q, o)
		switch {
		case !done:
			out.Errors = append(out.Errors, deleted)
		case !in.Quiet:
			out.Deleted = append(out.Deleted, deleted)
		}
	}
	return replyXML(http.StatusOK, &out)
}

// deleteOne deletes one object of DeleteObjects.
func (s *Server) deleteOne(b *bucket, q *request, o deleteElement) (out deleteElement, done bool) {
	one := Event{Operation: q.Operation, Time: time.Now(), Old: b.current(o.Key)}
	one.Key = o.Key
	single := *q
	single.Key, single.header, single.query = o.Key, http.Header{}, url.Values{}
	if o.ETag != "" {
		single.header.Set("If-Match", o.ETag)
	}
	if o.VersionID != "" {
		single.query.Set("versionId", o.VersionID)
	}
	result := s.delete(b, &single, &one, s.opts.Profile.ConditionalBatchDelete)
	one.Status = result.status
	if s.opts.Observe != nil {
		s.opts.Observe(one)
	}
	out = deleteElement{Key: o.Key, VersionID: o.VersionID}
	if result.status >= http.StatusBadRequest {
		_ = xml.Unmarshal(result.body.Bytes(), &struct{ Code, Message *string }{&out.Code, &out.Message})
		return out, false
	}
	if result.header.Get("X-Amz-Delete-Marker") != "" {
		out.DeleteMarker, out.DeleteMarkerVersionID = true, result.header.Get("X-Amz-Version-Id")
	}
	return out, true
}

type tag struct{ Key, Value string }

// tagsOf parses a tagging header.
func tagsOf(query string) (tags []tag) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil
	}
	for key := range values {
		tags = append(tags, tag{key, values.Get(key)})
	}
	slices.SortFunc(tags, func(a, b tag) int { return strings.Compare(a.Key, b.Key) })
	return tags
}

// A tagging holds the tags of a version in XML form.
type tagging struct {
	XMLName xml.Name `xml:"Tagging"`
	TagSet  []tag    `xml:"TagSet>Tag"`
}

func (b *bucket) putTagging(q *request) *reply {
	o, refusal := b.lookup(q)
	var in tagging
	switch {
	case refusal != nil:
		return refusal
	case xml.Unmarshal(q.body, &in) != nil:
		return refuse(http.StatusBadRequest, "MalformedXML")
	}
	values := url.Values{}
	for _, t := range in.TagSet {
		values.Set(t.Key, t.Value)
	}
	o.tags = values.Encode()
	return ok()
}

func (b *bucket) getTagging(q *request) *reply {
	o, refusal := b.lookup(q)
	if refusal != nil {
		return refusal
	}
	result := replyXML(http.StatusOK, &tagging{TagSet: tagsOf(o.tags)})
	b.describe(result.header, o)
	return result
}
