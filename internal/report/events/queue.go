// Package events tells a webhook about the files that users store, delete, rename and copy. Each event is delivered at
// least once.
//
// The queue of a tenant is stored in its bucket, below "PREFIX.babelftp/events/TENANT/", with one object per event.
// [Queue.Begin] stores the object before a change, so that there is an event for every acknowledged change. The object
// is deleted when the receiver has responded with 2xx. If a server dies, any other server can send its events.
//
// An event is confirmed when the change has succeeded. If the server dies before that, another server sends the event
// as unconfirmed.
//
// A [Sender] runs the queues of a server. It sends confirmed events directly from memory in batches, taking turns
// between users. Events in the bucket are only sent by regular sweeps of one server, the holder of a [cas.Lease].
package events

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/base/s3error"
	"github.com/babelftp/babelftp/internal/base/web"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/storage/cas"
	"github.com/babelftp/babelftp/internal/storage/view"
)

const (
	// requestTimeout limits requests to S3 that may outlive a command.
	requestTimeout = 30 * time.Second

	// maxLease limits the size of the lease, in bytes.
	maxLease = 1 << 10
	// maxObject limits the size of an event in the bucket, in bytes.
	maxObject = 64 << 10

	// confirmedSuffix is the end of the keys of confirmed events. Because the keys differ, a server that deletes an
	// unconfirmed event after sending it does not delete the confirmed one.
	confirmedSuffix = ".confirmed"
)

// An Event is the JSON object that the receiver gets.
type Event struct {
	ID     string    `json:"id"`
	Time   time.Time `json:"time"`
	Type   view.Kind `json:"type"`
	Tenant string    `json:"tenant"`
	User   string    `json:"user"`
	Path   string    `json:"path"`                // as the user sees it
	URI    string    `json:"s3_uri"`              // URI of the object
	ToPath string    `json:"to_path,omitempty"`   // rename or copy
	ToURI  string    `json:"to_s3_uri,omitempty"` // rename or copy; for a refused file, the object in the quarantine
	Size   *int64    `json:"size,omitempty"`      // upload: size in bytes
	ETag   string    `json:"etag,omitempty"`      // confirmed upload
	Reason string    `json:"reason,omitempty"`    // reason why a file was refused

	// Confirmed means that the change has succeeded. Otherwise its server died or S3 did not respond, and the receiver
	// has to check the bucket.
	Confirmed bool `json:"confirmed"`

	key   string    // key of the object in the bucket
	bytes int       // size of the object in the bucket
	steps bool      // the change has several steps and may fail after some of them
	begun time.Time // has a monotonic clock, unlike Time
}

// A Client is the part of the S3 client that a queue uses.
type Client interface {
	GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error)
	DeleteObject(context.Context, *s3.DeleteObjectInput, ...func(*s3.Options)) (*s3.DeleteObjectOutput, error)
	ListObjectsV2(context.Context, *s3.ListObjectsV2Input, ...func(*s3.Options)) (*s3.ListObjectsV2Output, error)
}

// Options holds the fixed options of a [Queue]. Observe may be nil. Without a Memory, the queue uses its own.
type Options struct {
	Bucket string
	Prefix string // prefix of the tenant's keys
	Tenant string

	Memory *Memory

	// SweepInterval, UnconfirmedAfter and Backlog override the defaults in tests, unless they are 0.
	SweepInterval, UnconfirmedAfter time.Duration
	Backlog                         int

	// Observe is called with the number of events that the receiver accepted or refused.
	Observe func(events int, delivered bool)
	Log     *slog.Logger
}

// Settings holds the options that may change while a [Queue] runs.
type Settings struct {
	Client  Client
	Webhook *web.Webhook
}

// A Queue is the event queue of a tenant. Several servers share one queue in the bucket.
type Queue struct {
	Options

	fresh   *waiting // confirmed by this process, to be sent at once
	backlog backlog
	wake    chan struct{} // makes Run sweep at once

	mu      sync.Mutex
	next    *Queue // queue that replaced this one after a reload, or nil
	current *Settings
	restart context.CancelFunc // makes Run start again with the new settings
	pending map[string]bool    // IDs of events that this process will confirm or send

	failure atomic.Pointer[Failure]

	users   int           // logins that may create events
	retired bool          // set by Retire
	unused  chan struct{} // closed when the queue is retired and has no users

	// Used by the goroutine of Run only.
	seen map[string]time.Time // when a sweep first saw an unconfirmed event
	// Lease of the server that sweeps. If S3 has no conditional requests, two servers may sweep at the same time, and
	// the receiver gets events twice.
	lease *cas.Lease
}

// A Failure says why events are not delivered, and since when.
type Failure struct {
	Since time.Time
	Err   error // of the first attempt that failed
}

// Failure returns the failure of a queue whose receiver did not accept the last events, or nil.
func (q *Queue) Failure() *Failure { return q.failure.Load() }

// NewQueue returns a queue. It sends no request.
func NewQueue(o Options, s *Settings) *Queue {
	if o.Observe == nil {
		o.Observe = func(int, bool) {}
	}
	if o.Memory == nil {
		o.Memory = NewMemory()
	}
	q := &Queue{
		Options: o, current: s, restart: func() {},
		fresh: newWaiting(o.Memory), wake: make(chan struct{}, 1), pending: map[string]bool{},
		seen: map[string]time.Time{}, unused: make(chan struct{}),
	}
	q.backlog.bytes = report.NewShares(q.maxBacklog())
	bucket := &cas.Bucket{
		Client: func() cas.Client { return q.settings().Client }, Name: q.Bucket, MaxSize: maxLease,
		Unconditional: true,
	}
	q.lease = cas.NewLease(bucket, q.folder()+"lease", 0, q.Log)
	return q
}

func (q *Queue) settings() *Settings {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.current
}

// Configure replaces the settings. All waiting events are sent to the new receiver. A request to the old receiver is
// canceled, because a hanging one would delay events, and its events are sent again.
func (q *Queue) Configure(s *Settings) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s != q.current {
		before := q.current.Webhook
		q.current = s
		q.restart()
		if before != s.Webhook {
			before.Close()
		}
	}
}

// adoptReceiver sends the events of this queue to the receiver of the next queue. The next queue may hold the lease,
// so it is told to sweep when this queue leaves events in the bucket.
func (q *Queue) adoptReceiver(next *Queue) {
	s := *next.settings()
	q.mu.Lock()
	q.next, s.Client = next, q.current.Client
	q.mu.Unlock()
	q.Configure(&s)
}

// wakeNext makes the next queue sweep at once.
func (q *Queue) wakeNext() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.next == nil {
		return
	}
	select {
	case q.next.wake <- struct{}{}:
	default:
	}
}

// Use registers a login that may create events, until it calls done. It must not be called after Retire.
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

// Retire makes Run return when the last login has called done.
func (q *Queue) Retire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.retired {
		q.retired = true
		q.endUnused()
	}
}

func (q *Queue) endUnused() {
	if q.retired && q.users == 0 {
		close(q.unused)
	}
}

// folder returns the key prefix of the tenant's events. Users cannot see it and quotas ignore it, because the driver
// reserves the name. It includes the tenant, because another tenant with another webhook can have the same prefix.
func (q *Queue) folder() string { return q.Prefix + value.Reserved + "/events/" + q.Tenant + "/" }

// queueFolder returns the key prefix of the events, without the lease.
func (q *Queue) queueFolder() string { return q.folder() + "queue/" }

// put stores an event under its own key. The SDK may repeat the request after another server has sent and deleted the
// event. Then the receiver gets the event twice, which is allowed.
func (q *Queue) put(ctx context.Context, e Event, body []byte) error {
	_, err := q.settings().Client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &q.Bucket, Key: &e.key, Body: bytes.NewReader(body), ContentType: aws.String("application/json"),
	})
	return err
}

// remove deletes an event. Repeating the request is harmless, because the key is never used again.
func (q *Queue) remove(ctx context.Context, e Event) error {
	_, err := q.settings().Client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &q.Bucket, Key: &e.key})
	return err
}

// begin stores an event before its change. IDs sort by time. The error is EAGAIN.
func (q *Queue) begin(ctx context.Context, e Event) (Event, error) {
	e.begun = time.Now()
	e.Time = e.begun.UTC()
	e.ID = fmt.Sprintf("%s-%08x%s", e.Time.Format("20060102T150405.000000000Z"), rand.Uint32(), ownerSuffix(e.User))
	e.Tenant = q.Tenant
	e.key = q.queueFolder() + e.ID
	body, err := json.Marshal(e)
	if err != nil {
		return e, err
	}
	if e.bytes = len(body); !q.reserve(e) {
		return e, fmt.Errorf("%w: the waiting events of the user exceed the user's share of %d bytes; "+
			"repair the receiver, or give it more time to catch up", syscall.EAGAIN, q.maxBacklog())
	}
	q.setOwned(e.ID, true)
	if err := q.put(ctx, e, body); err != nil {
		q.cancel(ctx, e) // S3 may have stored it although the response was lost
		return e, fmt.Errorf("%w: storing the event failed: %w", syscall.EAGAIN, err)
	}
	return e, nil
}

// mayHaveHappened reports whether something was changed, or may still be changed, although the change failed. For
// example, a rename has copied the file before S3 refuses to delete the old one, and a rename of a directory may stop
// in the middle at an archived file. S3 may also perform an attempt without a response after it refused the next one.
func (e *Event) mayHaveHappened(err error) bool {
	if s3error.IsDoubtful(err) {
		return true
	}
	kinds := []error{syscall.EAGAIN, syscall.EIO, context.Canceled}
	if e.steps {
		kinds = append(kinds, syscall.ESTALE, syscall.ENOTEMPTY, syscall.EDQUOT, syscall.ENOSPC, fs.ErrPermission,
			s3error.Archived)
	}
	return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
}

// end confirms the event if err is nil. If something may have changed or may still change, the event stays
// unconfirmed. Otherwise end deletes the event. It returns err, or EAGAIN if the change must not be acknowledged.
func (q *Queue) end(ctx context.Context, e Event, err error) error {
	switch {
	case err == nil && time.Since(e.begun) >= q.unconfirmedAfter():
		// Another server may have sent and deleted the event before the change.
		if err := q.postpone(ctx, e); err != nil {
			return fmt.Errorf("%w: confirming the event failed: %w", syscall.EAGAIN, err)
		}
	case err == nil:
		e.Confirmed = true
		if !q.fresh.add(e) {
			_ = q.postpone(ctx, e) // if that fails, the unconfirmed event is still in the bucket
		}
	case e.mayHaveHappened(err):
		q.setOwned(e.ID, false)
	default:
		q.cancel(ctx, e)
	}
	return err
}

func (q *Queue) cancel(ctx context.Context, e Event) {
	defer q.setOwned(e.ID, false)
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer done()
	if err := q.remove(ctx, e); err != nil {
		q.Log.Warn("webhook: deleting the event of a failed command failed", "id", e.ID, "err", err)
		return
	}
	q.releaseBytes(e)
}

// postpone stores an event as confirmed, so that a sweep of any server sends it.
func (q *Queue) postpone(ctx context.Context, e Event) error {
	defer q.setOwned(e.ID, false)
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer done()
	confirmed := e
	confirmed.Confirmed, confirmed.key = true, q.queueFolder()+e.ID+confirmedSuffix
	body, err := json.Marshal(confirmed)
	if err == nil {
		err = q.put(ctx, confirmed, body)
	}
	if err != nil {
		q.Log.Warn("webhook: confirming an event failed; it will be sent as unconfirmed", "id", e.ID, "err", err)
		return err
	}
	if err := q.remove(ctx, e); err != nil {
		q.Log.Warn("webhook: deleting an unconfirmed event failed; it will be sent twice", "id", e.ID, "err", err)
	}
	q.wakeNext()
	return nil
}

func (q *Queue) setOwned(id string, owned bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if owned {
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
