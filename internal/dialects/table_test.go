package dialects_test

import (
	"bytes"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

type faults = []s3test.Fault

// Steps that fail together because they make the same requests.
const (
	gets         = "RETR-small RETR-empty RETR-large RETR-name REST-RETR HASH XMD5 APPE REST-STOR STOR-replace STOR-resumed RNTO RNTO-large SITE-COPY RNTO-directory"
	getsOfBytes  = "RETR-small RETR-large RETR-name REST-RETR HASH XMD5 APPE REST-STOR STOR-replace STOR-resumed RNTO RNTO-large SITE-COPY RNTO-directory"
	puts         = "MKD STOR-small STOR-empty STOR-medium STOR-name STOR-interrupted MKD-deep RMD"
	putsAndParts = "MKD STOR-small STOR-empty STOR-medium STOR-large STOR-name STOR-interrupted MKD-deep RMD"
	uploads      = "STOR-large STOR-interrupted"
	completions  = "STOR-large STOR-resumed"
	copies       = "MFMT RNTO RNTO-large SITE-COPY RNTO-directory"
	ranges       = "REST-RETR STOR-resumed RNTO-large"
	// wholes are also read in parallel ranges if S3 is slow.
	wholes      = "RETR-large XMD5"
	deletes     = "RNTO RNTO-large RNTO-directory DELE RMD"
	listings    = "LIST-empty MKD MLSD LIST NLST REST-STOR STOR-interrupted RNTO RNTO-large SITE-COPY MKD-deep DELE RMD MLSD-after"
	allListings = "LIST-empty MKD missing MLSD LIST NLST REST-STOR STOR-interrupted RNTO RNTO-large SITE-COPY MKD-deep DELE RMD-full RMD MLSD-after"
)

// dialects returns the table. To add a report, add a row.
func dialects() []dialect {
	return []dialect{
		{name: "none", source: "the S3 server without a proxy", real: true},

		// Requests that a server refuses.
		{name: "no-checksum-headers", source: "vatesfr/xen-orchestra#8358, diced/zipline#746 (Backblaze B2)",
			real: true,
			faults: faults{refuseHeaders(400, "InvalidArgument", "Unsupported header '%s' received for this API call.",
				"X-Amz-Checksum-Mode", "X-Amz-Sdk-Checksum-Algorithm", "X-Amz-Checksum-Algorithm",
				"X-Amz-Checksum-Crc32",
				"X-Amz-Checksum-Crc32c", "X-Amz-Checksum-Type", "X-Amz-Trailer")},
			fails: putsAndParts, log: "Unsupported header 'x-amz-", strict: works()},
		{name: "no-content-md5",
			source: "https://www.backblaze.com/docs/cloud-storage-s3-compatible-api (other headers are refused)",
			real:   true,
			faults: faults{refuseHeaders(400, "InvalidArgument", "Unsupported header '%s'", "Content-Md5")},
			strict: &outcome{putsAndParts, "Unsupported header 'content-md5'"}},
		{name: "no-tagging-header", source: "velero-io/velero-plugin-for-aws#303 (Cloudflare R2)", real: true,
			faults: faults{refuseHeaders(501, "NotImplemented", "Header '%s' not implemented", "X-Amz-Tagging",
				"X-Amz-Tagging-Directive")}},
		{name: "no-expect", source: "docker-archive/docker-registry#460", real: true,
			faults: faults{refuseHeaders(417, "ExpectationFailed", "%s", "Expect")}},
		{name: "no-if-match", source: "ceph/s3-tests#218", real: true,
			faults: faults{refuseHeaders(501, "NotImplemented", "%s", "If-Match", "If-None-Match",
				"X-Amz-Copy-Source-If-Match")},
			fails: "MKD MFMT APPE REST-STOR STOR-interrupted RNTO RNTO-large SITE-COPY MKD-deep DELE RMD",
			may:   wholes, log: "NotImplemented",
			strict: &outcome{"MFMT APPE REST-STOR STOR-resumed RNTO RNTO-large SITE-COPY RNTO-directory",
				"NotImplemented: x-amz-copy-source-if-match"}},
		{name: "no-copy-directives", source: "storj/edge#44, apache/ozone#6490", real: true,
			faults: faults{refuseHeaders(501, "NotImplemented", "%s", "X-Amz-Metadata-Directive")},
			fails:  copies, log: "NotImplemented: x-amz-metadata-directive"},
		{name: "no-trailers", source: "trinodb/aws-proxy#199", real: true,
			faults: faults{refuseHeaders(400, "NotImplemented", "%s", "X-Amz-Trailer",
				"X-Amz-Decoded-Content-Length")}},

		// Operations that a server does not support.
		{name: "no-copy", source: "rclone/rclone#5595 (Storj)", real: true,
			faults: faults{refuse("CopyObject", 501, "NotImplemented", "no")},
			fails:  copies, log: "CopyObject: NotImplemented"},
		{name: "no-part-copy", source: "storj/roadmap#40, rclone/rclone#8139 (Storj)", real: true,
			faults: faults{refuse("UploadPartCopy", 501, "NotImplemented", "no")}},
		{name: "no-batch-delete", source: "minio/mc#4778, tus/tusd#481 (Google)", real: true,
			faults: faults{refuse("DeleteObjects", 501, "NotImplemented", "no")}},
		{name: "no-list-v2", source: "apache/opendal#5974, scality/cloudserver#1191", real: true,
			faults: faults{refuse("ListObjectsV2", 501, "NotImplemented", "no")},
			fails:  listings, log: "ListObjectsV2: NotImplemented"},
		{name: "no-multipart", source: "filecoin-project/motion#49, jserver/mock-s3#2", real: true,
			faults: faults{refuse("CreateMultipartUpload", 501, "NotImplemented", "no")},
			fails:  uploads, log: "CreateMultipartUpload: NotImplemented"},
		{name: "no-list-parts", source: "wpnpeiris/nats-s3#70",
			faults: faults{refuse("ListParts", 501, "NotImplemented", "no")},
			fails:  "STOR-interrupted", log: "ListParts: NotImplemented"},
		{name: "no-head-bucket", source: "curtis0x/fake-s3#206", real: true,
			faults: faults{answer("HeadBucket", 404, "", "")}},
		{name: "v2-answered-as-v1", source: "scality/cloudserver#1191", real: true,
			faults: faults{without("list-type", "continuation-token", "start-after")},
			fails:  listings, log: "ListObjectsV2: NotImplemented", strict: works()},

		// HTML pages of proxies.
		{name: "html-413", source: "minio/minio#7893", real: true, faults: faults{page("UploadPart", 413, "nginx")},
			fails: uploads, log: "HTTP 413"},
		{name: "html-413-put", source: "minio/minio#7893", faults: faults{page("PutObject", 413, "nginx")},
			fails: puts, log: "HTTP 413"},
		{name: "html-403", source: "s3tools/s3cmd#331", faults: faults{page("GetObject", 403, "cloudflare")},
			fails: gets, log: "HTTP 403"},
		{name: "html-404", source: "s3tools/s3cmd#331 (403 and 502)",
			faults: faults{page("ListObjectsV2", 404, "nginx")},
			fails:  listings, log: "HTTP 404"},
		{name: "html-502", source: "s3tools/s3cmd#331",
			faults: faults{page("GetObject", 502, "nginx/1.18.0")},
			fails:  gets, log: "HTTP 502"},
		{name: "html-502-twice", source: "s3tools/s3cmd#331",
			faults: faults{sometimes(3, 2, page("", 502, "nginx/1.18.0"))}},
		{name: "html-200-list", source: "s3tools/s3cmd#730", faults: faults{page("ListObjectsV2", 200, "Apache")},
			fails: allListings, log: "HTTP 200 from "},
		{name: "html-200-get", source: "s3tools/s3cmd#730", faults: faults{page("GetObject", 200, "captive")},
			fails: gets, log: "neither an ETag nor a request ID"},
		{name: "html-200-put", source: "s3tools/s3cmd#730", faults: faults{page("PutObject", 200, "captive")},
			fails: puts, log: "HTTP 200 from "},
		{name: "html-200-complete", source: "s3tools/s3cmd#730",
			faults: faults{page("CompleteMultipartUpload", 200, "captive")},
			fails:  completions, log: "HTTP 200 from "},
		{name: "html-200-copy", source: "s3tools/s3cmd#730", faults: faults{page("CopyObject", 200, "captive")},
			fails: copies, log: "HTTP 200 from "},
		{name: "html-200-delete", source: "s3tools/s3cmd#730", faults: faults{page("DeleteObject", 200, "captive")},
			fails: deletes, log: "HTTP 200 from "},
		{name: "empty-200-list", source: "RFC 9110, section 15.3.1",
			faults: faults{answer("ListObjectsV2", 200, "", "")},
			fails:  allListings, log: "S3 response has no result"},
		{name: "empty-200-create", source: "RFC 9110, section 15.3.1",
			faults: faults{answer("CreateMultipartUpload", 200, "", "")},
			fails:  uploads, log: "S3 response has no result"},
		{name: "json-error",
			source: "https://docs.aws.amazon.com/apigateway/latest/developerguide/customize-gateway-responses.html",
			faults: faults{answer("GetObject", 403, "Content-Type: application/json", `{"message":"Forbidden"}`)},
			fails:  gets, log: "HTTP 403"},
		{name: "text-429", source: "https://developers.cloudflare.com/r2/platform/limits/",
			faults: faults{sometimes(10, 2, answer("", 429, "Content-Type: text/plain\nRetry-After: 1", "slow down"))}},
		{name: "503-retry-after",
			source: "https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html (SlowDown)",
			faults: faults{sometimes(10, 2, answer("", 503, "Retry-After: 1\nContent-Type: application/xml",
				errorXML("SlowDown", "reduce")))}},
		{name: "520",
			source: "https://developers.cloudflare.com/support/troubleshooting/http-status-codes/cloudflare-5xx-errors/error-520/",
			faults: faults{answer("GetObject", 520, "Server: cloudflare\nContent-Type: text/html", html(520))},
			fails:  gets, log: "HTTP 520"},
		{name: "307", source: "boto/boto3#2708 (AIStore)",
			faults: faults{answer("PutObject", 307,
				"Location: http://127.0.0.1:1/elsewhere\nContent-Type: application/xml", errorXML("TemporaryRedirect",
					"Please re-send this request"))},
			fails: puts, log: "HTTP 307"},
		{name: "307-get", source: "apache/arrow-rs-object-store#603 (AIStore)",
			faults: faults{answer("GetObject", 307, "Location: http://127.0.0.1:1/elsewhere", "")},
			fails:  gets, log: "http://127.0.0.1:1/elsewhere"},
		{name: "302-login", source: "aws/aws-sdk-java-v2#3104",
			faults: faults{answer("", 302, "Location: http://127.0.0.1:1/login", "")},
			fails:  "login", log: ""},
		{name: "301", source: "rusoto/rusoto#1742 (Wasabi)",
			faults: faults{answer("", 301, "Content-Type: application/xml\nX-Amz-Bucket-Region: eu-central-1",
				errorXML("PermanentRedirect", "must be addressed using the specified endpoint"))},
			fails: "login", log: "set s3.region: eu-central-1"},
		{name: "error-root-element", source: "rclone/rclone#7749", faults: faults{document("", func(x string) string {
			return strings.NewReplacer("<Error>", "<errorResponse>", "</Error>", "</errorResponse>").Replace(x)
		})}},

		// Errors.
		{name: "skewed", source: "s3fs-fuse/s3fs-fuse#1042",
			faults: faults{sometimes(0, 0, refuse("PutObject", 403, "RequestTimeTooSkewed",
				"The difference between the request time and the current time is too large."))},
			fails: puts, log: "RequestTimeTooSkewed"},
		{name: "expired-in-upload", source: "aws/aws-sdk-php#1895",
			faults: faults{sometimes(1, 0, refuse("UploadPart", 400, "ExpiredToken",
				"The provided token has expired."))},
			fails: uploads, log: "ExpiredToken"},
		{name: "200-error-complete", source: "aws/aws-sdk-java#538",
			faults: faults{answer("CompleteMultipartUpload", 200, "Content-Type: application/xml",
				errorXML("InternalError", "We encountered an internal error."))},
			fails: completions, log: "InternalError"},
		{name: "200-error-copy", source: "aws/aws-sdk-cpp#1420",
			faults: faults{answer("CopyObject", 200, "Content-Type: application/xml", errorXML("InternalError",
				"We encountered an internal error."))},
			fails: copies, log: "InternalError"},
		{name: "200-error-complete-once", source: "kitware-resonant/django-s3-file-field#209",
			faults: faults{sometimes(0, 1, answer("CompleteMultipartUpload", 200, "Content-Type: application/xml",
				"   \n"+errorXML("InternalError", "We encountered an internal error.")))}},
		{name: "list-error-200", source: "mldbai/mldb#322",
			faults: faults{answer("ListObjectsV2", 200, "Content-Type: application/xml", errorXML("AccessDenied",
				"no"))},
			fails: allListings, log: "AccessDenied"},

		// ETags.
		{name: "etags-unquoted", source: "cloud37/s3-encryption-gateway#215", real: true, faults: faults{
			speak("", s3test.Rewriting{Response: func(r *http.Response, body []byte) []byte {
				if etag := r.Header.Get("ETag"); etag != "" {
					r.Header.Set("ETag", strings.Trim(etag, `"`))
				}
				if isXML(r) {
					body = regexp.MustCompile(`(<ETag>)(?:&#34;|&quot;|")([^<&"]*)(?:&#34;|&quot;|")`).ReplaceAll(body,
						[]byte("$1$2"))
				}
				return body
			}})}},
		{name: "etags-weak", source: "kali/nginx-dynamic-etags#3", real: true,
			faults: faults{headers("", func(h http.Header) {
				if etag := h.Get("ETag"); etag != "" {
					h.Set("ETag", "W/"+etag)
				}
			})}},
		{name: "etags-suffix", source: "https://bz.apache.org/bugzilla/show_bug.cgi?id=45023 (mod_deflate)",
			faults: faults{headers("GetObject", func(h http.Header) {
				if etag := h.Get("ETag"); etag != "" {
					h.Set("ETag", strings.TrimSuffix(etag, `"`)+`-gzip"`)
				}
			})}},
		{name: "no-etags", source: "apache/ozone#5162", real: true,
			faults: faults{speak("", s3test.Rewriting{Response: func(r *http.Response, body []byte) []byte {
				r.Header.Del("ETag")
				return regexp.MustCompile(`<ETag>[^<]*</ETag>`).ReplaceAll(body, nil)
			}})},
			fails: uploads, log: "S3 response has no ETag"},
		{name: "no-etags-in-heads", source: "apache/ozone#5162", faults: faults{drop("HeadObject", "ETag")},
			fails: "APPE REST-STOR STOR-resumed", log: "another client replaced the object"},
		{name: "no-etags-in-gets", source: "apache/ozone#5162", faults: faults{drop("GetObject", "ETag")}},
		{name: "no-etags-in-puts", source: "apache/ozone#5162", faults: faults{drop("PutObject", "ETag")}},
		{name: "no-etags-in-parts", source: "apache/ozone#5162", faults: faults{drop("UploadPart", "ETag")},
			fails: uploads, log: "S3 response has no ETag"},
		{name: "no-etags-in-lists", source: "gaul/s3proxy#1093",
			faults: faults{replace("ListObjectsV2", `<ETag>[^<]*</ETag>`, "")}},

		// Listings.
		{name: "list-duplicates", source: "minio/minio#16108", real: true, faults: faults{replace("ListObjectsV2",
			`(?s)(<Contents>.*?</Contents>)`, "$1$1", `(?s)(<CommonPrefixes>.*?</CommonPrefixes>)`, "$1$1")}},
		{name: "list-prefixes-in-one",
			source: "https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjects.html (CommonPrefixes)",
			faults: faults{replace("ListObjectsV2", `</CommonPrefixes>\s*<CommonPrefixes>`, "")}},
		{name: "list-same-token", source: "aws/aws-cli#3917 (Wasabi)",
			faults: faults{replace("ListObjectsV2", `<IsTruncated>false</IsTruncated>`,
				"<IsTruncated>true</IsTruncated><NextContinuationToken>same</NextContinuationToken>")},
			fails: "LIST-empty MKD missing MLSD LIST NLST RNTO RNTO-large SITE-COPY MKD-deep RMD MLSD-after",
			log:   "has no continuation token for the next page"},
		{name: "list-no-token", source: "minio/minio-go#1704 (Huawei), awslabs/mountpoint-s3#1800 (Selectel)",
			faults: faults{replace("ListObjectsV2", `<IsTruncated>false</IsTruncated>`,
				"<IsTruncated>true</IsTruncated>")},
			fails: listings, log: "has no continuation token for the next page"},
		{name: "list-small-pages", source: "boto/boto3#1927", real: true, faults: faults{pages()}},
		{name: "list-small-pages-untold", source: "curtis0x/fake-s3#85",
			faults: faults{pages(`<IsTruncated>true</IsTruncated>`, "")}},
		{name: "list-key-count", source: "seaweedfs/seaweedfs#1741",
			faults: faults{replace("ListObjectsV2", `<KeyCount>\d+</KeyCount>`, "<KeyCount>0</KeyCount>")}},
		{name: "list-bad-numbers", source: "scireum/s3ninja#214 (no KeyCount)",
			faults: faults{replace("ListObjectsV2", `<KeyCount>\d+</KeyCount>`, "<KeyCount></KeyCount>",
				`<MaxKeys>\d+</MaxKeys>`, "<MaxKeys></MaxKeys>")}},
		{name: "list-max-keys-ignored", source: "sivchari/kumo#712",
			faults: faults{without("max-keys")}},
		{name: "list-delimiter-ignored", source: "adobe/S3Mock#89, floci-io/floci#133", real: true,
			faults: faults{without("delimiter")}},
		{name: "list-prefix-ignored",
			source: "https://developers.cloudflare.com/cache/how-to/cache-keys/ (without the query)",
			faults: faults{without("prefix")},
			fails:  "MLSD LIST NLST REST-STOR STOR-interrupted RNTO RNTO-large SITE-COPY MKD-deep DELE RMD MLSD-after",
			log:    "which does not begin with the prefix"},
		{name: "list-encoding-ignored", source: "versity/versitygw#813, brekkylab/backlot#178", real: true,
			faults: faults{without("encoding-type")}},
		{name: "list-encoding-untold", source: "apache/ozone#4127", real: true,
			faults: faults{replace("ListObjectsV2", `<EncodingType>url</EncodingType>`, "")}},
		{name: "list-encoding-told-wrongly", source: "https://rclone.org/s3/#s3-list-url-encode",
			faults: faults{speak("ListObjectsV2", s3test.Rewriting{
				Request: func(r *http.Request) *http.Response {
					query := r.URL.Query()
					query.Del("encoding-type")
					r.URL.RawQuery = encoded(query)
					return nil
				},
				Response: func(_ *http.Response, body []byte) []byte {
					return []byte(strings.Replace(string(body), "<IsTruncated>",
						"<EncodingType>url</EncodingType><IsTruncated>", 1))
				},
			})}},
		{name: "list-encoding-percent-20", source: "apache/ozone#10586 (AWS)",
			faults: faults{replace("ListObjectsV2", `\+`, "%20")}},
		{name: "list-unsorted", source: "storj/roadmap#62", real: true,
			faults: faults{document("ListObjectsV2", reversed)}},
		{name: "list-no-sizes", source: "gaul/s3proxy#1093", real: true,
			faults: faults{replace("ListObjectsV2", `<Size>\d+</Size>`, "")}},
		{name: "list-empty-sizes", source: "gaul/s3proxy#1093",
			faults: faults{replace("ListObjectsV2", `<Size>\d+</Size>`, "<Size></Size>")}},
		{name: "list-no-dates", source: "gaul/s3proxy#1093",
			faults: faults{replace("ListObjectsV2", `<LastModified>[^<]*</LastModified>`, "")}},
		{name: "list-empty-dates", source: "gaul/s3proxy#1093",
			faults: faults{replace("ListObjectsV2", `<LastModified>[^<]*</LastModified>`, "<LastModified/>")}},
		{name: "list-microseconds", source: "bouncestorage/swiftproxy#33",
			faults: faults{replace("ListObjectsV2", `\.\d+Z</LastModified>`, ".123456Z</LastModified>")}},
		{name: "list-dates-offset", source: "RFC 3339, section 5.6",
			faults: faults{replace("ListObjectsV2", `\.\d+Z</LastModified>`, "+00:00</LastModified>")}},
		{name: "list-dates-zoneless", source: "bouncestorage/swiftproxy#33",
			faults: faults{replace("ListObjectsV2", `\.\d+Z</LastModified>`, ".123456</LastModified>")}},
		{name: "list-dates-http", source: "jamhall/s3rver#181", faults: faults{document("", httpDates)}},
		{name: "list-dates-colon", source: "NVIDIA/aistore#190",
			faults: faults{replace("ListObjectsV2", `<LastModified>`, "<LastModified>:")}},
		{name: "list-dates-space", source: "curtis0x/fake-s3#44",
			faults: faults{replace("ListObjectsV2", `(\d)T(\d\d:\d\d:\d\d)\.\d+Z</LastModified>`,
				"$1 $2</LastModified>")}},
		{name: "list-dates-epoch", source: "bouncestorage/swiftproxy#33",
			faults: faults{document("ListObjectsV2", func(x string) string {
				return dates(x, func(at time.Time) string { return strconv.FormatInt(at.UnixMilli(), 10) })
			})}},
		{name: "xml-namespace-everywhere", source: "versity/versitygw#395", faults: faults{replace("",
			`<([A-Z]\w*)>`, `<$1 xmlns="http://s3.amazonaws.com/doc/2006-03-01/">`)}},
		{name: "xml-other-root", source: "jamhall/s3rver#15", faults: faults{replace("ListObjectsV2",
			`ListBucketResult`, `ListAllMyBucketsResult`)}},
		{name: "copied-parts-without-etags", source: "jamhall/s3rver#436",
			faults: faults{replace("UploadPartCopy", `<ETag>[^<]*</ETag>`, "")}},
		{name: "http2-goaway", source: "minio/minio#11188, restic/restic#849", http2: true,
			faults: faults{speak("", s3test.Rewriting{Close: true})}},
		{name: "http2-reset", source: "aws/aws-sdk-go-v2#3494, pingcap/tidb#59557", http2: true, faults: faults{
			sometimes(4, 1, s3test.Fault{Operation: "HeadObject", Effect: s3test.ResetRequest()}),
			sometimes(2, 1, s3test.Fault{Operation: "GetObject", Effect: s3test.ResetRequest()}),
			sometimes(2, 1, s3test.Fault{Operation: "UploadPart", Effect: s3test.ResetRequest()}),
			sometimes(1, 1, s3test.Fault{Operation: "ListObjectsV2", Effect: s3test.CutResponse()})}},
		{name: "list-prefix-repeated-on-pages", source: "minio/minio#16108, InsForge/InsForge#1959",
			faults: faults{repeatedPrefixes()}},
		{name: "delete-html-error", source: "s3tools/s3cmd#331 (403 and 502)",
			faults: faults{page("DeleteObject", 400, "openresty")},
			fails:  deletes, log: "HTTP 400"},
		{name: "slow", source: "https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html (RequestTimeout)",
			faults: faults{sometimes(5, 2, refuse("", 400, "RequestTimeout",
				"Your socket connection to the server was not read from or written to within the timeout period."))}},
		{name: "list-storage-class", source: "basho/riak_cs#574, brendanhay/amazonka#569",
			faults: faults{replace("ListObjectsV2", `<StorageClass>[^<]*</StorageClass>`,
				"<StorageClass>COLD_9</StorageClass>")}},
		{name: "list-no-storage-class", source: "aristidb/aws#296 (Google)",
			faults: faults{replace("ListObjectsV2", `<StorageClass>[^<]*</StorageClass>`, "", `<Owner>.*?</Owner>`,
				"")}},
		{name: "list-bare", source: "jamhall/s3rver#185, Zilliqa/zq1#3553", faults: faults{replace("ListObjectsV2",
			`<(Name|MaxKeys|KeyCount|Delimiter|IsTruncated|EncodingType)>[^<]*</\w+>`, "")}},
		{name: "list-unknown-elements", source: "minio/minio-py#1397 (UserMetadata)",
			faults: faults{replace("ListObjectsV2", `<Contents>`,
				`<Contents><Type>Normal</Type><Extra a="b"><Key>no</Key></Extra>`, `<Name>`, "<Marker/><Name>")}},
		{name: "list-directory-entries", source: "versity/versitygw#2130",
			faults: faults{document("ListObjectsV2", withDirectoryEntry)}},

		// XML.
		{name: "xml-no-namespace", source: "adobe/S3Mock#1754, localstack/localstack#9983",
			faults: faults{replace("", ` xmlns="[^"]*"`, "")}},
		{name: "xml-namespace", source: "https://www.w3.org/TR/xml-names/#ns-using",
			faults: faults{document("", prefixed)}},
		{name: "xml-other-namespace", source: "rustyconover/net-amazon-s3#55 (Google)",
			faults: faults{replace("", `(<[A-Z]\w+)( xmlns="[^"]*")?>`, `$1>`, `<ListBucketResult`,
				`<ListBucketResult xmlns="http://s3.example.com/doc/2006-03-01"`)}},
		{name: "xml-bom", source: "XML 1.0, section 4.3.3",
			faults: faults{document("", func(x string) string { return "\ufeff" + x })}},
		{name: "xml-whitespace", source: "kitware-resonant/django-s3-file-field#209",
			faults: faults{document("", func(x string) string { return "\n  \n" + strings.TrimSpace(x) + "\n \n" })}},
		{name: "xml-indented", source: "XML 1.0, section 2.10", faults: faults{replace("", `><`, ">\n  <")}},
		{name: "xml-text-padded", source: "XML 1.0, section 2.10",
			faults: faults{replace("",
				`<(Size|IsTruncated|KeyCount|MaxKeys|LastModified|ETag|UploadId|PartNumber)>([^<]+)</`,
				"<$1>\n $2\n</")}},
		{name: "xml-no-declaration", source: "adobe/S3Mock#1754", faults: faults{replace("", `<\?xml[^>]*\?>\s*`, "")}},
		{name: "xml-latin1", source: "XML 1.0, section 4.3.3",
			faults: faults{replace("", `encoding="UTF-8"`, `encoding="ISO-8859-1"`)}},
		{name: "xml-1.1", source: "XML 1.1, section 2.8",
			faults: faults{replace("", `<\?xml version="1.0"`, `<?xml version="1.1"`)}},
		{name: "xml-comment", source: "XML 1.0, section 2.5",
			faults: faults{replace("", `(<\?xml[^>]*\?>)`, `$1<!-- made by a gateway -->`)}},
		{name: "xml-true", source: "localstack/localstack#3865",
			faults: faults{replace("", `>true<`, ">True<", `>false<`, ">False<")}},
		{name: "xml-lower-case", source: "linkedin/ambry#2979", faults: faults{document("", func(x string) string {
			return regexp.MustCompile(`</?[A-Z]\w*`).ReplaceAllStringFunc(x, strings.ToLower)
		})}},
		{name: "xml-content-type", source: "localstack/localstack#549", faults: faults{headers("", func(h http.Header) {
			if strings.Contains(h.Get("Content-Type"), "xml") {
				h.Set("Content-Type", "text/plain")
			}
		})}},
		{name: "xml-gzip", source: "mageops/ansible-infrastructure#220",
			faults: faults{speak("", s3test.Rewriting{Response: func(r *http.Response, body []byte) []byte {
				if !isXML(r) || len(body) == 0 {
					return body
				}
				r.Header.Set("Content-Encoding", "gzip")
				return compressed(body)
			}})}},

		// Objects.
		{name: "get-gzip", source: "pottava/aws-s3-proxy#20", real: true,
			faults: faults{speak("GetObject", s3test.Rewriting{Response: func(r *http.Response, body []byte) []byte {
				if len(body) == 0 {
					return body
				}
				r.Header.Set("Content-Encoding", "gzip")
				return compressed(body)
			}})},
			fails: getsOfBytes, log: "a proxy changed the encoding of the object to gzip"},
		{name: "get-chunked", source: "mageops/ansible-infrastructure#220", real: true,
			faults: faults{speak("GetObject", s3test.Rewriting{Response: func(r *http.Response, body []byte) []byte {
				r.Header.Del("Content-Length")
				r.ContentLength = -1
				return body
			}})}},
		{name: "head-no-length",
			source: "async-aws/aws#2077, minio/minio#19259 (Cloudflare), thephpleague/flysystem#1910 (Ceph)",
			real:   true,
			faults: faults{drop("HeadObject", "Content-Length")}},
		{name: "get-range-ignored", source: "hashicorp/terraform#34136", real: true,
			faults: faults{ignore("GetObject", "Range")},
			fails:  ranges, may: wholes, log: "a different range than requested"},
		{name: "get-200-for-range", source: "treeverse/lakeFS#6100",
			faults: faults{speak("GetObject", s3test.Rewriting{Response: func(r *http.Response, body []byte) []byte {
				r.StatusCode = 200
				r.Header.Del("Content-Range")
				return body
			}})},
			fails: ranges, may: wholes, log: "a different range than requested"},
		{name: "get-wrong-range", source: "jamhall/s3rver#374",
			faults: faults{speak("GetObject", s3test.Rewriting{Response: func(r *http.Response, body []byte) []byte {
				if r.Header.Get("Content-Range") != "" {
					r.Header.Set("Content-Range", "bytes 0-9/10")
				}
				return body
			}})},
			fails: ranges, may: wholes, log: "a different range than requested"},
		{name: "get-range-no-total", source: "RFC 9110, section 14.4",
			faults: faults{headers("GetObject", func(h http.Header) {
				h.Set("Content-Range", regexp.MustCompile(`/\d+`).ReplaceAllString(h.Get("Content-Range"), "/*"))
			})},
			fails: ranges, may: wholes, log: "a different range than requested"},
		{name: "get-416", source: "jamhall/s3rver#374",
			faults: faults{speak("GetObject", s3test.Rewriting{Request: func(r *http.Request) *http.Response {
				if r.Header.Get("Range") != "" {
					return s3test.NewResponse(416, "Content-Type: application/xml", errorXML("InvalidRange",
						"The requested range is not satisfiable"))
				}
				return nil
			}})},
			fails: ranges, may: wholes, log: "InvalidRange"},
		{name: "get-cut", source: "seaweedfs/seaweedfs#2538",
			faults: faults{speak("GetObject", s3test.Rewriting{Response: func(r *http.Response, body []byte) []byte {
				r.Header.Del("Content-Length")
				return body[:len(body)/2]
			}})},
			fails: getsOfBytes, log: ""},
		{name: "get-cut-once", source: "seaweedfs/seaweedfs#2538",
			faults: faults{sometimes(1, 1, s3test.Fault{Operation: "GetObject", Effect: s3test.CutResponse()})}},
		{name: "no-last-modified", source: "exoscale/pithos#54", real: true, faults: faults{drop("", "Last-Modified")},
			fails: "MDTM", log: "unsupported operation"},
		{name: "last-modified-other", source: "exoscale/pithos#78", faults: faults{headers("", func(h http.Header) {
			if at, err := http.ParseTime(h.Get("Last-Modified")); err == nil {
				h.Set("Last-Modified", at.Format(time.RFC3339))
			}
		})}},
		{name: "last-modified-utc", source: "exoscale/pithos#54", faults: faults{headers("", func(h http.Header) {
			h.Set("Last-Modified", strings.Replace(h.Get("Last-Modified"), "GMT", "UTC", 1))
		})}},
		{name: "no-date", source: "RFC 9110, section 6.6.1",
			faults: faults{headers("", func(h http.Header) { h["Date"] = nil })}},
		{name: "no-request-ids", source: "velero-io/velero#9931 (Cloudflare R2)",
			faults: faults{drop("", "X-Amz-Request-Id", "X-Amz-Id-2")}},
		{name: "no-request-ids-no-etags", source: "apache/ozone#5162",
			faults: faults{drop("", "X-Amz-Request-Id", "X-Amz-Id-2", "ETag")},
			fails:  putsAndParts, log: "S3 response has no ETag"},
		{name: "metadata-dropped", source: "ar90n/serverless-s3-local#89", real: true,
			faults: faults{speak("", s3test.Rewriting{Request: func(r *http.Request) *http.Response {
				for name := range r.Header {
					if strings.HasPrefix(name, "X-Amz-Meta-") {
						r.Header.Del(name)
					}
				}
				return nil
			}})},
			fails: "MFMT STOR-interrupted", log: "keep the headers x-amz-meta-*"},
		{name: "metadata-upper", source: "suitenumerique/docs#2242", real: true,
			faults: faults{headers("", func(h http.Header) {
				for name, values := range h {
					if strings.HasPrefix(name, "X-Amz-Meta-") {
						delete(h, name)
						h[strings.ToUpper(name)] = values
					}
				}
			})}},
		{name: "metadata-underscores", source: "zulip/zulip#13234, localstack/localstack#1965",
			faults: faults{headers("", func(h http.Header) {
				for name, values := range h {
					if strings.HasPrefix(name, "X-Amz-Meta-") {
						delete(h, name)
						h["X-Amz-Meta-"+strings.ReplaceAll(strings.TrimPrefix(name, "X-Amz-Meta-"), "-", "_")] = values
					}
				}
			})},
			fails: "MFMT STOR-interrupted", log: "keep the headers x-amz-meta-*"},
		{name: "accept-encoding-rewritten", source: "hashicorp/terraform#36412, longhorn/longhorn#13756 (Cloudflare)",
			real: true,
			faults: faults{speak("", s3test.Rewriting{Unsigned: true, Request: func(r *http.Request) *http.Response {
				r.Header.Set("Accept-Encoding", "gzip, br")
				return nil
			}})}},
		{name: "user-agent-rewritten",
			source: "aws/aws-sdk-cpp#323, FantasticFiasco/aws-signature-version-4#1208", real: true,
			faults: faults{speak("", s3test.Rewriting{Unsigned: true, Request: func(r *http.Request) *http.Response {
				r.Header.Set("User-Agent", "proxy")
				r.Header.Set("Via", "1.1 proxy")
				r.Header.Set("X-Forwarded-For", "10.0.0.1")
				return nil
			}})}},
		{name: "conditions-ignored", source: "versity/versitygw#1708", real: true,
			faults: faults{ignore("", "If-None-Match", "If-Match", "X-Amz-Copy-Source-If-Match")}},
		{name: "head-403-missing", source: "ceph/ceph#68577", real: true,
			faults: faults{speak("HeadObject", s3test.Rewriting{Response: func(r *http.Response, body []byte) []byte {
				if r.StatusCode == 404 {
					r.StatusCode = 403
				}
				return body
			}})},
			fails: "STOR-interrupted RNTO-directory", log: "s3:ListBucket",
			strict: &outcome{"MKD STOR-interrupted MKD-deep RMD", "s3:ListBucket"}},
		{name: "complete-whitespace", source: "kitware-resonant/django-s3-file-field#209",
			faults: faults{document("CompleteMultipartUpload", func(x string) string {
				return strings.Repeat(" ", 4000) + "\n" + x
			})}},
		{name: "complete-no-body", source: "RFC 9110, section 15.3.1",
			faults: faults{speak("CompleteMultipartUpload", s3test.Rewriting{
				Response: func(r *http.Response, _ []byte) []byte { return nil }})}},
		{name: "copy-no-body", source: "RFC 9110, section 15.3.1",
			faults: faults{speak("CopyObject", s3test.Rewriting{
				Response: func(r *http.Response, _ []byte) []byte { return nil }})}},
		{name: "copy-dates-http", source: "scality/cloudserver#372", faults: faults{document("CopyObject", httpDates)}},
		{name: "batch-delete-partial", source: "versity/versitygw#195",
			faults: faults{answer("DeleteObjects", 200, "Content-Type: application/xml",
				`<DeleteResult><Error><Key>x</Key><Code>InternalError</Code><Message>no</Message></Error></DeleteResult>`)}},
		{name: "batch-delete-empty", source: "boto/boto3#507", real: true,
			faults: faults{answer("DeleteObjects", 200, "Content-Type: application/xml",
				`<DeleteResult></DeleteResult>`)}},
		{name: "connection-close", source: "RFC 9112, section 9.6",
			faults: faults{speak("", s3test.Rewriting{Close: true})}},
		{name: "connections-dropped", source: "aws/aws-sdk-go#3027", real: true,
			faults: faults{sometimes(20, 2, s3test.Fault{Effect: s3test.ResetRequest()})}},
	}
}

// pages limits listings to a few entries per page and replaces some of the XML.
func pages(pairs ...string) s3test.Fault {
	return speak("ListObjectsV2", s3test.Rewriting{
		Request: smallPages,
		Response: func(_ *http.Response, body []byte) []byte {
			for pair := range slices.Chunk(pairs, 2) {
				body = regexp.MustCompile(pair[0]).ReplaceAll(body, []byte(pair[1]))
			}
			return body
		},
	})
}

// smallPages requests two entries per page.
func smallPages(r *http.Request) *http.Response {
	query := r.URL.Query()
	query.Set("max-keys", "2")
	r.URL.RawQuery = encoded(query)
	return nil
}

var contents = regexp.MustCompile(`(?s)<Contents>.*?</Contents>`)

func reversed(x string) string {
	all := contents.FindAllString(x, -1)
	i := len(all)
	return contents.ReplaceAllStringFunc(x, func(string) string { i--; return all[i] })
}

// dates reformats every LastModified.
func dates(x string, format func(time.Time) string) string {
	return regexp.MustCompile(`<LastModified>[^<]*</LastModified>`).ReplaceAllStringFunc(x,
		func(element string) string {
			text := strings.TrimSuffix(strings.TrimPrefix(element, "<LastModified>"), "</LastModified>")
			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				return element
			}
			return "<LastModified>" + format(at.UTC()) + "</LastModified>"
		})
}

// httpDates formats LastModified as in HTTP.
func httpDates(x string) string {
	return dates(x, func(at time.Time) string { return at.Format(http.TimeFormat) })
}

// repeatedPrefixes limits pages to a few entries. Each page begins with the prefixes of the previous page.
func repeatedPrefixes() s3test.Fault {
	element := regexp.MustCompile(`(?s)<CommonPrefixes>.*?</CommonPrefixes>`)
	var mu sync.Mutex
	var before string
	f := pages()
	f.Effect = s3test.Rewrite(s3test.Rewriting{Request: smallPages, Response: func(r *http.Response,
		body []byte) []byte {
		mu.Lock()
		defer mu.Unlock()
		own := string(bytes.Join(element.FindAll(body, -1), nil))
		if bytes.Contains(body, []byte("<ContinuationToken>")) {
			body = bytes.Replace(body, []byte("</ListBucketResult>"), []byte(before+"</ListBucketResult>"), 1)
		}
		before = own
		return body
	}})
	return f
}

// prefixed gives all elements a namespace prefix.
func prefixed(x string) string {
	x = regexp.MustCompile(`<(/?)([A-Za-z]\w*)`).ReplaceAllString(x, "<${1}s3:$2")
	return strings.Replace(x, ` xmlns="`, ` xmlns:s3="`, 1)
}

// withDirectoryEntry lists the directory itself as an empty object, like gateways of file systems do.
func withDirectoryEntry(x string) string {
	prefix := regexp.MustCompile(`<Prefix>([^<]+/)</Prefix>`).FindStringSubmatch(x)
	if prefix == nil || !strings.Contains(x, "<Delimiter>") {
		return x
	}
	entry := "<Contents><Key>" + prefix[1] + "</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified><ETag>&#34;d41d8cd98f00b204e9800998ecf8427e&#34;</ETag><Size>0</Size><StorageClass>STANDARD</StorageClass></Contents>"
	return strings.Replace(x, "</ListBucketResult>", entry+"</ListBucketResult>", 1)
}
