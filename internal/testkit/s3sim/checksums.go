package s3sim

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
)

// A checksum is the checksum of an object. The zero value means that the object has none.
type checksum struct {
	algorithm string // suffix of the header name, such as "Crc32c"
	value     string
	full      bool // over the whole object instead of the checksums of its parts
	untyped   bool // the server does not report the checksum type
}

// withType returns the checksum as the server stores it. If the profile has no checksums, the server reports no
// checksum type, like servers that predate them, and clients cannot know what the checksum covers.
func (s *Server) withType(c checksum) checksum {
	c.untyped = !s.opts.Profile.Checksums
	return c
}

// checksumOf computes the checksum of the whole content. It returns no checksum if algorithm is empty.
func checksumOf(algorithm string, c Content) checksum {
	if algorithm == "" {
		return checksum{}
	}
	return checksum{
		algorithm: algorithm, value: base64.StdEncoding.EncodeToString(sum(algorithms()[algorithm](), c...)),
		full: true,
	}
}

// compositeOf computes the checksum over the checksums of the parts.
func compositeOf(algorithm string, parts []*part) checksum {
	sums := make([][]byte, len(parts))
	for i, p := range parts {
		sums[i], _ = base64.StdEncoding.DecodeString(*p.sums.of(algorithm))
	}
	value := base64.StdEncoding.EncodeToString(sum(algorithms()[algorithm](), sums...))
	return checksum{algorithm: algorithm, value: value + "-" + strconv.Itoa(len(parts))}
}

// kind returns the checksum type as named by S3.
func (c checksum) kind() string {
	switch {
	case c.algorithm == "" || c.untyped:
		return ""
	case c.full:
		return fullObject
	}
	return composite
}

// Checksum types.
const fullObject, composite = "FULL_OBJECT", "COMPOSITE"

// describe sets the checksum headers.
func (c checksum) describe(h http.Header) {
	if c.algorithm != "" {
		h.Set(checksumHeader+c.algorithm, c.value)
	}
	if kind := c.kind(); kind != "" {
		h.Set(checksumHeader+"Type", kind)
	}
}

// element returns the checksum in XML form.
func (c checksum) element() typedSums {
	out := typedSums{ChecksumType: c.kind()}
	if c.algorithm != "" {
		*out.of(c.algorithm) = c.value
	}
	return out
}

// sums holds checksums in XML form.
type sums struct {
	ChecksumCRC32     string `xml:",omitempty"`
	ChecksumCRC32C    string `xml:",omitempty"`
	ChecksumCRC64NVME string `xml:",omitempty"`
	ChecksumSHA1      string `xml:",omitempty"`
	ChecksumSHA256    string `xml:",omitempty"`
}

// typedSums holds the checksums of an object in XML form.
type typedSums struct {
	sums
	ChecksumType string `xml:",omitempty"`
}

// of returns the field for an algorithm.
func (s *sums) of(algorithm string) *string {
	return map[string]*string{
		"Crc32": &s.ChecksumCRC32, "Crc32c": &s.ChecksumCRC32C, "Crc64nvme": &s.ChecksumCRC64NVME,
		"Sha1": &s.ChecksumSHA1, "Sha256": &s.ChecksumSHA256,
	}[algorithm]
}

// compare checks the checksums that CompleteMultipartUpload names for a part against the stored ones.
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

// sentChecksum returns the checksum sent with a body, or the checksum that the server adds.
func (s *Server) sentChecksum(q *request) checksum {
	for name := range algorithms() {
		if value := q.checksums.Get(checksumHeader + name); value != "" {
			return s.withType(checksum{algorithm: name, value: value, full: true})
		}
	}
	return checksumOf(s.defaultAlgorithm(), Content{q.body})
}

// defaultAlgorithm returns the algorithm for objects stored without a checksum. AWS adds a checksum to every
// object.
func (s *Server) defaultAlgorithm() string {
	if s.aws() {
		return "Crc64nvme"
	}
	return ""
}

// aws reports whether the profile is one of AWS.
func (s *Server) aws() bool { return strings.HasPrefix(s.opts.Profile.Name, "aws") }

// algorithmNamed returns the algorithm that a request names, or "".
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
