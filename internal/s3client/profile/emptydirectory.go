package profile

import (
	"context"
	"slices"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/s3error"
)

// maxAttempts bounds how often a client sends a request that is refused. Next to three clients that do nothing but store and delete in one directory,
// versitygw refuses one request in twenty.
const maxAttempts = 8

// RepeatRefused makes a client send a request to store an object again, at once, where the server may have refused it for a moment only: see
// [driver.Profile.EmptyDirectoryCode]. The Server header of the answer tells which server it is.
func RepeatRefused(o *s3.Options) { o.APIOptions = append(o.APIOptions, repeatRefused) }

func repeatRefused(stack *middleware.Stack) error {
	const retry = "Retry" // which presigning lacks: it sends no request
	if _, sends := stack.Finalize.Get(retry); !sends {
		return nil
	}
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("RepeatRefused", func(
		ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
	) (out middleware.FinalizeOutput, metadata middleware.Metadata, err error) {
		request, ok := in.Request.(*smithyhttp.Request)
		if !ok || !slices.Contains([]string{"PutObject", "CopyObject"}, awsmiddleware.GetOperationName(ctx)) {
			return next.HandleFinalize(ctx, in)
		}
		for attempt := 1; ; attempt++ {
			out, metadata, err = next.HandleFinalize(ctx, middleware.FinalizeInput{Request: request.Clone()})
			if attempt == maxAttempts || !refusesForMoment(metadata, err) || request.RewindStream() != nil {
				return out, metadata, err
			}
		}
	}), retry, middleware.After)
}

func refusesForMoment(metadata middleware.Metadata, err error) bool {
	p, _ := driver.ProfileNamed(OfServer(ServerHeader(metadata)))
	return p.EmptyDirectoryCode != "" && s3error.HasCode(err, p.EmptyDirectoryCode)
}
