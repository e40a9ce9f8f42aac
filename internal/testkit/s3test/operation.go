package s3test

import (
	"net/http"
	"net/url"
	"strings"
)

// An Operation is a request to S3, as it was sent in path style.
type Operation struct {
	Name   string // as the SDK calls it: "PutObject"
	Bucket string
	Key    string // empty for an operation on the bucket
	Prefix string // of a listing
}

// HasPrefix reports whether the key, or the prefix of a listing, begins with prefix.
func (o Operation) HasPrefix(start string) bool { return strings.HasPrefix(o.Key+o.Prefix, start) }

// operations names the operation of a request to an object or a bucket, by its method and a query parameter or a
// header. The first one that the request has decides. An entry without either matches the rest.
var operations = map[string]struct{ object, bucket []operation }{
	http.MethodGet: {
		object: []operation{
			{"ListParts", "uploadId", ""}, {"GetObjectTagging", "tagging", ""}, {"GetObjectAcl", "acl", ""},
			{"GetObjectAttributes", "attributes", ""}, {"GetObject", "", ""},
		},
		bucket: []operation{
			{"ListObjectsV2", "list-type", ""}, {"ListMultipartUploads", "uploads", ""},
			{"ListObjectVersions", "versions", ""},
			{"GetBucketLocation", "location", ""}, {"GetBucketVersioning", "versioning", ""}, {"ListObjects", "", ""},
		},
	},
	http.MethodHead: {
		object: []operation{{"HeadObject", "", ""}},
		bucket: []operation{{"HeadBucket", "", ""}},
	},
	http.MethodPut: {
		object: []operation{
			{"UploadPartCopy", "partNumber", "X-Amz-Copy-Source"}, {"UploadPart", "partNumber", ""},
			{"PutObjectTagging", "tagging", ""},
			{"PutObjectAcl", "acl", ""}, {"CopyObject", "", "X-Amz-Copy-Source"}, {"PutObject", "", ""},
		},
		bucket: []operation{{"PutBucketVersioning", "versioning", ""}, {"CreateBucket", "", ""}},
	},
	http.MethodPost: {
		object: []operation{{"CreateMultipartUpload", "uploads", ""}, {"CompleteMultipartUpload", "uploadId", ""}},
		bucket: []operation{{"DeleteObjects", "delete", ""}},
	},
	http.MethodDelete: {
		object: []operation{{"AbortMultipartUpload", "uploadId", ""}, {"DeleteObjectTagging", "tagging", ""},
			{"DeleteObject", "", ""}},
		bucket: []operation{{"DeleteBucket", "", ""}},
	},
}

type operation struct{ name, query, header string }

// operationOf recognizes a request.
func operationOf(r *http.Request) Operation {
	query := r.URL.Query()
	path := strings.TrimPrefix(r.URL.EscapedPath(), "/")
	bucket, escaped, _ := strings.Cut(path, "/")
	key, err := url.PathUnescape(escaped)
	if err != nil {
		key = escaped
	}
	o := Operation{Bucket: bucket, Key: key, Prefix: query.Get("prefix")}
	if bucket == "" {
		o.Name = "ListBuckets"
		return o
	}
	candidates := operations[r.Method].object
	if key == "" {
		candidates = operations[r.Method].bucket
	}
	for _, c := range candidates {
		if (c.query == "" || query.Has(c.query)) && (c.header == "" || r.Header.Get(c.header) != "") {
			o.Name = c.name
			return o
		}
	}
	o.Name = r.Method // nothing that S3 knows
	return o
}
