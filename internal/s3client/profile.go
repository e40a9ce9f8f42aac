package s3client

import (
	"cmp"
	"context"
	"log/slog"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/config/bucket"
)

// profileOfEndpoint is the name of the profile that the address of an S3 server tells, empty where it tells none. An empty endpoint is that
// of AWS.
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
	case at("r2.cloudflarestorage.com"):
		return "r2"
	case at("storage.googleapis.com"), strings.HasPrefix(host, "storage.") && at("rep.googleapis.com"):
		return "gcs"
	}
	return ""
}

// profileOfServer is the name of the profile that the Server header of an S3 server tells, empty where it tells none.
func profileOfServer(header string) string {
	for prefix, name := range map[string]string{"MinIO": "minio", "Ceph Object Gateway": "ceph", "VERSITYGW": "versitygw"} {
		if strings.HasPrefix(header, prefix) {
			return name
		}
	}
	return ""
}

// serverHeader is the Server header of an answer, or of the answer that an error came with.
func serverHeader(metadata middleware.Metadata) string {
	if response, ok := awsmiddleware.GetRawResponse(metadata).(*smithyhttp.Response); ok {
		return response.Header.Get("Server")
	}
	return ""
}

// knownProfile is the name of the profile as it is known before the server is asked, empty where it is not.
func knownProfile(configured bucket.Profile, endpoint, bucketName string) string {
	if configured != "" && configured != bucket.AutoProfile {
		return string(configured)
	}
	return profileOfEndpoint(endpoint, bucketName)
}

// restrictingProfile is the name of the profile if it is known before the server is asked and there is something that the server does not
// take from any client, and empty otherwise. Accounts of one server differ by nothing else.
func restrictingProfile(configured bucket.Profile, endpoint string) string {
	name := knownProfile(configured, endpoint, "")
	if p, known := driver.ProfileNamed(name); known && p.SignedAcceptEncoding && p.Checksums {
		return ""
	}
	return name
}

// restrictClient makes a client leave out what the server of a profile does not take.
func restrictClient(o *s3.Options, profile string) {
	p, known := driver.ProfileNamed(profile)
	if !known {
		return
	}
	if !p.SignedAcceptEncoding {
		o.APIOptions = append(o.APIOptions, withoutAcceptEncoding)
	}
	if !p.Checksums {
		useChecksums(o, bucket.ChecksumsRequired)
	}
}

// withoutAcceptEncoding takes out of a request the header that the SDK adds and signs. Google's front end changes it on the way, so that
// the signature is wrong. The SDK adds it to get objects as they are stored, which they are without it too: the transport does not ask
// for compression.
func withoutAcceptEncoding(stack *middleware.Stack) error {
	const signing = "Signing"
	if _, signs := stack.Finalize.Get(signing); !signs {
		return nil
	}
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("WithoutAcceptEncoding", func(
		ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
	) (middleware.FinalizeOutput, middleware.Metadata, error) {
		if request, ok := in.Request.(*smithyhttp.Request); ok {
			request.Header.Del("Accept-Encoding")
		}
		return next.HandleFinalize(ctx, in)
	}), signing, middleware.Before)
}

// findProfile finds out what the bucket's server can do, from its address and from the Server header of its answer. Of one that stays
// unknown nothing is taken for granted: what the configuration needs, the server has to show.
func (b *Bucket) findProfile(ctx context.Context, header string, log *slog.Logger) error {
	name := cmp.Or(knownProfile(b.configured, aws.ToString(b.Client.Options().BaseEndpoint), b.Name), profileOfServer(header), "strict")
	b.Profile, _ = driver.ProfileNamed(name)
	b.Profile.Checksums = b.Profile.Checksums || b.account.checksums == bucket.ChecksumsSupported
	auto := b.configured == "" || b.configured == bucket.AutoProfile
	if auto && name == "strict" && (b.resumable || b.denies()) {
		var err error
		if b.Profile, err = b.probeProfile(ctx, b.Profile); err != nil {
			return b.explain(err)
		}
	}
	log = log.With("tenant", b.Tenant, "bucket", b.Name, "profile", name)
	if auto && name == "strict" {
		log.Warn("S3 server is not known, and treated as the strictest; name its profile (s3.profile) if it is one of docs/s3-servers.md",
			"server", header)
		return nil
	}
	log.Info("S3 server", "server", header)
	return nil
}

// checkResume returns an error where uploads that break shall be kept and cannot be resumed.
func (b *Bucket) checkResume() error {
	if b.resumable && !b.Profile.Resumes() {
		return b.failed(nil, "its S3 server ("+b.Profile.Name+") lists no prefix that ends in the middle of a name, so that "+
			"interrupted uploads cannot be found, which resume: keep counts on",
			"write resume: discard, or move to a general purpose bucket")
	}
	return nil
}
