package s3client

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/babelftp/babelftp/internal/config"
)

// profileOfEndpoint returns the name of the profile for the address of an S3 server, or "" if the address is unknown.
// An empty endpoint means AWS.
func profileOfEndpoint(endpoint, bucketName string) string {
	host := ""
	if u, err := url.Parse(endpoint); err == nil {
		host = strings.ToLower(u.Hostname())
	}
	at := func(domain string) bool { return host == domain || strings.HasSuffix(host, "."+domain) }
	switch {
	case endpoint == "", at("amazonaws.com"), at("amazonaws.com.cn"):
		if strings.HasSuffix(bucketName, "--x-s3") {
			return "aws-directory"
		}
		return "aws"
	case strings.HasPrefix(host, "storage.") && at("rep.googleapis.com"):
		return "gcs"
	}
	for _, p := range endpointProfiles() {
		if at(p.domain) {
			return p.profile
		}
	}
	return ""
}

type endpointProfile struct{ domain, profile string }

// endpointProfiles returns the profiles of known domains. Hetzner and DigitalOcean run Ceph. OVH's endpoints without
// io or perf in their names are Swift.
func endpointProfiles() []endpointProfile {
	return []endpointProfile{
		{"r2.cloudflarestorage.com", "r2"},
		{"storage.googleapis.com", "gcs"},
		{"backblazeb2.com", "backblaze"},
		{"scw.cloud", "scaleway"},
		{"io.cloud.ovh.net", "ovh"}, {"io.cloud.ovh.us", "ovh"}, {"perf.cloud.ovh.net", "ovh"},
		{"aliyuncs.com", "alibaba"},
		{"myqcloud.com", "tencent"},
		{"your-objectstorage.com", "ceph"}, {"digitaloceanspaces.com", "ceph"},
	}
}

// profileOfResponse returns the name of the profile that the headers of a response identify, or "".
//
// Older Ceph gateways and Swift send no Server header. Both send request IDs that begin with "tx". In Ceph, the ID
// ends with the instance and the zone of the gateway. Swift sends the same ID as X-Trans-Id.
func profileOfResponse(header http.Header) string {
	for prefix, name := range map[string]string{
		"MinIO": "minio", "Ceph Object Gateway": "ceph", "VERSITYGW": "versitygw",
	} {
		if strings.HasPrefix(header.Get("Server"), prefix) {
			return name
		}
	}
	switch id := header.Get("X-Amz-Request-Id"); {
	case !strings.HasPrefix(id, "tx"):
	case header.Get("X-Trans-Id") == id:
		return "swift"
	case strings.Count(id, "-") >= 3:
		return "ceph"
	}
	return ""
}

// responseHeader returns the header of a response, including an error response. It is nil if there was no response.
func responseHeader(metadata middleware.Metadata) http.Header {
	if response, ok := awsmiddleware.GetRawResponse(metadata).(*smithyhttp.Response); ok {
		return response.Header
	}
	return nil
}

// configuredProfile returns the name of the configured profile, or "" if the server has to be identified.
func configuredProfile(p config.Profile) string {
	if p == config.AutoProfile {
		return ""
	}
	return string(p)
}

// knownProfile returns the name of the profile if it is known without a request to the server, or "".
func (b *Bucket) knownProfile() string {
	return cmp.Or(b.account.profile, profileOfEndpoint(aws.ToString(b.Client.Options().BaseEndpoint), b.Name))
}

// withoutAcceptEncoding removes the Accept-Encoding header that the SDK adds and signs to get objects as they are
// stored. Proxies such as Google's front end rewrite the header, which breaks the signature. Without the header, no
// server compresses responses. The transport does not decompress either, because LoadEnvironment disables that.
func withoutAcceptEncoding(stack *middleware.Stack) error {
	return changeHeader(stack, "WithoutAcceptEncoding", middleware.Before, func(h http.Header) {
		h.Del(acceptEncoding)
	})
}

// acceptGzip adds an unsigned Accept-Encoding header for servers that would otherwise decompress objects.
func acceptGzip(stack *middleware.Stack) error {
	return changeHeader(stack, "AcceptGzip", middleware.After, func(h http.Header) { h.Set(acceptEncoding, "gzip") })
}

const acceptEncoding = "Accept-Encoding"

// changeHeader changes the header of each request right before or right after signing.
func changeHeader(
	stack *middleware.Stack, id string, where middleware.RelativePosition, change func(http.Header),
) error {
	const signing = "Signing"
	if _, signs := stack.Finalize.Get(signing); !signs {
		return nil
	}
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc(id, func(
		ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
	) (middleware.FinalizeOutput, middleware.Metadata, error) {
		if request, ok := in.Request.(*smithyhttp.Request); ok {
			change(request.Header)
		}
		return next.HandleFinalize(ctx, in)
	}), signing, where)
}
