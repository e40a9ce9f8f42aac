package s3sim

import (
	"bufio"
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// A request is a decoded request, whose bytes have the right checksums.
type request struct {
	Operation
	method    string
	query     url.Values
	header    http.Header
	body      []byte
	checksums http.Header // those that came with the body
	refusal   *reply      // why it is refused whatever it asks for, nil for no reason
}

// operations names the operation of a request to an object or to a bucket, by its method and a query parameter or a header. The first
// one that the request has decides.
var operations = map[string]struct{ object, bucket [][3]string }{
	http.MethodGet: {
		object: [][3]string{{"ListParts", "uploadId"}, {"GetObjectTagging", "tagging"}, {"GetObject"}},
		bucket: [][3]string{
			{"ListObjectsV2", "list-type"}, {"ListMultipartUploads", "uploads"}, {"GetBucketVersioning", "versioning"},
			{"GetBucketLocation", "location"}, {"ListObjectVersions", "versions"}, {"ListObjects"},
		},
	},
	http.MethodHead: {object: [][3]string{{"HeadObject"}}, bucket: [][3]string{{"HeadBucket"}}},
	http.MethodPut: {
		object: [][3]string{
			{"UploadPartCopy", "partNumber", "X-Amz-Copy-Source"}, {"UploadPart", "partNumber"}, {"PutObjectTagging", "tagging"},
			{"CopyObject", "", "X-Amz-Copy-Source"}, {"PutObject"},
		},
		bucket: [][3]string{{"PutBucketVersioning", "versioning"}, {"CreateBucket"}},
	},
	http.MethodPost: {
		object: [][3]string{{"CreateMultipartUpload", "uploads"}, {"CompleteMultipartUpload", "uploadId"}},
		bucket: [][3]string{{"DeleteObjects", "delete"}},
	},
	http.MethodDelete: {
		object: [][3]string{{"AbortMultipartUpload", "uploadId"}, {"DeleteObject"}},
		bucket: [][3]string{{"DeleteBucket"}},
	},
}

// decode reads a request to its end.
func decode(r *http.Request) *request {
	q := &request{method: r.Method, query: r.URL.Query(), header: r.Header}
	bucket, escaped, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	key, err := url.PathUnescape(escaped)
	if err != nil {
		q.refusal = refuse(http.StatusBadRequest, "InvalidURI")
	}
	q.Operation = Operation{
		Name: "ListBuckets", Bucket: bucket, Key: key, Prefix: q.query.Get("prefix"), UploadID: q.query.Get("uploadId"),
	}
	candidates := operations[r.Method].object
	if key == "" {
		candidates = operations[r.Method].bucket
	}
	for _, c := range candidates {
		if bucket != "" && (c[1] == "" || q.query.Has(c[1])) && (c[2] == "" || r.Header.Get(c[2]) != "") {
			q.Name = c[0]
			break
		}
	}
	refusal := q.readBody(r)
	switch {
	case refusal != nil:
		q.refusal = refusal
	case len(key) > maxKeyBytes:
		q.refusal = refuse(http.StatusBadRequest, "KeyTooLongError")
	}
	return q
}

// readBody reads the body, and compares it with the length and the checksums that the request announces.
func (q *request) readBody(r *http.Request) *reply {
	body, err := readAll(r.Body, r.ContentLength)
	if err != nil {
		return refuse(http.StatusBadRequest, "IncompleteBody")
	}
	sums := q.header
	digest := q.header.Get("X-Amz-Content-Sha256")
	if strings.HasPrefix(digest, "STREAMING-") {
		var trailer http.Header
		if body, trailer, err = unchunk(body); err != nil {
			return refuse(http.StatusBadRequest, "IncompleteBody")
		}
		if q.header.Get("X-Amz-Decoded-Content-Length") != strconv.Itoa(len(body)) {
			return refuse(http.StatusBadRequest, "IncompleteBody")
		}
		if announced := q.header.Get("X-Amz-Trailer"); announced != "" {
			if trailer.Get(announced) == "" {
				return refuse(http.StatusBadRequest, "MalformedTrailerError")
			}
			sums = trailer
		}
	}
	q.body, q.checksums = body, http.Header{}
	if len(digest) == hex.EncodedLen(sha256.Size) && digest != hex.EncodeToString(sum(sha256.New(), body)) {
		return refuse(http.StatusBadRequest, "XAmzContentSHA256Mismatch")
	}
	if expected := q.header.Get("Content-Md5"); expected != "" && expected != base64.StdEncoding.EncodeToString(sum(md5.New(), body)) {
		return refuse(http.StatusBadRequest, "BadDigest")
	}
	for name, newHash := range algorithms() {
		expected := sums.Get(checksumHeader + name)
		if expected == "" {
			continue
		}
		if expected != base64.StdEncoding.EncodeToString(sum(newHash(), body)) {
			return refuse(http.StatusBadRequest, "BadDigest")
		}
		q.checksums.Set(checksumHeader+name, expected)
	}
	return nil
}

// checksumHeader is the beginning of the name of each header that holds a checksum.
const checksumHeader = "X-Amz-Checksum-"

// nvme is the polynomial of CRC-64/NVME, its bits reversed.
const nvme = 0x9a6c9329ac4bc9b5

// algorithms returns the algorithms of checksums, by their names in a header.
func algorithms() map[string]func() hash.Hash {
	return map[string]func() hash.Hash{
		"Crc32":     func() hash.Hash { return crc32.NewIEEE() },
		"Crc32c":    func() hash.Hash { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) },
		"Crc64nvme": func() hash.Hash { return crc64.New(crc64.MakeTable(nvme)) },
		"Sha1":      sha1.New,
		"Sha256":    sha256.New,
	}
}

func sum(h hash.Hash, pieces ...[]byte) []byte {
	for _, piece := range pieces {
		h.Write(piece)
	}
	return h.Sum(nil)
}

// readAll reads length bytes, or all where the length is unknown. Fewer or more bytes are an error.
func readAll(r io.Reader, length int64) ([]byte, error) {
	if r == nil {
		r = http.NoBody
	}
	if length < 0 {
		return io.ReadAll(r)
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, err
	}
	if n, err := io.Copy(io.Discard, r); n > 0 || err != nil {
		return nil, errors.Join(errors.New("more bytes than announced"), err)
	}
	return body, nil
}

// unchunk decodes the content encoding aws-chunked: https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming-trailers.html
func unchunk(encoded []byte) (body []byte, trailer http.Header, err error) {
	in := bufio.NewReader(bytes.NewReader(encoded))
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil, nil, err
		}
		digits, _, _ := strings.Cut(strings.TrimSpace(line), ";")
		size, err := strconv.ParseInt(digits, 16, 64)
		if err != nil {
			return nil, nil, err
		}
		if size == 0 {
			break
		}
		chunk := make([]byte, size+int64(len("\r\n")))
		if _, err := io.ReadFull(in, chunk); err != nil {
			return nil, nil, err
		}
		body = append(body, chunk[:size]...)
	}
	trailer = http.Header{}
	for {
		line, err := in.ReadString('\n')
		if name, value, found := strings.Cut(strings.TrimSpace(line), ":"); found {
			trailer.Set(name, value)
		}
		if err != nil {
			return body, trailer, nil
		}
	}
}

// refuse is an error of S3.
func refuse(status int, code string) *reply {
	return answerXML(status, &struct {
		XMLName   xml.Name `xml:"Error"`
		Code      string
		Message   string
		RequestID string `xml:"RequestId"`
	}{Code: code, Message: "refused by the simulator", RequestID: "s3sim"})
}

// answerXML is an answer with a body.
func answerXML(status int, document any) *reply {
	body, err := xml.Marshal(document)
	if err != nil {
		return &reply{status: http.StatusInternalServerError}
	}
	return &reply{
		status: status, header: http.Header{"Content-Type": {"application/xml"}}, body: Content{[]byte(xml.Header), body},
	}
}

// The answers of which there are many.
func ok() *reply                 { return &reply{status: http.StatusOK, header: http.Header{}} }
func noContent() *reply          { return &reply{status: http.StatusNoContent, header: http.Header{}} }
func noSuchKey() *reply          { return refuse(http.StatusNotFound, "NoSuchKey") }
func malformed() *reply          { return refuse(http.StatusBadRequest, "MalformedXML") }
func notImplemented() *reply     { return refuse(http.StatusNotImplemented, "NotImplemented") }
func preconditionFailed() *reply { return refuse(http.StatusPreconditionFailed, "PreconditionFailed") }
func noUpload() *reply           { return refuse(http.StatusNotFound, "NoSuchUpload") }
func invalidArg() *reply         { return refuse(http.StatusBadRequest, "InvalidArgument") }
