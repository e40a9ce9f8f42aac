package s3api

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// An interceptor is called instead of each request of a bucket, and calls send to make the request. in is the input of
// the request, such as *s3.PutObjectInput, and out its output.
type interceptor func(ctx context.Context, in any, send func() (out any, err error)) (out any, err error)

// call makes one attempt of a request, through the interceptor of the bucket, with the options that every request has.
func call[In, Out any](
	ctx context.Context, b *Bucket, request func(context.Context, *In, ...func(*s3.Options)) (*Out, error), in *In,
	opts ...func(*s3.Options),
) (*Out, error) {
	opts = append([]func(*s3.Options){b.requestOptions}, opts...)
	out, err := b.intercept(ctx, in, func() (any, error) { return request(ctx, in, opts...) })
	if err != nil {
		return nil, err
	}
	return out.(*Out), nil
}

func (b *Bucket) intercept(ctx context.Context, in any, send func() (any, error)) (any, error) {
	if b.interceptor == nil {
		return send()
	}
	return b.interceptor(ctx, in, send)
}
