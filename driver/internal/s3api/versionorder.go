package s3api

import (
	"bytes"
	"context"
	"io"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// A versionOrder notes in which order an answer to ListObjectVersions has versions and delete markers. The SDK puts
// them into two lists. Times do not tell the order, because S3 rounds them to seconds.
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
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return out, metadata, &smithy.DeserializationError{Err: err}
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{bytes.NewReader(body), response.Body}
	o.markers = nil
	for {
		_, rest, found := bytes.Cut(body, []byte("<")) // in texts it is escaped
		if !found {
			return out, metadata, nil
		}
		switch body = rest; {
		case bytes.HasPrefix(body, []byte("Version>")):
			o.markers = append(o.markers, false)
		case bytes.HasPrefix(body, []byte("DeleteMarker>")):
			o.markers = append(o.markers, true)
		}
	}
}
