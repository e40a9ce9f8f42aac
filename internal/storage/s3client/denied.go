package s3client

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/babelftp/babelftp/internal/base/contract"
)

// A DeniedError is the error of a request that S3 denies to the credentials. It says what the request needs.
type DeniedError struct {
	Needs []Need
	cause error
}

var _ contract.DeniedError = (*DeniedError)(nil)

// Needed names the actions and their resources.
func (e *DeniedError) Needed() string {
	var always, cases []string
	for _, n := range e.Needs {
		switch {
		case n.Case == Always:
			always = append(always, n.String())
		case n.Resource == "":
			cases = append(cases, n.Action+" on the key if "+string(n.Case))
		default:
			cases = append(cases, n.String()+" if "+string(n.Case))
		}
	}
	text := strings.Join(always, ", ")
	if len(cases) > 0 {
		text += " (and " + strings.Join(cases, ", ") + ")"
	}
	return text
}

// Error has the error of S3 too, with the ID of the request.
func (e *DeniedError) Error() string {
	return "S3 denies it: the IAM policy must allow " + e.Needed() + ": " + e.cause.Error()
}

// Unwrap returns the error of the SDK.
func (e *DeniedError) Unwrap() error { return e.cause }

// Explain is an option of S3 clients. It makes the error of each request that S3 denies a [DeniedError]. Of a key that
// S3 denies in its answer to DeleteObjects, the message says what it needs.
func (r Region) Explain(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("babelftp-iam", func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		out, metadata, err := next.HandleInitialize(ctx, in)
		if err != nil && denies(err) {
			if needs := r.Needs(in.Parameters); len(needs) > 0 {
				err = &DeniedError{Needs: needs, cause: err}
			}
		}
		if deleted, ok := out.Result.(*s3.DeleteObjectsOutput); err == nil && ok {
			r.explainKeys(in.Parameters, deleted.Errors)
		}
		return out, metadata, err
	}), middleware.Before)
}

// explainKeys is Explain for the keys that S3 refuses in its answer to a DeleteObjects. The error of a key is no Go
// error, so there is room in its message only.
func (r Region) explainKeys(parameters any, refused []types.Error) {
	in, ok := parameters.(*s3.DeleteObjectsInput)
	for i := range refused {
		if e := &refused[i]; ok && isDenial(aws.ToString(e.Code)) {
			key := types.ObjectIdentifier{Key: e.Key}
			if aws.ToString(e.VersionId) != "" { // MinIO answers with an empty one
				key.VersionId = e.VersionId
			}
			needs := r.Needs(&s3.DeleteObjectsInput{
				Bucket: in.Bucket, Delete: &types.Delete{Objects: []types.ObjectIdentifier{key}}})
			denied := DeniedError{Needs: needs}
			e.Message = aws.String("the IAM policy must allow " + denied.Needed() + ": " + aws.ToString(e.Message))
		}
	}
}

// isDenial tells whether a code of S3 says that the credentials may not do it.
func isDenial(code string) bool { return code == "AccessDenied" || code == "AccessDeniedException" }

// denies tells whether S3 knows who asks, and denies the request. The answer to HEAD has no code, so its status counts.
func denies(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return false
	}
	if inner, ok := errors.AsType[*smithy.OperationError](err); ok && inner.Service() != s3.ServiceID {
		return false // STS denies the credentials, and S3 has got no request
	}
	if api.ErrorCode() == http.StatusText(http.StatusForbidden) {
		response, ok := errors.AsType[*smithyhttp.ResponseError](err)
		return ok && response.HTTPStatusCode() == http.StatusForbidden
	}
	return isDenial(api.ErrorCode())
}
