package s3sim

import (
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
	"strings"
)

// A request is a decoded request whose body has been checked against its checksums.
type request struct {
	Operation
	method    string
	query     url.Values
	header    http.Header
	body      []byte
	checksums http.Header // the checksum sent with the body, if any

	changes      int                // number of changes of the key before the request arrived
	timesEmptied int                // number of times directories above the key were emptied before
	before       map[string]*Object // contents of the keys at that time, if the response may be torn

	open *upload // the upload that was open at that time, if aborting it has no effect

	refusal *reply // response to a request that is invalid in itself, or nil
}

// operations maps the method and the subresource of a request to its operation. The subresource is empty for the
// object or the bucket itself.
var operations = map[string]struct{ object, bucket map[string]string }{
	http.MethodGet: {
		object: map[string]string{
			"": "GetObject", "uploadId": "ListParts", "tagging": "GetObjectTagging",
		},
		bucket: map[string]string{
			"list-type": "ListObjectsV2", "uploads": "ListMultipartUploads",
			"versioning": "GetBucketVersioning", "versions": "ListObjectVersions",
		},
	},
	http.MethodHead: {object: map[string]string{"": "HeadObject"}, bucket: map[string]string{"": "HeadBucket"}},
	http.MethodPut: {
		object: map[string]string{"": "PutObject", "uploadId": "UploadPart", "tagging": "PutObjectTagging"},
		bucket: map[string]string{
			"": "CreateBucket", "versioning": "PutBucketVersioning", "object-lock": "PutObjectLockConfiguration",
		},
	},
	http.MethodPost: {
		object: map[string]string{"uploads": "CreateMultipartUpload", "uploadId": "CompleteMultipartUpload"},
		bucket: map[string]string{"delete": "DeleteObjects"},
	},
	http.MethodDelete: {
		object: map[string]string{"": "DeleteObject", "uploadId": "AbortMultipartUpload"},
		bucket: map[string]string{"": "DeleteBucket"},
	},
}

// subresources returns the query parameters that select something other than the object or bucket itself. S3 has
// operations for all of them. Operations that the simulator does not support are rejected, and never mistaken for
// the plain operation.
func subresources() []string {
	return []string{
		"accelerate", "acl", "analytics", "attributes", "cors", "delete", "encryption", "intelligent-tiering",
		"inventory", "legal-hold",
		"lifecycle", "list-type", "location", "logging", "metadataConfiguration", "metadataTable", "metrics",
		"notification", "object-lock",
		"ownershipControls", "policy", "policyStatus", "publicAccessBlock", "renameObject", "replication",
		"requestPayment", "restore",
		"retention", "select", "session", "tagging", "torrent", "uploadId", "uploads", "versioning", "versions",
		"website",
	}
}

// operation returns the name of a request's operation, or "" if the simulator does not support it.
func operation(r *http.Request, query url.Values, bucket, key string) string {
	if bucket == "" {
		return ""
	}
	names := operations[r.Method].object
	if key == "" {
		names = operations[r.Method].bucket
	}
	var subresource string
	for _, candidate := range subresources() {
		if query.Has(candidate) {
			subresource = candidate
			break
		}
	}
	name := names[subresource]
	if name == "PutObject" && query.Has("partNumber") {
		return "" // a part without an upload
	}
	if r.Header.Get("X-Amz-Copy-Source") != "" {
		switch name {
		case "PutObject":
			return "CopyObject"
		case "UploadPart":
			return "UploadPartCopy"
		}
	}
	return name
}

// OperationOf returns the operation of a path-style request. The name is empty if the simulator does not support
// the operation.
func OperationOf(r *http.Request) Operation {
	o, _ := operationOf(r)
	return o
}

func operationOf(r *http.Request) (Operation, error) {
	query := r.URL.Query()
	bucket, escaped, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	key, err := url.PathUnescape(escaped)
	return Operation{
		Name: operation(r, query, bucket, key), Bucket: bucket, Key: key, Prefix: query.Get("prefix"),
		UploadID: query.Get("uploadId"),
	}, err
}

// decode reads and parses a request.
func decode(r *http.Request) *request {
	q := &request{method: r.Method, query: r.URL.Query(), header: r.Header}
	var err error
	if q.Operation, err = operationOf(r); err != nil {
		q.refusal = refuse(http.StatusBadRequest, "InvalidURI")
	}
	refusal := q.readBody(r)
	switch {
	case refusal != nil:
		q.refusal = refusal
	case len(q.Key) > maxKeyBytes:
		q.refusal = refuse(http.StatusBadRequest, "KeyTooLongError")
	case q.Bucket == "" && q.method == http.MethodPost: // sent to an STS
		q.refusal = refuse(http.StatusMethodNotAllowed, "MethodNotAllowed")
	}
	return q
}

// readBody reads the body and checks it against the announced length and checksums.
func (q *request) readBody(r *http.Request) *reply {
	body, err := readAll(r.Body, r.ContentLength)
	if err != nil {
		return refuse(http.StatusBadRequest, "IncompleteBody")
	}
	digest := q.header.Get("X-Amz-Content-Sha256")
	if strings.HasPrefix(digest, "STREAMING-") {
		return notImplemented() // aws-chunked content encoding, which clients use over HTTPS
	}
	q.body, q.checksums = body, http.Header{}
	if len(digest) == hex.EncodedLen(sha256.Size) && digest != hex.EncodeToString(sum(sha256.New(), body)) {
		return refuse(http.StatusBadRequest, "XAmzContentSHA256Mismatch")
	}
	if refusal := q.compareMD5(); refusal != nil {
		return refusal
	}
	return q.compareChecksums()
}

// compareMD5 checks the body against Content-MD5.
func (q *request) compareMD5() *reply {
	values := q.header.Values("Content-Md5")
	if len(values) == 0 {
		return nil
	}
	expected, err := base64.StdEncoding.DecodeString(values[0])
	switch {
	case err != nil || len(expected) != md5.Size:
		return refuse(http.StatusBadRequest, "InvalidDigest")
	case !bytes.Equal(expected, sum(md5.New(), q.body)):
		return refuse(http.StatusBadRequest, "BadDigest")
	}
	return nil
}

// compareChecksums checks the body against the checksum header. In CompleteMultipartUpload the checksum covers the
// object instead.
func (q *request) compareChecksums() *reply {
	if q.Name == "CompleteMultipartUpload" {
		return nil
	}
	for name, newHash := range algorithms() {
		expected := q.header.Get(checksumHeader + name)
		if expected == "" {
			continue
		}
		if expected != base64.StdEncoding.EncodeToString(sum(newHash(), q.body)) {
			return refuse(http.StatusBadRequest, "BadDigest")
		}
		q.checksums.Set(checksumHeader+name, expected)
	}
	return nil
}

// checksumHeader is the prefix of checksum headers.
const checksumHeader = "X-Amz-Checksum-"

// nvme is the reversed polynomial of CRC-64/NVME.
const nvme = 0x9a6c9329ac4bc9b5

// algorithms returns the checksum algorithms by header suffix.
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

// readAll reads exactly length bytes, or everything if length is negative.
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

// refuse returns an S3 error.
func refuse(status int, code string) *reply {
	return replyXML(status, &struct {
		XMLName   xml.Name `xml:"Error"`
		Code      string
		Message   string
		RequestID string `xml:"RequestId"`
	}{Code: code, Message: "refused by the simulator", RequestID: "s3sim"})
}

// replyXML returns a response with an XML body.
func replyXML(status int, document any) *reply {
	body, err := xml.Marshal(document)
	if err != nil {
		return &reply{status: http.StatusInternalServerError}
	}
	return &reply{
		status: status, header: http.Header{"Content-Type": {"application/xml"}},
		body: Content{[]byte(xml.Header), body},
	}
}

// Common responses.
func ok() *reply                 { return &reply{status: http.StatusOK, header: http.Header{}} }
func noContent() *reply          { return &reply{status: http.StatusNoContent, header: http.Header{}} }
func noSuchKey() *reply          { return refuse(http.StatusNotFound, "NoSuchKey") }
func malformed() *reply          { return refuse(http.StatusBadRequest, "MalformedXML") }
func notImplemented() *reply     { return refuse(http.StatusNotImplemented, "NotImplemented") }
func preconditionFailed() *reply { return refuse(http.StatusPreconditionFailed, "PreconditionFailed") }
func noUpload() *reply           { return refuse(http.StatusNotFound, "NoSuchUpload") }
func invalidArg() *reply         { return refuse(http.StatusBadRequest, "InvalidArgument") }
