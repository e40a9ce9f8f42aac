package events

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/report"
)

// maxBacklog limits the bytes of a tenant's events in the bucket. This is about 500,000 events, whose listing takes
// 500 requests.
const maxBacklog = 256 << 20

func (q *Queue) maxBacklog() int { return cmp.Or(q.Backlog, maxBacklog) }

// A backlog counts the bytes of a tenant's events in the bucket, by user. It starts with the last listing and adds
// what this process has stored and deleted since. With several servers, the limit may be exceeded by what each of them
// stores between two listings.
type backlog struct {
	mu      sync.Mutex
	bytes   *report.Shares
	refused bool // a user was refused since the last listing
}

// ownerSuffix returns the end of the ID of each event of a user. It lets a listing show whose events are waiting.
func ownerSuffix(user string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(user))
	return fmt.Sprintf("%08x", h.Sum32())
}

// ownerOf returns the owner of an event. Two users with equal suffixes share one share.
func (q *Queue) ownerOf(id string) report.Owner {
	return report.Owner{Tenant: q.Tenant, User: id[max(0, len(id)-len(ownerSuffix(""))):]}
}

// reserve counts an event before it is stored. It returns false if the share of the user is full.
func (q *Queue) reserve(e Event) bool {
	q.backlog.mu.Lock()
	defer q.backlog.mu.Unlock()
	if !q.backlog.bytes.Fits(q.ownerOf(e.ID), e.bytes) {
		q.backlog.refused = true
		return false
	}
	q.backlog.bytes.Add(q.ownerOf(e.ID), e.bytes)
	return true
}

// releaseBytes subtracts an event that was deleted.
func (q *Queue) releaseBytes(e Event) {
	q.backlog.mu.Lock()
	defer q.backlog.mu.Unlock()
	q.backlog.bytes.Add(q.ownerOf(e.ID), -e.bytes)
}

// refusing reports whether a user was refused since the last listing.
func (q *Queue) refusing() bool {
	q.backlog.mu.Lock()
	defer q.backlog.mu.Unlock()
	return q.backlog.refused
}

// measure counts the events in the bucket, and reports whether there are any.
func (q *Queue) measure(ctx context.Context) (found bool, err error) {
	shares := report.NewShares(q.maxBacklog())
	pages := s3.NewListObjectsV2Paginator(
		q.settings().Client, &s3.ListObjectsV2Input{Bucket: &q.Bucket, Prefix: aws.String(q.queueFolder())})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return false, err
		}
		for _, o := range page.Contents {
			id := strings.TrimSuffix(aws.ToString(o.Key)[len(q.queueFolder()):], confirmedSuffix)
			shares.Add(q.ownerOf(id), int(aws.ToInt64(o.Size)))
			found = true
		}
	}
	q.backlog.mu.Lock()
	defer q.backlog.mu.Unlock()
	q.backlog.bytes, q.backlog.refused = shares, false
	return found, nil
}
