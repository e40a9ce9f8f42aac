package s3sim

import (
	"crypto/md5"
	"encoding/base64"
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

// An upload is a multipart upload that is open.
type upload struct {
	id, key   string
	begun     time.Time
	header    http.Header
	tags      string
	algorithm string // of the checksum of each part, such as "Crc32c"; empty for none
	full      bool   // the checksum of the object is of all of it, not of those of the parts
	parts     map[int]*part
}

type part struct {
	Content
	etag, checksum string
	modified       time.Time
}

func (s *Server) createUpload(b *bucket, q *request, e *Event) *reply {
	if tooMuch(q.header) {
		return refuse(http.StatusBadRequest, "MetadataTooLarge")
	}
	u := &upload{
		id: "upload-" + s.next(), key: q.Key, begun: now(), header: stored(q.header), tags: q.header.Get("X-Amz-Tagging"),
		parts: map[int]*part{}, full: q.header.Get("X-Amz-Checksum-Type") == "FULL_OBJECT",
	}
	if algorithm := q.header.Get("X-Amz-Checksum-Algorithm"); algorithm != "" {
		u.algorithm = algorithm[:1] + strings.ToLower(algorithm[1:])
		if algorithms()[u.algorithm] == nil {
			return invalidArg()
		}
	}
	b.uploads[u.id] = u
	e.UploadID = u.id
	answer := answerXML(http.StatusOK, &struct {
		XMLName               xml.Name `xml:"InitiateMultipartUploadResult"`
		Bucket, Key, UploadId string
	}{Bucket: q.Bucket, Key: q.Key, UploadId: u.id})
	if u.algorithm != "" {
		answer.header.Set("X-Amz-Checksum-Algorithm", strings.ToUpper(u.algorithm))
	}
	return answer
}

// upload finds the upload that a request names.
func (b *bucket) upload(q *request) (*upload, *reply) {
	u := b.uploads[q.UploadID]
	if u == nil || u.key != q.Key {
		return nil, noUpload()
	}
	return u, nil
}

// number returns the part number of a request.
func (q *request) number() (int, bool) {
	n, err := strconv.Atoi(q.query.Get("partNumber"))
	return n, err == nil && n >= 1 && n <= maxParts
}

func (s *Server) uploadPart(b *bucket, q *request) *reply {
	u, refusal := b.upload(q)
	n, valid := q.number()
	switch {
	case refusal != nil:
		return refusal
	case !valid:
		return invalidArg()
	}
	p := &part{Content: Content{q.body}, modified: now(), checksum: q.checksums.Get(checksumHeader + u.algorithm)}
	if s.sumsParts(u) && p.checksum == "" {
		return refuse(http.StatusBadRequest, "InvalidRequest") // the checksum is not of the type that the upload has
	}
	p.etag = s.etag(u.header, p.Content)
	u.parts[n] = p
	answer := ok()
	answer.header.Set("ETag", p.etag)
	copyHeader(answer.header, q.checksums)
	return answer
}

// sumsParts reports whether each part must have a checksum, and CompleteMultipartUpload must name it.
func (s *Server) sumsParts(u *upload) bool {
	return u.algorithm != "" && (s.strict() || strings.HasPrefix(s.opts.Profile.Name, "aws"))
}

// strict reports whether the profile is that of an unknown server, which enforces every rule.
func (s *Server) strict() bool { return s.opts.Profile.Name == "" || s.opts.Profile.Name == "strict" }

func (s *Server) uploadPartCopy(b *bucket, q *request, e *Event) *reply {
	if !s.opts.Profile.PartCopy {
		return notImplemented()
	}
	u, refusal := b.upload(q)
	n, valid := q.number()
	switch {
	case refusal != nil:
		return refusal
	case !valid:
		return invalidArg()
	}
	source, refusal := s.source(q)
	if refusal != nil {
		return refusal
	}
	from, to := int64(0), source.Content.Size()
	if value := q.header.Get("X-Amz-Copy-Source-Range"); value != "" {
		var partial bool
		whole := to
		if from, to, partial, valid = byteRange(value, to); !valid || !partial || !strings.HasSuffix(value, fmt.Sprintf("-%d", to-1)) || to > whole {
			return refuse(http.StatusBadRequest, "InvalidArgument")
		}
	}
	e.Source = source
	p := &part{Content: source.Content.slice(from, to), modified: now()}
	p.etag = s.etag(u.header, p.Content)
	result := &copyResult{XMLName: xml.Name{Local: "CopyPartResult"}, ETag: p.etag, LastModified: stamp(p.modified)}
	if u.algorithm != "" {
		p.checksum = base64.StdEncoding.EncodeToString(sum(algorithms()[u.algorithm](), p.Content...))
		if u.algorithm == "Crc32c" {
			result.ChecksumCRC32C = p.checksum
		}
	}
	u.parts[n] = p
	return answerXML(http.StatusOK, result)
}

// A partElement is a part in XML.
type partElement struct {
	PartNumber        int
	ETag              string
	LastModified      string `xml:",omitempty"`
	Size              int64  `xml:",omitempty"`
	ChecksumCRC32     string `xml:",omitempty"`
	ChecksumCRC32C    string `xml:",omitempty"`
	ChecksumCRC64NVME string `xml:",omitempty"`
	ChecksumSHA1      string `xml:",omitempty"`
	ChecksumSHA256    string `xml:",omitempty"`
}

// checksum is the field of an algorithm.
func (e *partElement) checksum(algorithm string) *string {
	return map[string]*string{
		"Crc32": &e.ChecksumCRC32, "Crc32c": &e.ChecksumCRC32C, "Crc64nvme": &e.ChecksumCRC64NVME, "Sha1": &e.ChecksumSHA1,
		"Sha256": &e.ChecksumSHA256,
	}[algorithm]
}

func (s *Server) listParts(b *bucket, q *request) *reply {
	u, refusal := b.upload(q)
	if refusal != nil {
		return refusal
	}
	out := struct {
		XMLName                     xml.Name `xml:"ListPartsResult"`
		Bucket, Key, UploadId       string
		NextPartNumberMarker        int `xml:",omitempty"`
		IsTruncated                 bool
		ChecksumAlgorithm, MaxParts string        `xml:",omitempty"`
		Parts                       []partElement `xml:"Part"`
	}{Bucket: q.Bucket, Key: q.Key, UploadId: u.id, ChecksumAlgorithm: strings.ToUpper(u.algorithm)}
	after, _ := strconv.Atoi(q.query.Get("part-number-marker"))
	for _, n := range slices.Sorted(maps.Keys(u.parts)) {
		switch {
		case n <= after:
			continue
		case len(out.Parts) == pageSize(q, "max-parts"):
			out.IsTruncated = true
		default:
			p := u.parts[n]
			e := partElement{PartNumber: n, ETag: p.etag, LastModified: stamp(p.modified), Size: p.Size()}
			if u.algorithm != "" {
				*e.checksum(u.algorithm) = p.checksum
			}
			out.Parts = append(out.Parts, e)
			out.NextPartNumberMarker = n
		}
	}
	return answerXML(http.StatusOK, &out)
}

func (s *Server) complete(b *bucket, q *request, e *Event) *reply {
	var in struct {
		Parts []partElement `xml:"Part"`
	}
	u, refusal := b.upload(q)
	switch {
	case refusal != nil:
		return refusal
	case xml.Unmarshal(q.body, &in) != nil || len(in.Parts) == 0:
		return malformed()
	}
	parts, refusal := s.completedParts(u, in.Parts)
	if refusal == nil {
		refusal = s.precondition(q, e.Old, s.opts.Profile.ConditionalComplete)
	}
	if refusal != nil {
		return refusal
	}
	o := &Object{Key: u.key, Modified: u.begun, header: u.header, tags: u.tags} // S3 dates it from the beginning of the upload
	var digests, sums [][]byte
	for _, p := range parts {
		o.Content = append(o.Content, p.Content...)
		digest, _ := hex.DecodeString(strings.Trim(p.etag, `"`))
		checksum, _ := base64.StdEncoding.DecodeString(p.checksum)
		digests, sums = append(digests, digest), append(sums, checksum)
	}
	o.ETag = fmt.Sprintf(`"opaque-%s-%d"`, s.next(), len(parts))
	if s.md5ETags(u.header) {
		o.ETag = fmt.Sprintf(`"%s-%d"`, hex.EncodeToString(sum(md5.New(), digests...)), len(parts))
	}
	if u.algorithm != "" {
		newHash := algorithms()[u.algorithm]
		value := base64.StdEncoding.EncodeToString(sum(newHash(), sums...)) + "-" + strconv.Itoa(len(parts))
		if u.full {
			value = base64.StdEncoding.EncodeToString(sum(newHash(), o.Content...))
		}
		o.checksums = http.Header{}
		o.checksums.Set(checksumHeader+u.algorithm, value)
	}
	delete(b.uploads, u.id)
	s.store(b, o)
	e.New = o
	answer := answerXML(http.StatusOK, &struct {
		XMLName           xml.Name `xml:"CompleteMultipartUploadResult"`
		Bucket, Key, ETag string
	}{Bucket: q.Bucket, Key: q.Key, ETag: o.ETag})
	o.describe(answer.header)
	answer.header.Del("ETag")
	return answer
}

// completedParts finds the parts of a completed object, and enforces the rules for them.
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
		case s.sumsParts(u) && !u.full && *e.checksum(u.algorithm) == "":
			return nil, refuse(http.StatusBadRequest, "InvalidRequest")
		case u.algorithm != "" && *e.checksum(u.algorithm) != "" && *e.checksum(u.algorithm) != p.checksum:
			return nil, refuse(http.StatusBadRequest, "InvalidPart")
		case !last && p.Size() < s.opts.MinPartSize:
			return nil, refuse(http.StatusBadRequest, "EntityTooSmall")
		case !s.opts.Profile.UnequalParts && i > 0 && (p.Size() > parts[0].Size() || !last && p.Size() != parts[0].Size()):
			return nil, refuse(http.StatusBadRequest, "InvalidPart")
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// countsParts reports whether the numbers of parts must have no gaps.
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
