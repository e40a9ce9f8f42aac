package s3api

import (
	"context"
	"io"
	"math/bits"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/internal/s3object"
	"github.com/babelftp/babelftp/internal/base/schedule"
)

// InTurns returns the bucket for the requests of a user, which share the connections fairly with the requests of other
// users. Reading the body of an object takes turns too, so that a client that reads slowly does not block others.
func (b *Bucket) InTurns(user *schedule.User) *Bucket {
	shared := *b
	shared.interceptor = takeTurns(user)
	return &shared
}

func takeTurns(user *schedule.User) interceptor {
	return func(ctx context.Context, in any, send func() (any, error)) (any, error) {
		turn, err := begin(ctx, user)
		if err != nil {
			return nil, err
		}
		out, err := send()
		if err != nil {
			turn.End()
			return nil, err
		}
		if kind := kindOf(in, out); kind != (schedule.Kind{}) {
			turn.Responded(kind)
		}
		if object, ok := out.(*s3.GetObjectOutput); ok {
			turn.Pause()
			object.Body = &sharedBody{object.Body, ctx, user, turn}
			return out, nil
		}
		turn.End()
		return out, nil
	}
}

// begin waits for a turn. This time does not count as S3 being idle.
func begin(ctx context.Context, user *schedule.User) (*schedule.Turn, error) {
	resume := pauseIdle(ctx)
	defer resume()
	return user.Begin(ctx)
}

// kindOf returns the kind of a request, by which the scheduler learns how long such requests take. It returns the zero
// value for requests whose duration depends on the amount of work for S3.
func kindOf(in, out any) schedule.Kind {
	sized := func(body io.Reader) int {
		if body, ok := body.(s3object.Content); ok {
			return bits.Len64(uint64(body.Size()))
		}
		return 0
	}
	switch in := in.(type) {
	case *s3.HeadObjectInput:
		return schedule.Kind{Operation: "HeadObject"}
	case *s3.GetObjectInput:
		return schedule.Kind{Operation: "GetObject"}
	case *s3.DeleteObjectInput:
		return schedule.Kind{Operation: "DeleteObject"}
	case *s3.PutObjectInput:
		return schedule.Kind{Operation: "PutObject", Size: sized(in.Body)}
	case *s3.UploadPartInput:
		return schedule.Kind{Operation: "UploadPart", Size: sized(in.Body)}
	case *s3.ListObjectsV2Input:
		out := out.(*s3.ListObjectsV2Output)
		return schedule.Kind{Operation: "ListObjectsV2",
			Size: bits.Len(uint(len(out.Contents) + len(out.CommonPrefixes)))}
	}
	return schedule.Kind{}
}

// A sharedBody is the body of an object, whose reads take turns.
type sharedBody struct {
	io.ReadCloser
	ctx  context.Context
	user *schedule.User
	turn *schedule.Turn
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
