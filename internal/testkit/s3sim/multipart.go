package s3sim

import (
	"cmp"
	"crypto/md5"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An upload is an open multipart upload.
type upload struct {
	id, key   string
	begun     time.Time
	header    http.Header
	tags      string
	retained  time.Time // default retention when it began
	algorithm string    // for part checksums, such as "Crc32c"; empty for none
	full      bool      // the object's checksum covers all its bytes
	parts     map[int]*part
}

// A completion is a completed upload.
type completion struct {
	object *Object
	parts  []partElement // from the request
	result *reply
}

type part struct {
	Content
	etag     string
	sums     sums // checksums from the request, and one of the upload's algorithm
	modified time.Time
}

func (s *Server) createUpload(b *bucket, q *request, e *Event) *reply {
	algorithm, refusal := algorithmNamed(q.header)
	if refusal != nil {
		return refusal
	}
	full := q.header.Get("X-Amz-Checksum-Type") == fullObject || algorithm == "Crc64nvme"
	u := &upload{
		id: "upload-" + s.next(), key: q.Key, begun: s.now(), header: stored(q.header),
		tags:  q.header.Get("X-Amz-Tagging"),
		parts: map[int]*part{}, algorithm: algorithm, full: full, retained: b.retainedUntil(),
	}
	if s.opts.Profile.LosesTags {
		u.tags = ""
	}
	b.uploads[u.id] = u
	e.UploadID = u.id
	result := replyXML(http.StatusOK, &struct {
		XMLName               xml.Name `xml:"InitiateMultipartUploadResult"`
		Bucket, Key, UploadId string
	}{Bucket: q.Bucket, Key: q.Key, UploadId: u.id})
	if u.algorithm != "" {
		result.header.Set("X-Amz-Checksum-Algorithm", strings.ToUpper(u.algorithm))
		result.header.Set("X-Amz-Checksum-Type", u.kind())
	}
	return result
}

// upload returns the upload that a request names.
func (b *bucket) upload(q *request) (*upload, *reply) {
	u := b.uploads[q.UploadID]
	if u == nil && q.Name != "AbortMultipartUpload" {
		u = b.unended[q.UploadID]
	}
	if u == nil || u.key != q.Key {
		return nil, noUpload()
	}
	return u, nil
}

// number returns the part number of a request and reports whether it is valid.
func (s *Server) number(q *request) (int, bool) {
	n, err := strconv.Atoi(q.query.Get("partNumber"))
	return n, err == nil && n >= 1 && int64(n) <= s.opts.Profile.MaxParts()
}

func (s *Server) uploadPart(b *bucket, q *request) *reply {
	n, valid := s.number(q)
	if !valid {
		return invalidArg()
	}
	u, refusal := b.upload(q)
	if refusal != nil {
		return refusal
	}
	if refusal := summed(u.retained, q); refusal != nil {
		return refusal
	}
	p := &part{Content: Content{q.body}, modified: s.now(), sums: sumsFrom(q.checksums)}
	if u.algorithm != "" && *p.sums.of(u.algorithm) == "" {
		if s.sumsParts(u) && (!u.full || len(q.checksums) > 0) {
			return refuse(http.StatusBadRequest, "InvalidRequest")
		}
		*p.sums.of(u.algorithm) = checksumOf(u.algorithm, p.Content).value
	}
	p.etag = s.etag(u.header, p.Content)
	u.parts[n] = p
	result := ok()
	result.header.Set("ETag", p.etag)
	for name := range algorithms() {
		if value := *p.sums.of(name); value != "" {
			result.header.Set(checksumHeader+name, value)
		}
	}
	return result
}

// sumsParts reports whether each part needs a checksum, which CompleteMultipartUpload must name.
func (s *Server) sumsParts(u *upload) bool {
	return u.algorithm != "" && (s.strict() || strings.HasPrefix(s.opts.Profile.Name, "aws"))
}

// strict reports whether the profile is the one for unknown servers, which enforces every rule.
func (s *Server) strict() bool { return s.opts.Profile.Name == "" || s.opts.Profile.Name == "strict" }

func (s *Server) uploadPartCopy(b *bucket, q *request, e *Event) *reply {
	if !s.opts.Profile.PartCopy {
		return notImplemented()
	}
	n, valid := s.number(q)
	if !valid {
		return invalidArg()
	}
	u, refusal := b.upload(q)
	if refusal != nil {
		return refusal
	}
	source, refusal := s.source(q)
	if refusal != nil {
		return refusal
	}
	from, to := int64(0), source.Content.Size()
	if value := q.header.Get("X-Amz-Copy-Source-Range"); value != "" {
		if from, to, _, valid = byteRange(value, to); !valid {
			return invalidArg()
		}
	}
	e.Source = source
	p := &part{Content: source.Content.slice(from, to), modified: s.now()}
	p.etag = s.etag(u.header, p.Content)
	if u.algorithm != "" {
		*p.sums.of(u.algorithm) = checksumOf(u.algorithm, p.Content).value
	}
	u.parts[n] = p
	result := &copyResult{XMLName: xmlName("CopyPartResult"), ETag: p.etag, LastModified: stamp(p.modified)}
	result.sums = p.sums
	response := replyXML(http.StatusOK, result)
	if source.VersionID != "" {
		response.header.Set("X-Amz-Copy-Source-Version-Id", source.VersionID)
	}
	return response
}

// A partElement is a part in XML form.
type partElement struct {
	PartNumber   int
	ETag         string
	LastModified string `xml:",omitempty"`
	Size         int64  `xml:",omitempty"`
	sums
}

func (s *Server) listParts(b *bucket, q *request) *reply {
	u, refusal := b.upload(q)
	if refusal != nil {
		return refusal
	}
	size, refusal := s.pageSize(q, "max-parts")
	if refusal != nil {
		return refusal
	}
	out := struct {
		XMLName                                xml.Name `xml:"ListPartsResult"`
		Bucket, Key, UploadId                  string
		StorageClass                           string
		PartNumberMarker, NextPartNumberMarker int
		MaxParts                               int
		IsTruncated                            bool
		ChecksumAlgorithm, ChecksumType        string        `xml:",omitempty"`
		Parts                                  []partElement `xml:"Part"`
	}{
		Bucket: q.Bucket, Key: q.Key, UploadId: u.id, ChecksumAlgorithm: strings.ToUpper(u.algorithm),
		StorageClass: cmp.Or(u.header.Get("X-Amz-Storage-Class"), "STANDARD"), MaxParts: size, ChecksumType: u.kind(),
	}
	after, err := strconv.Atoi(cmp.Or(q.query.Get("part-number-marker"), "0"))
	if err != nil {
		return invalidArg()
	}
	out.PartNumberMarker = after
	for _, n := range slices.Sorted(maps.Keys(u.parts)) {
		switch {
		case n <= after:
			continue
		case len(out.Parts) == size:
			out.IsTruncated = true
		default:
			p := u.parts[n]
			out.Parts = append(
				out.Parts, partElement{PartNumber: n, ETag: p.etag, LastModified: stamp(p.modified), Size: p.Size(),
					sums: p.sums})
			out.NextPartNumberMarker = n
		}
	}
	return replyXML(http.StatusOK, &out)
}

func (s *Server) complete(b *bucket, q *request, e *Event) *reply {
	var in struct {
		Parts []partElement `xml:"Part"`
	}
	wellFormed := xml.Unmarshal(q.body, &in) == nil && len(in.Parts) > 0
	if again := s.completedBefore(b, q, in.Parts); again != nil {
		e.New = e.Old
		return again
	}
	u, refusal := b.upload(q)
	_, known := b.completed[q.UploadID]
	broken := refusal != nil && !known && q.open != nil
	if broken {
		u, refusal = q.open, nil
	}
	switch {
	case refusal != nil && s.opts.FailWhileEmptied && s.opts.Profile.FalseSuccess && !known && e.Old != nil:
		e.New = e.Old
		return s.unstoredReply(q)
	case refusal != nil:
		return refusal
	case !wellFormed:
		return malformed()
	}
	parts, refusal := s.completedParts(u, in.Parts)
	if refusal == nil {
		refusal = s.precondition(q, e.Old, s.opts.Profile.ConditionalComplete)
	}
	if refusal != nil {
		return refusal
	}
	o := s.assemble(u, parts)
	o.broken = broken
	delete(b.uploads, u.id)
	if s.opts.Profile.PersistentUploads {
		b.unended[u.id] = u
	}
	s.store(b, o)
	e.New = o
	result := replyXML(http.StatusOK, &completedResult{
		XMLName: xmlName("CompleteMultipartUploadResult"), Bucket: q.Bucket, Key: q.Key, ETag: o.ETag,
		typedSums: o.checksum.element(),
	})
	b.describeNew(result.header, o)
	o.describe(result.header)
	b.completed[u.id] = completion{o, in.Parts, result}
	return result
}

type completedResult struct {
	XMLName           xml.Name
	Bucket, Key, ETag string
	typedSums
}

// xmlName returns the name of the root element of a response.
func xmlName(name string) xml.Name { return xml.Name{Local: name} }

// completedBefore returns the response to a request that completes an upload again. It returns nil if the server
// does not remember the upload.
func (s *Server) completedBefore(b *bucket, q *request, parts []partElement) *reply {
	c, known := b.completed[q.UploadID]
	if !s.aws() || s.opts.ForgetUploads || !known || b.current(q.Key) != c.object || !slices.Equal(parts, c.parts) {
		return nil
	}
	return c.result
}

// assemble builds an object from parts.
func (s *Server) assemble(u *upload, parts []*part) *Object {
	// S3 sets the modification time to the start of the upload.
	o := &Object{Key: u.key, Modified: u.begun, header: u.header, tags: u.tags, retained: u.retained}
	var digests [][]byte
	for _, p := range parts {
		o.Content = append(o.Content, p.Content...)
		o.parts = append(o.parts, p.Size())
		digest, _ := hex.DecodeString(strings.Trim(p.etag, `"`))
		digests = append(digests, digest)
	}
	o.ETag = fmt.Sprintf(`"opaque-%s-%d"`, s.next(), len(parts))
	if s.md5ETags(u.header) {
		o.ETag = fmt.Sprintf(`"%s-%d"`, hex.EncodeToString(sum(md5.New(), digests...)), len(parts))
	}
	switch {
	case u.algorithm == "":
		o.checksum = checksumOf(s.defaultAlgorithm(), o.Content)
	case u.full:
		o.checksum = s.withType(checksumOf(u.algorithm, o.Content))
	default:
		o.checksum = s.withType(compositeOf(u.algorithm, parts))
	}
	return o
}

// kind returns the type of the object's checksum, or "" if the upload has none.
func (u *upload) kind() string { return checksum{algorithm: u.algorithm, full: u.full}.kind() }

// completedParts returns the parts that a completed object consists of, after checking the rules for parts.
func (s *Server) completedParts(u *upload, in []partElement) ([]*part, *reply) {
	var parts []*part
	for i, e := range in {
		p := u.parts[e.PartNumber]
		last := i == len(in)-1
		switch {
		case i > 0 && e.PartNumber <= in[i-1].PartNumber:
			return nil, refuse(http.StatusBadRequest, "InvalidPartOrder")
		case p == nil || !sameETag(p.etag, e.ETag):
			return nil, refuse(http.StatusBadRequest, "InvalidPart")
		case s.countsParts(u) && e.PartNumber != i+1:
			return nil, refuse(http.StatusBadRequest, "InvalidPartOrder")
		case s.sumsParts(u) && !u.full && e.sums == (sums{}):
			return nil, refuse(http.StatusBadRequest, "InvalidRequest")
		case !last && p.Size() < s.opts.MinPartSize:
			return nil, refuse(http.StatusBadRequest, "EntityTooSmall")
		case !s.opts.Profile.UnequalParts && i > 0 &&
			(p.Size() > parts[0].Size() || !last && p.Size() != parts[0].Size()):
			return nil, refuse(http.StatusBadRequest, "InvalidPart")
		}
		if refusal := p.sums.compare(e.sums); refusal != nil {
			return nil, refusal
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// countsParts reports whether part numbers must be consecutive.
func (s *Server) countsParts(u *upload) bool {
	return s.strict() || s.opts.Profile.Name == "aws-directory" || s.opts.Profile.Name == "aws" && u.algorithm != ""
}

func (s *Server) abort(b *bucket, q *request) *reply {
	u, refusal := b.upload(q)
	if refusal != nil {
		return refusal
	}
	delete(b.uploads, u.id)
	return noContent()
}
