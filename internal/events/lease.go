package events

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/s3error"
)

// leaseSweeps is after how many sweep intervals without a new version the holder of the lease counts as dead.
const leaseSweeps = 4

// A lease is what a server knows of the object that names the server which sweeps. Each sweep of the holder writes a new version. The age of a version
// is how long this server has seen it, so clocks may differ. Where S3 has no conditional requests, two servers may sweep at once, and the receiver
// gets events twice.
type lease struct {
	etag  string // of the version that was seen last
	since time.Time
	mine  bool
}

// holdLease takes or renews the lease, and says whether this server has it.
func (q *Queue) holdLease(ctx context.Context) (bool, error) {
	key := q.folder() + "lease"
	head, err := q.Client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &q.Bucket, Key: &key})
	put := &s3.PutObjectInput{Bucket: &q.Bucket, Key: &key, Body: strings.NewReader(q.holder + " " + nonce())}
	switch {
	case s3error.HasCode(err, "NotFound", "NoSuchKey"):
		put.IfNoneMatch = aws.String("*")
	case err != nil:
		return false, err
	default:
		if etag := aws.ToString(head.ETag); etag != q.lease.etag {
			q.lease = lease{etag: etag, since: time.Now()}
		}
		if !q.lease.mine && time.Since(q.lease.since) < leaseSweeps*q.SweepInterval {
			return false, nil
		}
		put.IfMatch = head.ETag
	}
	written, err := q.Client.PutObject(ctx, put)
	if s3error.IsUnconditional(err) {
		put.IfMatch, put.IfNoneMatch, put.Body = nil, nil, strings.NewReader(q.holder+" "+nonce())
		written, err = q.Client.PutObject(ctx, put)
	}
	if s3error.IsConditionFailed(err) {
		q.lease = lease{} // another server was faster
		return false, nil
	}
	if err != nil {
		return false, err
	}
	q.lease = lease{etag: aws.ToString(written.ETag), since: time.Now(), mine: true}
	return true, nil
}
