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

// A DeniedError is the error of a request that S3 denied. It names the permissions that the request needs.
type DeniedError struct {
	Needs []Need
	cause error
}

var _ contract.DeniedError = (*DeniedError)(nil)

// Needed lists the actions and their resources.
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

// Error includes the error of S3, which has the request ID.
func (e *DeniedError) Error() string {
	return "denied by S3: the IAM policy must allow " + e.Needed() + ": " + e.cause.Error()
}

// Unwrap returns the error of the SDK.
func (e *DeniedError) Unwrap() error { return e.cause }

// Explain is an option for S3 clients. It turns the error of each denied request into a [DeniedError]. If S3 denies
// single keys in its response to DeleteObjects, Explain adds the needed permissions to the message of each key.
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

// explainKeys adds the needed permissions to the keys that S3 refused in its response to DeleteObjects. The error of a
// key is a struct and not a Go error, so the text goes into its message.
func (r Region) explainKeys(parameters any, refused []types.Error) {
	in, ok := parameters.(*s3.DeleteObjectsInput)
	for i := range refused {
		if e := &refused[i]; ok && isDenial(aws.ToString(e.Code)) {
			key := types.ObjectIdentifier{Key: e.Key}
			if aws.ToString(e.VersionId) != "" { // MinIO sends an empty version ID
				key.VersionId = e.VersionId
			}
			needs := r.Needs(&s3.DeleteObjectsInput{
				Bucket: in.Bucket, Delete: &types.Delete{Objects: []types.ObjectIdentifier{key}}})
			denied := DeniedError{Needs: needs}
			e.Message = aws.String("the IAM policy must allow " + denied.Needed() + ": " + aws.ToString(e.Message))
		}
	}
}

// isDenial reports whether an error code of S3 means that the credentials lack a permission.
func isDenial(code string) bool { return code == "AccessDenied" || code == "AccessDeniedException" }

// denies reports whether S3 authenticated the request and denied it. The response to HEAD has no code, so the status
// decides.
func denies(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return false
	}
	if inner, ok := errors.AsType[*smithy.OperationError](err); ok && inner.Service() != s3.ServiceID {
		return false // STS denied the credentials, and no request reached S3
	}
	if api.ErrorCode() == http.StatusText(http.StatusForbidden) {
		response, ok := errors.AsType[*smithyhttp.ResponseError](err)
		return ok && response.HTTPStatusCode() == http.StatusForbidden
	}
	return isDenial(api.ErrorCode())
}
