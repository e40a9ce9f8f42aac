package s3api

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// A Presigner signs a request that another program will send. *s3.PresignClient implements it.
type Presigner interface {
	PresignGetObject(context.Context, *s3.GetObjectInput, ...func(*s3.PresignOptions)) (*v4.PresignedHTTPRequest, error)
}

var _ Presigner = (*s3.PresignClient)(nil)

// URI returns the name of an object as S3's own tools write it, percent-encoded: "s3://bucket/caf%C3%A9".
func (b *Bucket) URI(key string) string {
	return "s3://" + b.Name + s3object.Separator + s3object.PercentEncode(key)
}

// Presign returns a link with which any HTTP client can download an object under a file name while the link is valid.
// It first checks that the object exists.
func (b *Bucket) Presign(
	ctx context.Context, p Presigner, key, filename string, valid time.Duration,
) (string, error) {
	if _, _, err := b.Head(ctx, key); err != nil {
		return "", err
	}
	in := &s3.GetObjectInput{Bucket: &b.Name, Key: &key, ResponseContentDisposition: aws.String(attachment(filename))}
	request, err := p.PresignGetObject(ctx, in, s3.WithPresignExpires(valid), linkOptions)
	if err != nil {
		return "", s3error.FromSDK(err)
	}
	return request.URL, nil
}

// linkOptions keeps checksum parameters out of links. Browsers do not verify checksums, and some servers refuse the
// parameters.
func linkOptions(o *s3.PresignOptions) {
	o.ClientOptions = append(o.ClientOptions, s3.WithAPIOptions(WithoutChecksums))
}

// attachment returns the Content-Disposition with which a browser stores a download under a name in any script (RFC
// 6266 section 4.3, RFC 8187 section 3.2).
func attachment(name string) string {
	return "attachment; filename*=UTF-8''" + s3object.PercentEncode(name)
}
