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
	// maxBatch is how many events one request to the receiver has at most.
	maxBatch = 100

	// sweepInterval is how often a server looks for events that are left in the bucket. After failures it is up to
	// maxBackoff.
	sweepInterval = 15 * time.Second
	maxBackoff    = 5 * time.Minute

	// unconfirmedAfter is how long an event of another server may be unconfirmed until that server counts as dead. S3
	// may take minutes to complete a large upload or to copy a large object. A receiver that hears of a change before
	// it happens hears of it twice, and the event of a change without a reply may come late.
	unconfirmedAfter = 15 * time.Minute

	// leaseSweeps is after how many sweep intervals without a renewal the holder of the lease counts as dead.
	leaseSweeps = 4
)

// interval is the time between sweeps.
func (q *Queue) interval() time.Duration {
	return cmp.Or(q.SweepInterval, sweepInterval)
}

func (q *Queue) unconfirmedAfter() time.Duration {
	return cmp.Or(q.UnconfirmedAfter, unconfirmedAfter)
}

// Run sends events until ctx ends, and then leaves those that wait in memory in the bucket, confirmed. A queue that
// is retired and no longer used sends what there is, and ends: there may be no queue after it. What the receiver does
// not take then stays in the bucket.
func (q *Queue) Run(ctx context.Context) {
	defer q.wakeNext() // it could not sweep under the lease of this one
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

// runWithSettings is Run until the settings are replaced. It returns true if the queue has ended.
func (q *Queue) runWithSettings(ctx context.Context) (ended bool) {
	shortest := q.interval()
	q.lease.expiry = leaseSweeps * shortest
	interval := shortest
	timer := time.NewTimer(0)
	defer timer.Stop()
	measure := time.NewTicker(shortest)
	defer measure.Stop()
	for {
		select {
		case <-q.fresh.added:
			if err := q.sendFresh(ctx); err == nil && interval > shortest { // the receiver answers again
				interval = shortest
				timer.Reset(0)
			}
		case <-measure.C:
			if q.refusing() {
				_, _ = q.measure(ctx) // the next sweep logs what is wrong
			}
		case <-q.wake:
			timer.Reset(0)
		case <-timer.C:
			if err := panics.Catch(func() error { return q.sweep(ctx) }); err != nil && ctx.Err() == nil {
				q.Log.Warn("webhook: events wait in the bucket; the next sweep tries again", "err", err, "in", interval)
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
		q.Log.Warn("webhook: another server sends the events in the bucket when the lease of this one has expired",
			"err", err)
	}
}

// sendFresh sends a batch of the events that wait in memory, or leaves the batch in the bucket.
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
		_ = q.postpone(ctx, e) // logged
	}
}

// sendLast sends what waits in memory and in the bucket.
func (q *Queue) sendLast(ctx context.Context) {
	for batch := q.fresh.take(); len(batch) > 0; batch = q.fresh.take() {
		if err := panics.Catch(func() error { return q.send(ctx, batch) }); err != nil {
			q.postponeAll(ctx, batch) // the sweep tries again
		}
	}
	if err := panics.Catch(func() error { return q.sweep(ctx) }); err != nil && ctx.Err() == nil {
		q.Log.Warn("webhook: the queue is no longer in use, and its events stay in the bucket",
			"bucket", q.Bucket, "folder", q.queueFolder(), "err", err)
	}
}

// send gives events to the receiver, and then deletes them.
func (q *Queue) send(ctx context.Context, batch []Event) error {
	body, err := json.Marshal(batch)
	if err != nil {
		return err
	}
	if err := q.settings().Webhook.Post(ctx, body); err != nil {
		q.Observe(len(batch), false)
		return err
	}
	q.Observe(len(batch), true)
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer done()
	for _, e := range batch {
		if err := q.remove(ctx, e); err != nil {
			q.Log.Warn("webhook: an event is delivered and will be delivered again", "id", e.ID, "err", err)
		} else {
			q.released(e)
		}
		q.own(e.ID, false)
	}
	return nil
}

// sweep sends what is in the bucket, in the order of time, if this server holds the lease. It leaves the unconfirmed
// events of live servers.
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
		if errors.Is(err, errNoEvent) { // the others must not wait for it
			q.Log.Error("webhook: an object in the queue is not an event: delete it", "key", aws.ToString(o.Key))
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
			_ = q.sendFresh(ctx) // nobody waits for the backlog of another user
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
