package s3sim

import (
	"cmp"
	"crypto/md5"
	"encoding/base64"
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

// decide performs a request as one step.
func (s *Server) decide(q *request) *reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := &Event{Operation: q.Operation, Time: time.Now()}
	answer := s.dispatch(q, e)
	e.Status = answer.status
	if s.opts.Observe != nil {
		s.opts.Observe(*e)
	}
	return answer
}

func (s *Server) dispatch(q *request, e *Event) *reply {
	if q.refusal != nil {
		return q.refusal
	}
	b := s.buckets[q.Bucket]
	switch {
	case q.Name == "ListBuckets":
		return s.listBuckets()
	case q.Name == "CreateBucket":
		return s.createBucket(q)
	case b == nil:
		return refuse(http.StatusNotFound, "NoSuchBucket")
	case q.Key != "":
		e.Old = b.current(q.Key)
	}
	switch q.Name {
	case "HeadBucket":
		return ok()
	case "GetBucketVersioning":
		return b.versioning()
	case "PutBucketVersioning":
		if s.opts.Profile.Name == "r2" {
			return notImplemented() // R2 keeps no versions
		}
		b.versioned = strings.Contains(string(q.body), "<Status>Enabled</Status>")
		return ok()
	case "ListObjectsV2":
		return s.list(b, q)
	case "ListObjectVersions":
		return b.listVersions(q)
	case "ListMultipartUploads":
		return s.listUploads(b, q)
	case "HeadObject", "GetObject":
		return s.get(b, q)
	case "GetObjectTagging":
		return getTagging(e.Old)
	case "PutObject":
		return s.put(b, q, e)
	case "CopyObject":
		return s.copy(b, q, e)
	case "DeleteObject":
		return s.delete(b, q, e, s.opts.Profile.ConditionalDelete)
	case "DeleteObjects":
		return s.deleteAll(b, q)
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

func (s *Server) listBuckets() *reply {
	out := struct {
		XMLName xml.Name                `xml:"ListAllMyBucketsResult"`
		Buckets []struct{ Name string } `xml:"Buckets>Bucket"`
	}{}
	for name := range s.buckets {
		out.Buckets = append(out.Buckets, struct{ Name string }{name})
	}
	return answerXML(http.StatusOK, &out)
}

func (s *Server) createBucket(q *request) *reply {
	if s.buckets[q.Bucket] != nil {
		return refuse(http.StatusConflict, "BucketAlreadyOwnedByYou")
	}
	s.buckets[q.Bucket] = s.newBucket()
	return ok()
}

func (b *bucket) versioning() *reply {
	out := struct {
		XMLName xml.Name `xml:"VersioningConfiguration"`
		Status  string   `xml:",omitempty"`
	}{}
	if b.versioned {
		out.Status = "Enabled"
	}
	return answerXML(http.StatusOK, &out)
}

// precondition refuses a write whose condition does not hold for the current object. A server without such conditions ignores
// them or refuses each.
func (s *Server) precondition(q *request, current *Object, supported bool) *reply {
	match, none := q.header.Get("If-Match"), q.header.Get("If-None-Match")
	switch {
	case match == "" && none == "":
		return nil
	case !supported && s.opts.RefuseUnsupported:
		return notImplemented()
	case !supported:
		return nil
	case none != "" && none != "*":
		return notImplemented() // so says S3 of an ETag here
	case none != "" && current != nil:
		return preconditionFailed()
	case match != "" && current == nil:
		return noSuchKey()
	case match != "" && match != "*" && !sameETag(match, current.ETag):
		return preconditionFailed()
	}
	return nil
}

func sameETag(a, b string) bool { return strings.Trim(a, `"`) == strings.Trim(b, `"`) }

// stored returns the headers that the server keeps with an object and returns with it.
func stored(h http.Header) http.Header {
	out := http.Header{}
	for name, values := range h {
		switch name {
		case "Content-Type", "Cache-Control", "Content-Disposition", "Content-Language", "Expires", "X-Amz-Storage-Class",
			"X-Amz-Website-Redirect-Location", "X-Amz-Server-Side-Encryption", "X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id",
			"X-Amz-Server-Side-Encryption-Bucket-Key-Enabled":
			out[name] = values
		case "Content-Encoding":
			if kept := strings.Trim(strings.ReplaceAll(values[0], "aws-chunked", ""), ", "); kept != "" {
				out.Set(name, kept)
			}
		default:
			if strings.HasPrefix(name, metadataHeader) {
				out[name] = values
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

// metadataHeader is the beginning of each header of user metadata.
const metadataHeader = "X-Amz-Meta-"

// tooMuch reports whether the user metadata are larger than S3 allows.
func tooMuch(h http.Header) bool {
	size := 0
	for name, values := range h {
		if key, found := strings.CutPrefix(name, metadataHeader); found {
			size += len(key) + len(strings.Join(values, ","))
		}
	}
	return size > maxMetadataBytes
}

// etag returns the ETag of bytes that come by one request: their MD5 if the profile says so.
func (s *Server) etag(h http.Header, c Content) string {
	if !s.md5ETags(h) {
		return `"opaque-` + s.next() + `"`
	}
	return `"` + hex.EncodeToString(sum(md5.New(), c...)) + `"`
}

// md5ETags reports whether the ETags of objects with these headers are MD5 sums.
func (s *Server) md5ETags(h http.Header) bool {
	return s.opts.Profile.MD5ETags && !strings.HasPrefix(h.Get("X-Amz-Server-Side-Encryption"), "aws:kms")
}

// store makes an object the current one of its key.
func (s *Server) store(b *bucket, o *Object) {
	if !b.versioned {
		b.objects[o.Key] = nil
	} else {
		o.VersionID = s.next()
	}
	b.objects[o.Key] = append(b.objects[o.Key], o)
}

func (s *Server) put(b *bucket, q *request, e *Event) *reply {
	if tooMuch(q.header) {
		return refuse(http.StatusBadRequest, "MetadataTooLarge")
	}
	if refusal := s.precondition(q, e.Old, s.opts.Profile.ConditionalPut); refusal != nil {
		return refusal
	}
	o := &Object{
		Key: q.Key, Content: Content{q.body}, Modified: now(), header: stored(q.header), checksums: q.checksums,
		tags: q.header.Get("X-Amz-Tagging"),
	}
	o.ETag = s.etag(q.header, o.Content)
	s.store(b, o)
	e.New = o
	answer := ok()
	o.describe(answer.header)
	copyHeader(answer.header, o.checksums)
	return answer
}

// describe sets the headers that describe a stored object.
func (o *Object) describe(h http.Header) {
	h.Set("ETag", o.ETag)
	if o.VersionID != "" {
		h.Set("X-Amz-Version-Id", o.VersionID)
	}
	for _, name := range []string{"X-Amz-Server-Side-Encryption", "X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id"} {
		if value := o.header.Get(name); value != "" {
			h.Set(name, value)
		}
	}
}

func copyHeader(to, from http.Header) {
	for name, values := range from {
		to[name] = values
	}
}

// version is the version of a key that a request names, or the current one.
func (b *bucket) version(key, id string) *Object {
	if id == "" {
		return b.current(key)
	}
	for _, o := range b.objects[key] {
		if o.VersionID == id && !o.deleted {
			return o
		}
	}
	return nil
}

// archived reports whether an object is in a storage class from which S3 cannot read it.
func (o *Object) archived() bool {
	return slices.Contains([]string{"GLACIER", "DEEP_ARCHIVE"}, o.header.Get("X-Amz-Storage-Class"))
}

func (s *Server) get(b *bucket, q *request) *reply {
	o := b.version(q.Key, q.query.Get("versionId"))
	switch {
	case o == nil:
		return noSuchKey()
	case q.header.Get("If-Match") != "" && !sameETag(q.header.Get("If-Match"), o.ETag):
		return preconditionFailed()
	case q.header.Get("If-None-Match") != "" && sameETag(q.header.Get("If-None-Match"), o.ETag):
		return &reply{status: http.StatusNotModified, header: http.Header{"Etag": {o.ETag}}}
	case o.archived() && q.Name == "GetObject":
		return refuse(http.StatusForbidden, "InvalidObjectState")
	case q.query.Has("partNumber"):
		return notImplemented()
	}
	size := o.Content.Size()
	from, to, partial, valid := byteRange(q.header.Get("Range"), size)
	if !valid {
		return refuse(http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
	}
	answer := &reply{status: http.StatusOK, header: o.header.Clone(), body: o.Content.slice(from, to)}
	h := answer.header
	o.describe(h)
	h.Set("Last-Modified", o.Modified.Format(http.TimeFormat))
	h.Set("Accept-Ranges", "bytes")
	h.Set("Content-Length", strconv.FormatInt(to-from, 10))
	if n := len(tagsOf(o.tags)); n > 0 {
		h.Set("X-Amz-Tagging-Count", strconv.Itoa(n))
	}
	if partial {
		answer.status = http.StatusPartialContent
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to-1, size))
	} else if q.header.Get("X-Amz-Checksum-Mode") == "ENABLED" {
		s.addChecksums(h, o)
	}
	for name := range q.query { // of a presigned link
		if header, found := strings.CutPrefix(name, "response-"); found {
			h.Set(header, q.query.Get(name))
		}
	}
	return answer
}

// addChecksums adds those of the whole object. AWS has one of every object.
func (s *Server) addChecksums(h http.Header, o *Object) {
	copyHeader(h, o.checksums)
	if len(o.checksums) == 0 && strings.HasPrefix(s.opts.Profile.Name, "aws") {
		crc := sum(algorithms()["Crc64nvme"](), o.Content...)
		h.Set(checksumHeader+"Crc64nvme", base64.StdEncoding.EncodeToString(crc))
		h.Set(checksumHeader+"Type", "FULL_OBJECT")
	}
}

// byteRange parses a Range header (RFC 9110 section 14.1.2). A malformed one stands for the whole object.
func byteRange(value string, size int64) (from, to int64, partial, valid bool) {
	set, found := strings.CutPrefix(value, "bytes=")
	first, last, dash := strings.Cut(set, "-")
	if !found || !dash || strings.Contains(set, ",") {
		return 0, size, false, true
	}
	if first == "" { // the last bytes
		n, err := strconv.ParseInt(last, 10, 64)
		return max(0, size-n), size, true, err == nil && n > 0 && size > 0
	}
	from, err := strconv.ParseInt(first, 10, 64)
	to = size
	if last != "" && err == nil {
		to, err = strconv.ParseInt(last, 10, 64)
		to = min(to+1, size)
	}
	return from, to, true, err == nil && from < size && from < to
}

// source finds the object that a copy names, and checks its conditions.
func (s *Server) source(q *request) (*Object, *reply) {
	name, version, _ := strings.Cut(q.header.Get("X-Amz-Copy-Source"), "?versionId=")
	name, err := url.PathUnescape(strings.TrimPrefix(name, "/"))
	bucket, key, _ := strings.Cut(name, "/")
	b := s.buckets[bucket]
	switch {
	case err != nil || key == "":
		return nil, invalidArg()
	case b == nil:
		return nil, refuse(http.StatusNotFound, "NoSuchBucket")
	}
	o := b.version(key, version)
	match, none := q.header.Get("X-Amz-Copy-Source-If-Match"), q.header.Get("X-Amz-Copy-Source-If-None-Match")
	switch {
	case o == nil:
		return nil, noSuchKey()
	case match != "" && !sameETag(match, o.ETag), none != "" && sameETag(none, o.ETag):
		return nil, preconditionFailed()
	case o.archived():
		return nil, refuse(http.StatusForbidden, "InvalidObjectState")
	}
	return o, nil
}

func (s *Server) copy(b *bucket, q *request, e *Event) *reply {
	source, refusal := s.source(q)
	if refusal == nil {
		refusal = s.precondition(q, e.Old, s.opts.Profile.ConditionalCopy)
	}
	if refusal != nil {
		return refusal
	}
	replaces := q.header.Get("X-Amz-Metadata-Directive") == "REPLACE"
	own := stored(q.header)
	header := own
	if !replaces {
		header = source.header.Clone()
		for name := range header { // what S3 does not copy
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
	if q.header.Get("X-Amz-Tagging-Directive") == "REPLACE" {
		tags = q.header.Get("X-Amz-Tagging")
	}
	changes := replaces || header.Get("X-Amz-Storage-Class") != source.header.Get("X-Amz-Storage-Class") ||
		header.Get("X-Amz-Server-Side-Encryption") != source.header.Get("X-Amz-Server-Side-Encryption")
	switch {
	case tooMuch(header):
		return refuse(http.StatusBadRequest, "MetadataTooLarge")
	case source == e.Old && !changes:
		return refuse(http.StatusBadRequest, "InvalidRequest") // a copy onto itself that changes nothing
	case source.Content.Size() > 5<<30:
		return refuse(http.StatusBadRequest, "InvalidRequest")
	}
	o := &Object{Key: q.Key, Content: source.Content, Modified: now(), header: header, checksums: source.checksums, tags: tags}
	if _, composite, found := strings.Cut(source.ETag, "-"); found && composite != "" {
		o.checksums = nil // those of parts are none of the whole
	}
	o.ETag = s.etag(header, o.Content)
	s.store(b, o)
	e.New, e.Source = o, source
	answer := answerXML(http.StatusOK, &copyResult{XMLName: xml.Name{Local: "CopyObjectResult"}, ETag: o.ETag, LastModified: stamp(o.Modified)})
	o.describe(answer.header)
	answer.header.Del("ETag") // it is in the body
	if source.VersionID != "" {
		answer.header.Set("X-Amz-Copy-Source-Version-Id", source.VersionID)
	}
	return answer
}

type copyResult struct {
	XMLName        xml.Name
	ETag           string
	LastModified   string
	ChecksumCRC32C string `xml:",omitempty"`
}

// stamp writes a time as S3 does in XML.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// delete deletes an object. It checks the condition where the server knows it. Some servers know it in DeleteObject only.
func (s *Server) delete(b *bucket, q *request, e *Event, conditional bool) *reply {
	if id := q.query.Get("versionId"); id != "" {
		b.objects[q.Key] = slices.DeleteFunc(b.objects[q.Key], func(o *Object) bool { return o.VersionID == id })
		e.New = b.current(q.Key)
		return noContent()
	}
	if refusal := s.precondition(q, e.Old, conditional); refusal != nil {
		return refusal
	}
	answer := noContent()
	if marker := s.remove(b, q.Key); marker != nil {
		answer.header.Set("X-Amz-Delete-Marker", "true")
		answer.header.Set("X-Amz-Version-Id", marker.VersionID)
	}
	return answer
}

// remove deletes the current object of a key, and returns the delete marker where the bucket keeps versions.
func (s *Server) remove(b *bucket, key string) (marker *Object) {
	if b.versioned {
		marker = &Object{Key: key, Modified: now(), deleted: true}
		s.store(b, marker)
		return marker
	}
	delete(b.objects, key)
	return nil
}

func (s *Server) deleteAll(b *bucket, q *request) *reply {
	type object struct {
		Key       string
		ETag      string `xml:",omitempty"`
		VersionID string `xml:"VersionId,omitempty"`
		Code      string `xml:",omitempty"`
	}
	var in struct {
		Quiet   bool
		Objects []object `xml:"Object"`
	}
	type result struct {
		XMLName xml.Name `xml:"DeleteResult"`
		Deleted []object
		Errors  []object `xml:"Error"`
	}
	switch {
	case !s.opts.Profile.BatchDelete:
		return notImplemented()
	case xml.Unmarshal(q.body, &in) != nil || len(in.Objects) > maxPage:
		return malformed()
	case q.header.Get("Content-Md5") == "" && len(q.checksums) == 0:
		return refuse(http.StatusBadRequest, "InvalidRequest") // S3 wants one of them here
	}
	out := result{}
	for _, o := range in.Objects {
		one := Event{
			Operation: q.Operation, Time: time.Now(), Status: http.StatusNoContent, Old: b.current(o.Key),
		}
		one.Key = o.Key
		single := *q
		single.Key, single.header, single.query = o.Key, http.Header{}, url.Values{}
		if o.ETag != "" {
			single.header.Set("If-Match", o.ETag)
		}
		if o.VersionID != "" {
			single.query.Set("versionId", o.VersionID)
		}
		answer := s.delete(b, &single, &one, s.opts.Profile.ConditionalBatchDelete)
		one.Status = answer.status
		if s.opts.Observe != nil {
			s.opts.Observe(one)
		}
		code := map[int]string{http.StatusPreconditionFailed: "PreconditionFailed", http.StatusNotFound: "NoSuchKey"}[answer.status]
		switch {
		case answer.status >= http.StatusBadRequest:
			out.Errors = append(out.Errors, object{Key: o.Key, Code: cmp.Or(code, "NotImplemented")})
		case !in.Quiet:
			out.Deleted = append(out.Deleted, object{Key: o.Key})
		}
	}
	return answerXML(http.StatusOK, &out)
}

type tag struct{ Key, Value string }

// tagsOf parses the tags of a header.
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

func getTagging(o *Object) *reply {
	if o == nil {
		return noSuchKey()
	}
	return answerXML(http.StatusOK, &struct {
		XMLName xml.Name `xml:"Tagging"`
		TagSet  []tag    `xml:"TagSet>Tag"`
	}{TagSet: tagsOf(o.tags)})
}
