package tracing

import (
	"context"
	"reflect"
	"strconv"

	"github.com/aws/smithy-go/middleware"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/babelftp/babelftp/internal/report/sessionlog"
)

type bucketKey struct{}

// Observe adds a middleware that stores the bucket for [AddRequest] in the context, because later steps of the SDK do
// not know it. A nil tracer adds nothing.
func (t *Tracer) Observe(stack *middleware.Stack) error {
	if t == nil {
		return nil
	}
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("babelftp-traces", func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		if trace.SpanContextFromContext(ctx).IsSampled() {
			ctx = context.WithValue(ctx, bucketKey{}, bucketOf(in.Parameters))
		}
		return next.HandleInitialize(ctx, in)
	}), middleware.After)
}

// bucketOf returns the bucket in the input of an operation, or "". The inputs have a field for it, but no common
// method.
func bucketOf(input any) string {
	v := reflect.Indirect(reflect.ValueOf(input))
	if v.Kind() != reflect.Struct {
		return ""
	}
	if field := v.FieldByName("Bucket"); field.Kind() == reflect.Pointer && !field.IsNil() &&
		field.Elem().Kind() == reflect.String {
		return field.Elem().String()
	}
	return ""
}

// AddRequest adds the span of a request to S3, if its command is traced.
func AddRequest(ctx context.Context, r *sessionlog.Request) {
	parent := trace.SpanFromContext(ctx)
	if !parent.SpanContext().IsSampled() {
		return
	}
	about := []attribute.KeyValue{attribute.String("rpc.system.name", "aws-api"),
		attribute.String("rpc.method", r.Operation)}
	owner, _ := ctx.Value(ownerKey{}).([]attribute.KeyValue)
	about = append(about, owner...)
	if bucket, _ := ctx.Value(bucketKey{}).(string); bucket != "" {
		about = append(about, attribute.String("aws.s3.bucket", bucket))
	}
	if r.ID != "" {
		about = append(about, attribute.String("aws.request_id", text(r.ID)))
	}
	if r.Retry > 0 {
		about = append(about, attribute.Int("http.request.resend_count", r.Retry))
	}
	code, err := strconv.Atoi(r.Status)
	if err == nil {
		about = append(about, attribute.Int("http.response.status_code", code))
	}
	failed := r.Status == sessionlog.NoResponse || code >= 400 && !expected(code)
	if failed {
		about = append(about, attribute.String("error.type", r.Status))
	}
	_, span := parent.TracerProvider().Tracer(library).Start(ctx, r.Service+"."+r.Operation,
		trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(r.Begin), trace.WithAttributes(about...))
	if failed {
		span.SetStatus(codes.Error, "")
	}
	span.End(trace.WithTimestamp(r.Begin.Add(r.Duration)))
}

// expected reports whether a status only means that the object does not exist, or is not the expected one.
func expected(code int) bool {
	const notFound, preconditionFailed, noRange = 404, 412, 416
	return code == notFound || code == preconditionFailed || code == noRange
}
