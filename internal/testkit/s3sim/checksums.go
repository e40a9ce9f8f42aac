package s3sim

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
)

// A checksum is that of an object. The zero value is none.
type checksum struct {
	algorithm string // the end of the name of its header, such as "Crc32c"
	value     string
	full      bool // of the whole object, and not of the checksums of its parts
	untyped   bool // the server does not tell which of both
}

// kept is the checksum of an object as the server keeps it. Where the profile has no checksums it tells no types, as
// servers do that are older than types. A client then does not know what the checksum is of.
func (s *Server) kept(c checksum) checksum {
	c.untyped = !s.opts.Profile.Checksums
	return c
}

// checksumOf computes the checksum of a whole content. It is none where the algorithm is empty.
func checksumOf(algorithm string, c Content) checksum {
	if algorithm == "" {
		return checksum{}
	}
	return checksum{
		algorithm: algorithm, value: base64.StdEncoding.EncodeToString(sum(algorithms()[algorithm](), c...)),
		full: true,
	}
}

// compositeOf computes the checksum of the checksums of parts.
func compositeOf(algorithm string, parts []*part) checksum {
	sums := make([][]byte, len(parts))
	for i, p := range parts {
		sums[i], _ = base64.StdEncoding.DecodeString(*p.sums.of(algorithm))
	}
	value := base64.StdEncoding.EncodeToString(sum(algorithms()[algorithm](), sums...))
	return checksum{algorithm: algorithm, value: value + "-" + strconv.Itoa(len(parts))}
}

// kind is the type of a checksum as S3 calls it.
func (c checksum) kind() string {
	switch {
	case c.algorithm == "" || c.untyped:
		return ""
	case c.full:
		return fullObject
	}
	return composite
}

// The types of checksums.
const fullObject, composite = "FULL_OBJECT", "COMPOSITE"

// describe sets the headers of a checksum.
func (c checksum) describe(h http.Header) {
	if c.algorithm != "" {
		h.Set(checksumHeader+c.algorithm, c.value)
	}
	if kind := c.kind(); kind != "" {
		h.Set(checksumHeader+"Type", kind)
	}
}

// element is a checksum in XML.
func (c checksum) element() typedSums {
	out := typedSums{ChecksumType: c.kind()}
	if c.algorithm != "" {
		*out.of(c.algorithm) = c.value
	}
	return out
}

// sums are checksums in XML.
type sums struct {
	ChecksumCRC32     string `xml:",omitempty"`
	ChecksumCRC32C    string `xml:",omitempty"`
	ChecksumCRC64NVME string `xml:",omitempty"`
	ChecksumSHA1      string `xml:",omitempty"`
	ChecksumSHA256    string `xml:",omitempty"`
}

// typedSums are the checksums of an object in XML.
type typedSums struct {
	sums
	ChecksumType string `xml:",omitempty"`
}

// of is the field of an algorithm.
func (s *sums) of(algorithm string) *string {
	return map[string]*string{
		"Crc32": &s.ChecksumCRC32, "Crc32c": &s.ChecksumCRC32C, "Crc64nvme": &s.ChecksumCRC64NVME,
		"Sha1": &s.ChecksumSHA1, "Sha256": &s.ChecksumSHA256,
	}[algorithm]
}

// compare compares the checksum of a part that the request to complete the upload names with the one that is stored.
func (s *sums) compare(named sums) *reply {
	for name := range algorithms() {
		if value := *named.of(name); value != "" && value != *s.of(name) {
			return refuse(http.StatusBadRequest, "InvalidPart")
		}
	}
	return nil
}

// sumsFrom reads checksums from headers.
func sumsFrom(h http.Header) (out sums) {
	for name := range algorithms() {
		*out.of(name) = h.Get(checksumHeader + name)
	}
	return out
}

// received is the checksum that came with a body, or the one that the server adds.
func (s *Server) received(q *request) checksum {
	for name := range algorithms() {
		if value := q.checksums.Get(checksumHeader + name); value != "" {
			return s.kept(checksum{algorithm: name, value: value, full: true})
		}
	}
	return checksumOf(s.defaultAlgorithm(), Content{q.body})
}

// defaultAlgorithm is that of the checksum of an object that came without one. AWS has one of every object.
func (s *Server) defaultAlgorithm() string {
	if s.aws() {
		return "Crc64nvme"
	}
	return ""
}

// aws reports whether the server has the rules of AWS.
func (s *Server) aws() bool { return strings.HasPrefix(s.opts.Profile.Name, "aws") }

// algorithmNamed returns the algorithm that a request names, empty for none.
func algorithmNamed(h http.Header) (algorithm string, refusal *reply) {
	name := h.Get("X-Amz-Checksum-Algorithm")
	if name == "" {
		return "", nil
	}
	algorithm = strings.ToUpper(name[:1]) + strings.ToLower(name[1:])
	if algorithms()[algorithm] == nil {
		return "", notImplemented()
	}
	return algorithm, nil
}
