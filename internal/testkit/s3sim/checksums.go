package s3sim

import (
	"encoding/base64"
	"fmt"
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
	ChecksumSHA512    string `xml:",omitempty"`
	ChecksumMD5       string `xml:",omitempty"`
	ChecksumXXHASH64  string `xml:",omitempty"`
	ChecksumXXHASH3   string `xml:",omitempty"`
	ChecksumXXHASH128 string `xml:",omitempty"`
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
		"Sha1":   &s.ChecksumSHA1,
		"Sha256": &s.ChecksumSHA256, "Sha512": &s.ChecksumSHA512, "Md5": &s.ChecksumMD5,
		"Xxhash64": &s.ChecksumXXHASH64,
		"Xxhash3":  &s.ChecksumXXHASH3, "Xxhash128": &s.ChecksumXXHASH128,
	}[algorithm]
}

// compare compares the checksum of a part that the request to complete the upload names with the one that is stored.
func (s *sums) compare(number int, named sums) *reply {
	var found string
	for name := range algorithms() {
		value := *named.of(name)
		switch {
		case value == "":
			continue
		case found != "", !wellFormed(name, value):
			return invalidArg("Invalid Base64 or multiple checksums present in request")
		}
		found = name
	}
	switch {
	case found == "" || *named.of(found) == *s.of(found):
		return nil
	case *s.of(found) == "":
		return refuse(http.StatusBadRequest, "BadDigest",
			fmt.Sprintf(
				"The %s you specified for part %d did not match what we received.", strings.ToLower(found), number))
	}
	return refuse(http.StatusBadRequest, "InvalidPart")
}

// algorithm is that of one of the checksums, empty where there is none.
func (s *sums) algorithm() string {
	for name := range algorithms() {
		if *s.of(name) != "" {
			return name
		}
	}
	return ""
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

// algorithmNamed returns the algorithm that a header names, empty for none, and false for one that is unknown.
func algorithmNamed(name string) (algorithm string, known bool) {
	if name == "" {
		return "", true
	}
	algorithm = strings.ToUpper(name[:1]) + strings.ToLower(name[1:])
	return algorithm, algorithms()[algorithm] != nil
}

// unknownAlgorithm is what S3 says of an algorithm that it lacks.
const unknownAlgorithm = "Checksum algorithm provided is unsupported. Please try again with any of the valid types: " +
	"[CRC32, CRC32C, CRC64NVME, MD5, SHA1, SHA256, SHA512, XXHASH128, XXHASH3, XXHASH64]"

// checksumRules reads the algorithm and the type of the checksums of a multipart upload.
func checksumRules(h http.Header) (algorithm string, full bool, refusal *reply) {
	algorithm, known := algorithmNamed(h.Get("X-Amz-Checksum-Algorithm"))
	kind := strings.ToUpper(h.Get("X-Amz-Checksum-Type"))
	switch {
	case !known:
		return "", false, refuse(http.StatusBadRequest, "InvalidRequest", unknownAlgorithm)
	case kind != "" && kind != fullObject && kind != composite:
		return "", false, refuse(
			http.StatusBadRequest, "InvalidRequest", "Value for x-amz-checksum-type header is invalid.")
	case kind != "" && algorithm == "":
		return "", false, refuse(http.StatusBadRequest, "InvalidRequest",
			"The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header.")
	case kind == fullObject && !strings.HasPrefix(algorithm, "Crc"), kind == composite && algorithm == "Crc64nvme":
		return "", false, refuse(http.StatusBadRequest, "InvalidRequest",
			"The "+kind+" checksum type cannot be used with the "+strings.ToLower(algorithm)+" checksum algorithm.")
	}
	return algorithm, kind == fullObject || algorithm == "Crc64nvme", nil
}
