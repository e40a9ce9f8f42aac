package s3client

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/config"
)

// profileOfEndpoint is the name of the profile that the address of an S3 server tells, empty where it tells none. An
// empty endpoint is that of AWS.
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

// profileOfAnswer is the name of the profile that the headers of an answer tell, empty where they tell none.
//
// Older gateways of Ceph, and Swift, send no Server header. Both number requests with IDs that begin with tx. That of
// Ceph ends with the instance and the zone of the gateway. Swift repeats its own as X-Trans-Id.
func profileOfAnswer(header http.Header) string {
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

// responseHeader is the header of an answer, or of the answer that an error came with. It is nil where there was none.
func responseHeader(metadata middleware.Metadata) http.Header {
	if response, ok := awsmiddleware.GetRawResponse(metadata).(*smithyhttp.Response); ok {
		return response.Header
	}
	return nil
}

// knownProfile is the name of the profile as it is known before the server is asked, empty where it is not.
func knownProfile(configured config.Profile, endpoint, bucketName string) string {
	if configured != "" && configured != config.AutoProfile {
		return string(configured)
	}
	return profileOfEndpoint(endpoint, bucketName)
}

// specialProfile is the name of the profile if it is known before the server is asked and changes what clients send, by
// [restrict] or [RepeatUnstored]. It is empty otherwise. Accounts of one server differ by nothing else.
func specialProfile(configured config.Profile, endpoint string) string {
	name := knownProfile(configured, endpoint, "")
	if p, known := driver.ProfileNamed(name); known && p.SignedAcceptEncoding && p.Checksums &&
		p.EmptyDirectoryCode == "" && !p.UnstoredAnswers {
		return ""
	}
	return name
}

// restrict makes a client leave out what the server of a profile does not take.
func restrict(o *s3.Options, profile string) {
	p, known := driver.ProfileNamed(profile)
	if !known {
		return
	}
	// The SDK adds and signs Accept-Encoding to get objects as they are stored. Google's front end changes it on the
	// way, so that the signature would be wrong. Without it, too, no server compresses, and the transport asks for
	// nothing and decompresses nothing.
	const acceptEncoding = "Accept-Encoding"
	if !p.SignedAcceptEncoding {
		o.APIOptions = append(
			o.APIOptions, changeHeader("WithoutAcceptEncoding", middleware.Before, func(h http.Header) {
				h.Del(acceptEncoding)
			}))
	}
	if p.Decompresses {
		o.APIOptions = append(o.APIOptions, changeHeader("AcceptGzip", middleware.After, func(h http.Header) {
			h.Set(acceptEncoding, "gzip")
		}))
	}
	// By default the SDK sends checksums that S3 does not ask for. Some servers other than AWS refuse them, or store a
	// checksum at the end of a body as a part of it.
	if !p.Checksums {
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	}
}

// changeHeader changes the header of each request right before the signature or right after it.
func changeHeader(
	id string, where middleware.RelativePosition, change func(http.Header),
) func(*middleware.Stack) error {
	return func(stack *middleware.Stack) error {
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
}
