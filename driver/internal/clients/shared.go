package clients

import (
	"context"
	"io"
	"math/bits"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/internal/fairness"
	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// Shared returns a client that makes the requests of a user, in turn with those of the others. To read the bytes of
// an object takes turns too: a client that is slow to take them holds none.
func Shared(client s3api.Client, user *fairness.User) s3api.Client {
	return Intercept(client, func(ctx context.Context, in any, send func() (any, error)) error {
		turn, err := begin(ctx, user)
		if err != nil {
			return err
		}
		out, err := send()
		if err != nil {
			turn.End()
			return err
		}
		if kind := kindOf(in, out); kind != (fairness.Kind{}) {
			turn.Answered(kind)
		}
		if out, ok := out.(*s3.GetObjectOutput); ok {
			turn.Pause()
			out.Body = &sharedBody{out.Body, ctx, user, turn}
			return nil
		}
		turn.End()
		return nil
	})
}

// begin waits for a turn. S3 is not idle meanwhile.
func begin(ctx context.Context, user *fairness.User) (*fairness.Turn, error) {
	resume := s3api.PauseIdle(ctx)
	defer resume()
	return user.Begin(ctx)
}

// kindOf returns what is known of the time that a request takes. The zero value is for those that take longer where
// S3 has more to do.
func kindOf(in, out any) fairness.Kind {
	sized := func(body io.Reader) int {
		if body, ok := body.(interface{ Size() int64 }); ok {
			return bits.Len64(uint64(body.Size()))
		}
		return 0
	}
	switch in := in.(type) {
	case *s3.HeadObjectInput:
		return fairness.Kind{Operation: "HeadObject"}
	case *s3.GetObjectInput:
		return fairness.Kind{Operation: "GetObject"}
	case *s3.DeleteObjectInput:
		return fairness.Kind{Operation: "DeleteObject"}
	case *s3.PutObjectInput:
		return fairness.Kind{Operation: "PutObject", Size: sized(in.Body)}
	case *s3.UploadPartInput:
		return fairness.Kind{Operation: "UploadPart", Size: sized(in.Body)}
	case *s3.ListObjectsV2Input:
		out := out.(*s3.ListObjectsV2Output)
		return fairness.Kind{Operation: "ListObjectsV2",
			Size: bits.Len(uint(len(out.Contents) + len(out.CommonPrefixes)))}
	}
	return fairness.Kind{}
}

// A sharedBody is the bytes of an object.
type sharedBody struct {
	io.ReadCloser
	ctx  context.Context
	user *fairness.User
	turn *fairness.Turn
}

func (b *sharedBody) Read(p []byte) (int, error) {
	if !b.turn.Resume() {
		turn, err := begin(b.ctx, b.user)
		if err != nil {
			return 0, err
		}
		b.turn = turn
	}
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.turn.End()
	} else {
		b.turn.Pause()
	}
	return n, err
}

func (b *sharedBody) Close() error {
	b.turn.End()
	return b.ReadCloser.Close()
}
