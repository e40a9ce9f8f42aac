package events

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/internal/base/panics"
)

const (
	// maxBatch limits the events in one request to the receiver.
	maxBatch = 100

	// sweepInterval is the time between two sweeps of the bucket for waiting events. After failures it grows up to
	// maxBackoff.
	sweepInterval = 15 * time.Second
	maxBackoff    = 5 * time.Minute

	// unconfirmedAfter is the age at which an unconfirmed event of another server is sent, because that server is
	// presumed dead. S3 may take minutes to complete a large upload or to copy a large object. If the other server is
	// alive, the receiver gets the event twice. The event of a change without a reply may be late.
	unconfirmedAfter = 15 * time.Minute

	// leaseSweeps is the number of sweep intervals without a renewal after which a lease expires.
	leaseSweeps = 4
)

func (q *Queue) interval() time.Duration {
	return cmp.Or(q.SweepInterval, sweepInterval)
}

func (q *Queue) unconfirmedAfter() time.Duration {
	return cmp.Or(q.UnconfirmedAfter, unconfirmedAfter)
}

// Run sends events until ctx ends. Then it stores the events that are waiting in memory in the bucket, as confirmed.
// If the queue is retired and unused, Run sends all events that are left and returns, because there may be no other
// queue to send them. If the receiver does not accept them, they stay in the bucket.
func (q *Queue) Run(ctx context.Context) {
	defer q.wakeNext() // the next queue cannot sweep until this lease is released
	defer q.releaseLease(ctx)
	for ended := false; !ended && ctx.Err() == nil; {
		sending, stop := context.WithCancel(ctx)
		q.mu.Lock()
		q.restart = stop
		q.mu.Unlock()
		ended = q.runWithSettings(sending)
		stop()
	}
}

// runWithSettings does the work of Run until the settings change. It returns true if the queue has ended.
func (q *Queue) runWithSettings(ctx context.Context) (ended bool) {
	shortest := q.interval()
	q.lease.Expiry = leaseSweeps * shortest
	interval := shortest
	timer := time.NewTimer(0)
	defer timer.Stop()
	measure := time.NewTicker(shortest)
	defer measure.Stop()
	for {
		select {
		case <-q.fresh.added:
			if err := q.sendFresh(ctx); err == nil && interval > shortest { // the receiver responds again
				interval = shortest
				timer.Reset(0)
			}
		case <-measure.C:
			if q.refusing() {
				_, _ = q.measure(ctx) // the next sweep logs the error
			}
		case <-q.wake:
			timer.Reset(0)
		case <-timer.C:
			if err := panics.Catch(func() error { return q.sweep(ctx) }); err != nil && ctx.Err() == nil {
				q.Log.Warn("webhook: sending events failed; the next sweep retries", "err", err, "in", interval)
				interval = min(2*interval, maxBackoff)
			} else {
				interval = shortest
			}
			timer.Reset(interval)
		case <-q.unused:
			q.sendLast(ctx)
			return ctx.Err() == nil
		case <-ctx.Done():
			for batch := q.fresh.take(); len(batch) > 0; batch = q.fresh.take() {
				q.postponeAll(ctx, batch)
			}
			return false
		}
	}
}

// releaseLease lets another queue sweep at once.
func (q *Queue) releaseLease(ctx context.Context) {
	if !q.lease.Held() {
		return
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer done()
	if err := q.lease.Release(ctx); err != nil {
		q.Log.Warn("webhook: releasing the lease failed; other servers wait until it expires",
			"err", err)
	}
}

// sendFresh sends a batch of the events in memory. If that fails, it stores them in the bucket.
func (q *Queue) sendFresh(ctx context.Context) error {
	batch := q.fresh.take()
	if len(batch) == 0 {
		return nil
	}
	err := panics.Catch(func() error { return q.send(ctx, batch) })
	if err != nil {
		q.postponeAll(ctx, batch)
	}
	return err
}

func (q *Queue) postponeAll(ctx context.Context, batch []Event) {
	for _, e := range batch {
		_ = q.postpone(ctx, e) // already logged
	}
}

// sendLast sends the events that are left in memory and in the bucket.
func (q *Queue) sendLast(ctx context.Context) {
	for batch := q.fresh.take(); len(batch) > 0; batch = q.fresh.take() {
		if err := panics.Catch(func() error { return q.send(ctx, batch) }); err != nil {
			q.postponeAll(ctx, batch) // the sweep sends them again
		}
	}
	if err := panics.Catch(func() error { return q.sweep(ctx) }); err != nil && ctx.Err() == nil {
		q.Log.Warn("webhook: sending the last events of a retired queue failed; they stay in the bucket",
			"bucket", q.Bucket, "folder", q.queueFolder(), "err", err)
	}
}

// send posts events to the receiver, and then deletes them.
func (q *Queue) send(ctx context.Context, batch []Event) error {
	body, err := json.Marshal(batch)
	if err != nil {
		return err
	}
	if err := q.settings().Webhook.Post(ctx, body); err != nil {
		q.Observe(len(batch), false)
		if q.failure.Load() == nil {
			q.failure.Store(&Failure{time.Now(), err})
		}
		return err
	}
	q.Observe(len(batch), true)
	q.failure.Store(nil)
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer done()
	for _, e := range batch {
		if err := q.remove(ctx, e); err != nil {
			q.Log.Warn("webhook: deleting a delivered event failed; it will be sent again", "id", e.ID, "err", err)
		} else {
			q.releaseBytes(e)
		}
		q.setOwned(e.ID, false)
	}
	return nil
}

// sweep sends the events in the bucket, oldest first, if this server holds the lease. It skips the unconfirmed events
// of live servers.
func (q *Queue) sweep(ctx context.Context) error {
	if found, err := q.measure(ctx); err != nil || !found {
		q.seen = nil
		return err
	}
	pages := s3.NewListObjectsV2Paginator(
		q.settings().Client, &s3.ListObjectsV2Input{Bucket: &q.Bucket, Prefix: aws.String(q.queueFolder())})
	present := map[string]time.Time{}
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		if len(page.Contents) > 0 {
			if held, err := q.lease.Hold(ctx); err != nil || !held {
				return err
			}
		}
		if err := q.sendPage(ctx, page.Contents, present); err != nil {
			return err
		}
	}
	q.seen = present
	return nil
}

func (q *Queue) sendPage(ctx context.Context, objects []types.Object, present map[string]time.Time) error {
	var batch []Event
	for _, o := range objects {
		id, confirmed := strings.CutSuffix(aws.ToString(o.Key)[len(q.queueFolder()):], confirmedSuffix)
		if q.owns(id) {
			continue
		}
		if !confirmed {
			first, again := q.seen[id]
			if !again {
				first = time.Now()
			}
			present[id] = first
			if time.Since(first) < q.unconfirmedAfter() {
				continue
			}
		}
		e, err := q.get(ctx, aws.ToString(o.Key))
		if _, gone := errors.AsType[*types.NoSuchKey](err); gone {
			continue
		}
		if errors.Is(err, errNoEvent) { // do not block the other events
			q.Log.Error("webhook: invalid event in the queue; delete the object", "key", aws.ToString(o.Key))
			continue
		}
		if err != nil {
			return err
		}
		if batch = append(batch, e); len(batch) == maxBatch {
			if err := q.send(ctx, batch); err != nil {
				return err
			}
			batch = nil
			_ = q.sendFresh(ctx) // no user waits for the backlog of another one
		}
	}
	if len(batch) == 0 {
		return nil
	}
	return q.send(ctx, batch)
}

var errNoEvent = errors.New("no event")

func (q *Queue) get(ctx context.Context, key string) (e Event, err error) {
	out, err := q.settings().Client.GetObject(ctx, &s3.GetObjectInput{Bucket: &q.Bucket, Key: &key})
	if err != nil {
		return e, err
	}
	defer out.Body.Close()
	body, err := io.ReadAll(io.LimitReader(out.Body, maxObject))
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(body, &e); err != nil || e.ID == "" {
		return e, errNoEvent
	}
	e.key, e.bytes = key, len(body)
	return e, nil
}
