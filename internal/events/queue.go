// Package events tells a webhook of the files that users store, delete, rename and copy, at least once each.
//
// The queue lies in the bucket, below "PREFIX.babelftp/events/TENANT/", one object an event (S3 operations PutObject, GetObject, ListObjectsV2,
// DeleteObject). [NewFS] wraps a storage: it makes the object before a change, so no acknowledged change lacks its
// event. The object is deleted when the receiver has answered 2xx. So any server can send what another one has left.
//
// An event is confirmed when the change has succeeded. If the server dies in between, another one sends the event as unconfirmed.
package events

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/internal/panics"
	"github.com/babelftp/babelftp/internal/s3lock"
	"github.com/babelftp/babelftp/internal/webhook"
)

const (
	// requestTimeout bounds the requests to S3 that outlive a command.
	requestTimeout = 30 * time.Second

	// maxBatch is how many events one request to the receiver has at most.
	maxBatch = 100

	// maxFresh is how many events wait in memory. The others wait in the bucket only.
	maxFresh = 1000

	// sweepInterval is how often a server looks for events that are left in the bucket. After failures it is up to maxBackoff.
	sweepInterval = 15 * time.Second
	maxBackoff    = 5 * time.Minute

	// leaseSweeps is after how many sweep intervals without a renewal the holder of the lease counts as dead.
	leaseSweeps = 4

	// maxObject bounds the size of an event in the bucket, in bytes.
	maxObject = 64 << 10

	// confirmedSuffix ends the keys of confirmed events. A server that deletes an unconfirmed one, which it has sent, leaves the confirmed one.
	confirmedSuffix = ".confirmed"
)

// A Type is what has happened.
type Type string

// The types of events.
const (
	Upload Type = "upload"
	Delete Type = "delete"
	Rename Type = "rename"
	Copy   Type = "copy"
)

// An Event is what the receiver gets, as JSON.
type Event struct {
	ID     string    `json:"id"`
	Time   time.Time `json:"time"`
	Type   Type      `json:"type"`
	Tenant string    `json:"tenant"`
	User   string    `json:"user"`
	Path   string    `json:"path"`                // as the user sees it
	URI    string    `json:"s3_uri"`              // of the object
	ToPath string    `json:"to_path,omitempty"`   // of a rename or a copy
	ToURI  string    `json:"to_s3_uri,omitempty"` // of a rename or a copy
	Size   *int64    `json:"size,omitempty"`      // of an upload, in bytes
	ETag   string    `json:"etag,omitempty"`      // of an upload that is confirmed

	// Confirmed says that the change has succeeded. Otherwise its server has died or S3 has not answered, and the bucket shows whether it has.
	Confirmed bool `json:"confirmed"`

	key string // of its object in the bucket
}

// A Client is the part of S3 that a queue uses.
type Client interface {
	GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error)
	DeleteObject(context.Context, *s3.DeleteObjectInput, ...func(*s3.Options)) (*s3.DeleteObjectOutput, error)
	ListObjectsV2(context.Context, *s3.ListObjectsV2Input, ...func(*s3.Options)) (*s3.ListObjectsV2Output, error)
}

// Options is what a [Queue] needs. Observe may be nil.
type Options struct {
	Client  Client
	Bucket  string
	Prefix  string // of the tenant's keys
	Tenant  string
	Webhook *webhook.Webhook

	// UnconfirmedAfter is how long an event of another server may be unconfirmed until that server counts as dead.
	UnconfirmedAfter time.Duration
	// SweepInterval replaces that of the package in tests; 0 leaves it.
	SweepInterval time.Duration

	// Observe gets how many events the receiver got or refused.
	Observe func(events int, delivered bool)
	Log     *slog.Logger
}

// A Queue is the events of a tenant. Several servers share one.
type Queue struct {
	Options

	fresh chan Event // confirmed by this process, to be sent at once

	mu      sync.Mutex
	pending map[string]bool // the events that this process is to confirm or to send, by ID
	users   int             // logins that may make events
	retired bool            // by Retire
	unused  chan struct{}   // closed when the queue is retired and has no users

	// Of the goroutine of Run.
	seen  map[string]time.Time // when the sweep first saw an unconfirmed event
	lease *s3lock.Lock         // of the server which sweeps; where S3 has no conditional requests, two may sweep at once, and the receiver gets events twice
}

// NewQueue makes a queue, without a request.
func NewQueue(o Options) *Queue {
	if o.SweepInterval == 0 {
		o.SweepInterval = min(sweepInterval, max(o.UnconfirmedAfter, time.Second))
	}
	if o.Observe == nil {
		o.Observe = func(int, bool) {}
	}
	q := &Queue{
		Options: o, fresh: make(chan Event, maxFresh), pending: map[string]bool{}, seen: map[string]time.Time{}, unused: make(chan struct{}),
	}
	q.lease = s3lock.New(s3lock.Options{
		Client: func() s3lock.Client { return q.Client }, Bucket: q.Bucket, Key: q.folder() + "lease", Expiry: leaseSweeps * q.SweepInterval, Log: q.Log,
	})
	return q
}

// Use says that a login may make events, until it calls done. It comes before Retire.
func (q *Queue) Use() (done func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.users++
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.users--
		q.endUnused()
	}
}

// Retire lets Run end when the last login has called done. It is called once.
func (q *Queue) Retire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.retired = true
	q.endUnused()
}

func (q *Queue) endUnused() {
	if q.retired && q.users == 0 {
		close(q.unused)
	}
}

func nonce() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// folder is what the keys of the events start with. No user sees them, and no quota counts them: package keys of the driver reserves the name. Another
// tenant can have the same prefix, and another webhook.
func (q *Queue) folder() string { return q.Prefix + ".babelftp/events/" + q.Tenant + "/" }

// queueFolder is apart from the lease.
func (q *Queue) queueFolder() string { return q.folder() + "queue/" }

func (q *Queue) put(ctx context.Context, e Event) error {
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = q.Client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &q.Bucket, Key: &e.key, Body: bytes.NewReader(body), ContentType: aws.String("application/json"),
	})
	return err
}

func (q *Queue) remove(ctx context.Context, e Event) error {
	_, err := q.Client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &q.Bucket, Key: &e.key})
	return err
}

// begin makes an event durable before its change. Its ID sorts by time. The error is an EAGAIN.
func (q *Queue) begin(ctx context.Context, e Event) (Event, error) {
	e.Time = time.Now().UTC()
	e.ID, e.Tenant = e.Time.Format("20060102T150405.000000000Z")+"-"+nonce(), q.Tenant
	e.key = q.queueFolder() + e.ID
	q.own(e.ID, true)
	if err := q.put(ctx, e); err != nil {
		q.cancel(ctx, e) // S3 may have it although its answer was lost
		return e, fmt.Errorf("%w: the event of the change cannot be stored: %w", syscall.EAGAIN, err)
	}
	return e, nil
}

// end confirms an event whose change has ended without an error, or else forgets it. Where S3 may still perform the change, it stays unconfirmed.
// The error is that of the change, or an EAGAIN where the change must not be acknowledged.
func (q *Queue) end(ctx context.Context, e Event, err error) error {
	switch {
	case err == nil && time.Since(e.Time) >= q.UnconfirmedAfter:
		// Another server may have sent and deleted the event before the change.
		if err := q.postpone(ctx, e); err != nil {
			return fmt.Errorf("%w: the event of the change cannot be confirmed: %w", syscall.EAGAIN, err)
		}
	case err == nil:
		e.Confirmed = true
		select {
		case q.fresh <- e:
		default:
			_ = q.postpone(ctx, e) // if that fails, the event is there as unconfirmed
		}
	case errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EIO) || errors.Is(err, context.Canceled):
		q.own(e.ID, false)
	default:
		q.cancel(ctx, e)
	}
	return err
}

func (q *Queue) cancel(ctx context.Context, e Event) {
	defer q.own(e.ID, false)
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer done()
	if err := q.remove(ctx, e); err != nil {
		q.Log.Warn("webhook: an event of a failed command stays in the queue", "id", e.ID, "err", err)
	}
}

// postpone leaves an event to the sweep of any server, as confirmed.
func (q *Queue) postpone(ctx context.Context, e Event) error {
	defer q.own(e.ID, false)
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer done()
	confirmed := e
	confirmed.Confirmed, confirmed.key = true, q.queueFolder()+e.ID+confirmedSuffix
	if err := q.put(ctx, confirmed); err != nil {
		q.Log.Warn("webhook: an event will be sent as unconfirmed", "id", e.ID, "err", err)
		return err
	}
	if err := q.remove(ctx, e); err != nil {
		q.Log.Warn("webhook: an event will be sent as confirmed and as unconfirmed", "id", e.ID, "err", err)
	}
	return nil
}

func (q *Queue) own(id string, own bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if own {
		q.pending[id] = true
		return
	}
	delete(q.pending, id)
}

func (q *Queue) owns(id string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.pending[id]
}

// Run sends events until ctx ends, and then leaves those that wait in memory in the bucket, confirmed. A queue that is retired and no longer used
// sends what there is, and ends: there may be no queue after it. What the receiver does not take then stays in the bucket.
func (q *Queue) Run(ctx context.Context) {
	defer q.releaseLease(ctx)
	interval := q.SweepInterval
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case e := <-q.fresh:
			if err := q.sendFresh(ctx, e); err == nil && interval > q.SweepInterval { // the receiver answers again
				interval = q.SweepInterval
				timer.Reset(0)
			}
		case <-timer.C:
			if err := panics.Catch(func() error { return q.sweep(ctx) }); err != nil && ctx.Err() == nil {
				q.Log.Warn("webhook: events wait in the bucket; the next sweep tries again", "err", err, "in", interval)
				interval = min(2*interval, maxBackoff)
			} else {
				interval = q.SweepInterval
			}
			timer.Reset(interval)
		case <-q.unused:
			q.sendLast(ctx)
			return
		case <-ctx.Done():
			for {
				select {
				case e := <-q.fresh:
					_ = q.postpone(ctx, e) // logged
				default:
					return
				}
			}
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
		q.Log.Warn("webhook: another server sends the events in the bucket when the lease of this one has expired", "err", err)
	}
}

// sendFresh sends an event and those that wait in memory, or leaves them in the bucket.
func (q *Queue) sendFresh(ctx context.Context, first Event) error {
	batch := q.waiting(first)
	err := panics.Catch(func() error { return q.send(ctx, batch) })
	if err != nil {
		for _, e := range batch {
			_ = q.postpone(ctx, e) // logged
		}
	}
	return err
}

// sendLast sends what waits in memory and in the bucket.
func (q *Queue) sendLast(ctx context.Context) {
	for {
		select {
		case e := <-q.fresh:
			_ = q.sendFresh(ctx, e) // what is left the sweep tries again
			continue
		default:
		}
		break
	}
	if err := panics.Catch(func() error { return q.sweep(ctx) }); err != nil {
		q.Log.Warn("webhook: the queue is no longer in use, and its events stay in the bucket", "folder", q.queueFolder(), "err", err)
	}
}

// waiting adds to an event those that wait in memory.
func (q *Queue) waiting(e Event) []Event {
	batch := []Event{e}
	for len(batch) < maxBatch {
		select {
		case e := <-q.fresh:
			batch = append(batch, e)
		default:
			return batch
		}
	}
	return batch
}

// send gives events to the receiver, and then deletes them.
func (q *Queue) send(ctx context.Context, batch []Event) error {
	body, err := json.Marshal(batch)
	if err != nil {
		return err
	}
	if err := q.Webhook.Post(ctx, body); err != nil {
		q.Observe(len(batch), false)
		return err
	}
	q.Observe(len(batch), true)
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer done()
	for _, e := range batch {
		if err := q.remove(ctx, e); err != nil {
			q.Log.Warn("webhook: an event is delivered and will be delivered again", "id", e.ID, "err", err)
		}
		q.own(e.ID, false)
	}
	return nil
}

// sweep sends what is in the bucket, in the order of time, if this server holds the lease. It leaves the unconfirmed events of live servers.
func (q *Queue) sweep(ctx context.Context) error {
	pages := s3.NewListObjectsV2Paginator(q.Client, &s3.ListObjectsV2Input{Bucket: &q.Bucket, Prefix: aws.String(q.queueFolder())})
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
			if time.Since(first) < q.UnconfirmedAfter {
				continue
			}
		}
		e, err := q.get(ctx, aws.ToString(o.Key))
		if _, gone := errors.AsType[*types.NoSuchKey](err); gone {
			continue
		}
		if errors.Is(err, errNoEvent) { // the others must not wait for it
			q.Log.Error("webhook: an object in the queue is no event: delete it", "key", aws.ToString(o.Key))
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
		}
	}
	if len(batch) == 0 {
		return nil
	}
	return q.send(ctx, batch)
}

var errNoEvent = errors.New("no event")

func (q *Queue) get(ctx context.Context, key string) (e Event, err error) {
	out, err := q.Client.GetObject(ctx, &s3.GetObjectInput{Bucket: &q.Bucket, Key: &key})
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
	e.key = key
	return e, nil
}
