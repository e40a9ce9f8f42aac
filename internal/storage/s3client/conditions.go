package s3client

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// contenders is how many requests try to store one object at the same time. Of some servers that look first, and then
// store, more than one wins.
const contenders = 4

// probeConditions stores an object below a prefix of keys, and tries to replace it, whole and by parts, on the
// condition that there is none. Several requests at the same time do so too. What it has stored it deletes, as far as
// it may. The error is [ErrReplaced], or one of S3 or of the network.
func probeConditions(ctx context.Context, client *s3.Client, bucket, prefix string) error {
	x := &prober{client: client, bucket: bucket, key: newKey(prefix), profile: &driver.Profile{ExclusivePut: true}}
	defer func() { x.discard(ctx) }()
	if _, err := x.put(ctx, &s3.PutObjectInput{IfNoneMatch: aws.String("*")}); err != nil {
		return err
	}
	for _, try := range []func(context.Context) (bool, error){x.exclusivePut, x.exclusiveComplete} {
		switch exclusive, err := try(ctx); {
		case err != nil:
			return err
		case !exclusive:
			return ErrReplaced
		}
	}
	return nil
}

// discard deletes the versions of an object, as far as it may, also when ctx has ended. Where it may delete no
// versions, a delete marker hides them.
func discard(ctx context.Context, client *s3.Client, bucket, key string, versions []*string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	for _, version := range versions {
		exact := &s3.DeleteObjectInput{Bucket: &bucket, Key: &key, VersionId: version}
		if _, err := client.DeleteObject(ctx, exact); err != nil && version != nil {
			_, _ = client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: &key})
			return
		}
	}
}

// discard deletes all that the prober has stored.
func (x *prober) discard(ctx context.Context) { discard(ctx, x.client, x.bucket, x.key, x.versions) }

// ErrReplaced is that of a server which does not know If-None-Match.
var ErrReplaced = errors.New("S3 replaced an object although the request forbade it")

// refused wants a request to have failed because its condition does not hold.
func refused(err error) error {
	switch {
	case err == nil:
		return ErrReplaced
	case s3error.Status(err) == http.StatusPreconditionFailed:
		return nil
	}
	return err
}

// other is a prober of another object, which no one has stored.
func (x *prober) other(suffix string) *prober {
	return &prober{client: x.client, bucket: x.bucket, key: x.key + suffix, profile: x.profile}
}

// racePuts stores one object by several requests at the same time, each on the condition that there is none, and
// tells whether at most one succeeds.
func (x *prober) racePuts(ctx context.Context) (bool, error) {
	rival := x.other("-puts")
	defer func() { rival.discard(ctx) }()
	return rival.race(func(int) (*string, error) {
		out, err := x.other("-puts").put(ctx, &s3.PutObjectInput{IfNoneMatch: aws.String("*")})
		if err != nil {
			return nil, err
		}
		return out.VersionId, nil
	})
}

// raceCompletes is racePuts for uploads by parts.
func (x *prober) raceCompletes(ctx context.Context) (bool, error) {
	rival := x.other("-uploads")
	defer func() { rival.discard(ctx) }()
	var uploads [contenders]s3.CompleteMultipartUploadInput
	for i := range uploads {
		id, done, err := rival.upload(ctx)
		if err != nil {
			return false, err
		}
		defer done()
		part, err := rival.part(ctx, id, 1)
		if err != nil {
			return false, err
		}
		uploads[i] = s3.CompleteMultipartUploadInput{
			Bucket: &rival.bucket, Key: &rival.key, UploadId: id, IfNoneMatch: aws.String("*"),
			MultipartUpload: &types.CompletedMultipartUpload{Parts: []types.CompletedPart{{ETag: part.ETag,
				PartNumber: aws.Int32(1)}}},
		}
	}
	return rival.race(func(i int) (*string, error) {
		out, err := rival.client.CompleteMultipartUpload(ctx, &uploads[i])
		if err != nil {
			return nil, err
		}
		return out.VersionId, nil
	})
}

// race makes requests at the same time, which return the version that they have stored. It tells whether at most one
// has succeeded. The error is one without an answer.
func (x *prober) race(request func(i int) (version *string, err error)) (bool, error) {
	var (
		mu     sync.Mutex
		failed error
		all    sync.WaitGroup
	)
	for i := range contenders {
		all.Go(func() {
			version, err := panics.Result(func() (*string, error) { return request(i) })
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				x.versions = append(x.versions, version)
			case s3error.Status(err) == 0:
				failed = err
			}
		})
	}
	all.Wait()
	return len(x.versions) <= 1, failed
}
