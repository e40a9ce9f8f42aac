package s3api

import (
	"bytes"
	"context"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/babelftp/babelftp/internal/base/s3error"
)

// A versionOrder notes in which order an answer to ListObjectVersions has versions and delete markers. The SDK puts
// them into two lists. Times do not tell the order, because S3 rounds them to seconds. It also replaces what XML does
// not have, so that the SDK decodes the rest: Ceph repeats the prefix and the markers of the request as they are.
type versionOrder struct{ markers []bool }

// install is an option of the request whose answer it is for.
func (o *versionOrder) install(options *s3.Options) {
	options.APIOptions = append(options.APIOptions, func(stack *middleware.Stack) error {
		return stack.Deserialize.Insert(
			middleware.DeserializeMiddlewareFunc("NoteOrder", o.note), "OperationDeserializer", middleware.After)
	})
}

// note stands between the connection and the SDK's decoder.
func (o *versionOrder) note(
	ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler,
) (middleware.DeserializeOutput, middleware.Metadata, error) {
	out, metadata, err := next.HandleDeserialize(ctx, in)
	response, ok := out.RawResponse.(*smithyhttp.Response)
	if err != nil || !ok {
		return out, metadata, err
	}
	o.markers = nil
	return out, metadata, replaceBody(response, func(body []byte) []byte {
		for rest := body; ; {
			_, after, found := bytes.Cut(rest, []byte("<")) // in texts it is escaped
			if !found {
				return body
			}
			switch rest = after; {
			case bytes.HasPrefix(rest, []byte("Version>")):
				o.markers = append(o.markers, false)
			case bytes.HasPrefix(rest, []byte("DeleteMarker>")):
				o.markers = append(o.markers, true)
			}
		}
	})
}

// nextVersions makes the request for the page of versions after one. The page ends with a key or a common prefix,
// which the marker of the next page names. Ceph does not encode this marker, where it encodes all others: then it is
// the name as it is, or has U+FFFD in place of what XML does not have. MinIO adds something to the name.
func nextVersions(in *s3.ListObjectVersionsInput, out *s3.ListObjectVersionsOutput) error {
	page := Page{Encoded: out.EncodingType == types.EncodingTypeUrl}
	last := ""
	note := func(encoded *string) {
		if key, ok := page.decode(encoded); ok {
			last = max(last, key)
		}
	}
	if n := len(out.Versions); n > 0 {
		note(out.Versions[n-1].Key)
	}
	if n := len(out.DeleteMarkers); n > 0 {
		note(out.DeleteMarkers[n-1].Key)
	}
	if n := len(out.CommonPrefixes); n > 0 {
		note(out.CommonPrefixes[n-1].Prefix)
	}
	marker, ok := page.decode(out.NextKeyMarker)
	if !ok || aws.ToString(out.NextKeyMarker) == last {
		marker = last
	}
	if marker == "" || marker == aws.ToString(in.KeyMarker) &&
		aws.ToString(out.NextVersionIdMarker) == aws.ToString(in.VersionIdMarker) {
		return s3error.New(syscall.EIO, "S3 answered a page of versions that does not tell where the next one begins")
	}
	in.KeyMarker, in.VersionIdMarker = &marker, out.NextVersionIdMarker
	return nil
}
