package s3client

import (
	"context"
	"net/http"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// contenders is how many requests try to store one object at the same time. Of some servers that look first, and then
// store, more than one wins.
const contenders = 4

// probeConditions stores an object below a prefix of keys, and tries to replace it, whole and by parts, on the
// condition that there is none. Several requests at the same time do so too. It tells whether the object was kept.
func probeConditions(ctx context.Context, s *scratch, prefix string) (kept bool, err error) {
	x := newSample(s, prefix, &driver.Profile{ExclusivePut: true})
	if _, err := x.put(ctx, &s3.PutObjectInput{IfNoneMatch: aws.String("*")}); err != nil {
		return false, err
	}
	if kept, err := x.exclusivePut(ctx); !kept {
		return false, err
	}
	return x.exclusiveComplete(ctx)
}

// refused tells whether a request has failed because its condition does not hold. The error is another one.
func refused(err error) (bool, error) {
	if s3error.Status(err) == http.StatusPreconditionFailed {
		return true, nil
	}
	return false, err
}

// racePuts stores one object by several requests at the same time, each on the condition that there is none, and
// tells whether at most one succeeds.
func (x *sample) racePuts(ctx context.Context) (bool, error) {
	return race(func(int) error {
		_, err := x.other("-puts").put(ctx, &s3.PutObjectInput{IfNoneMatch: aws.String("*")})
		return err
	})
}

// raceCompletes is racePuts for uploads by parts.
func (x *sample) raceCompletes(ctx context.Context) (bool, error) {
	rival := x.other("-uploads")
	var uploads [contenders]*s3.CompleteMultipartUploadInput
	for i := range uploads {
		in, err := rival.uploadWhole(ctx)
		if err != nil {
			return false, err
		}
		in.IfNoneMatch = aws.String("*")
		uploads[i] = in
	}
	return race(func(i int) error {
		_, err := rival.CompleteMultipartUpload(ctx, uploads[i])
		return err
	})
}

// race makes requests at the same time, and tells whether at most one has succeeded. The error is one without an
// answer.
func race(request func(i int) error) (bool, error) {
	var (
		mu     sync.Mutex
		stored int
		failed error
		all    sync.WaitGroup
	)
	for i := range contenders {
		all.Go(func() {
			err := panics.Catch(func() error { return request(i) })
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				stored++
			case s3error.Status(err) == 0:
				failed = err
			}
		})
	}
	all.Wait()
	return stored <= 1 && failed == nil, failed
}
