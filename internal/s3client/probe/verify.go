package probe

import (
	"context"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/s3error"
)

// Verify has a server show what its profile promises: a request on a condition that holds succeeds, and one on a condition that does not hold fails.
// It returns what the server does otherwise, in words for an operator. Its object lies below a prefix of keys. A denied request shows nothing. The error
// is one of the network.
func Verify(ctx context.Context, client *s3.Client, bucket, prefix string, p driver.Profile) (broken []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	p.ExclusivePut, p.ExclusiveComplete = p.PutsOn(true), p.CompletesOn(true)
	x := &prober{client: client, bucket: bucket, key: newKey(prefix), profile: &p}
	defer func() { discard(ctx, client, bucket, x.key, x.versions) }()
	if err := x.putAgain(ctx); err != nil {
		return nil, unanswered(err)
	}
	not := func(try func(context.Context) (bool, error)) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			shown, err := try(ctx)
			return !shown, err
		}
	}
	for _, promise := range []struct {
		made bool
		what string
		try  func(context.Context) (bool, error)
	}{
		{p.ExclusivePut, "PutObject with If-None-Match", x.exclusivePut},
		{p.ConditionalPut, "PutObject with If-Match", x.conditionalPut},
		{p.ExclusiveComplete, "CompleteMultipartUpload with If-None-Match", x.exclusiveComplete},
		{p.ConditionalComplete, "CompleteMultipartUpload with If-Match", x.conditionalComplete},
		{p.PartCopy, "UploadPartCopy", x.partCopy},
		{p.PartCopy && !p.UncheckedSources, "x-amz-copy-source-if-match of an object that was stored by parts", not(x.uncheckedSources)},
		{!p.FewParts, "10,000 parts", not(x.fewParts)},
		{p.ConditionalDelete, "DeleteObject with If-Match", x.conditionalDelete},
		{p.ConditionalBatchDelete, "DeleteObjects with ETags", x.conditionalBatchDelete},
		{p.BatchDelete, "DeleteObjects", x.batchDelete},
	} {
		if !promise.made {
			continue
		}
		kept, err := promise.try(ctx)
		switch status := s3error.Status(err); {
		case err != nil && status == 0:
			return broken, err
		case !kept && status != http.StatusForbidden && status < http.StatusInternalServerError, status == http.StatusNotImplemented:
			broken = append(broken, promise.what)
		}
	}
	return broken, nil
}

// unanswered returns an error without an answer of S3.
func unanswered(err error) error {
	if s3error.Status(err) != 0 {
		return nil
	}
	return err
}
