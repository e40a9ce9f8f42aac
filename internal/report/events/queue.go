// Package events tells a webhook of the files that users store, delete, rename and copy, at least once each.
//
// The queue lies in the bucket, below "PREFIX.babelftp/events/TENANT/", one object an event (S3 operations PutObject,
// GetObject, ListObjectsV2, DeleteObject). [Queue.Begin] makes the object before a change, so no
// acknowledged change lacks its event. The object is deleted when the receiver has answered 2xx. So any server can
// send what another one has left.
//
// An event is confirmed when the change has succeeded. If the server dies in between, another one sends the event as
// unconfirmed.
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
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/base/s3error"
	"github.com/babelftp/babelftp/internal/base/web"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/storage/view"
)

const (
	// requestTimeout bounds the requests to S3 that outlive a command.
	requestTimeout = 30 * time.Second

	// maxObject bounds the size of an event in the bucket, in bytes.
	maxObject = 64 << 10

	// confirmedSuffix ends the keys of confirmed events. A server that deletes an unconfirmed one, which it has sent,
	// leaves the confirmed one.
	confirmedSuffix = ".confirmed"
)

// An Event is what the receiver gets, as JSON.
type Event struct {
	ID     string    `json:"id"`
	Time   time.Time `json:"time"`
	Type   view.Kind `json:"type"`
	Tenant string    `json:"tenant"`
	User   string    `json:"user"`
	Path   string    `json:"path"`                // as the user sees it
	URI    string    `json:"s3_uri"`              // of the object
	ToPath string    `json:"to_path,omitempty"`   // of a rename or a copy
	ToURI  string    `json:"to_s3_uri,omitempty"` // of a rename or a copy; of a refused file in the quarantine.
	Size   *int64    `json:"size,omitempty"`      // of an upload, in bytes
	ETag   string    `json:"etag,omitempty"`      // of an upload that is confirmed.
	Reason string    `json:"reason,omitempty"`    // why a file was refused

	// Confirmed says that the change has succeeded. Otherwise its server has died or S3 has not answered, and the
	// bucket shows whether it has.
	Confirmed bool `json:"confirmed"`

	key   string    // of its object in the bucket
	bytes int       // of its object in the bucket
	steps bool      // the change takes several steps: it may fail when some of them are done
	begun time.Time // by the monotonic clock, unlike Time
}

// A Client is the part of S3 that a queue uses.
type Client interface {
	GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error)
	DeleteObject(context.Context, *s3.DeleteObjectInput, ...func(*s3.Options)) (*s3.DeleteObjectOutput, error)
	ListObjectsV2(context.Context, *s3.ListObjectsV2Input, ...func(*s3.Options)) (*s3.ListObjectsV2Output, error)
}

// Options is what a [Queue] needs, and what stays as long as it lives. Observe may be nil. Without a Memory the queue
// has one of its own.
type Options struct {
	Bucket string
	Prefix string // of the tenant's keys
	Tenant string

	Memory *Memory

	// SweepInterval, UnconfirmedAfter and Backlog replace those of the package in tests; 0 leaves them.
	SweepInterval, UnconfirmedAfter time.Duration
	Backlog                         int

	// Observe gets how many events the receiver got or refused.
	Observe func(events int, delivered bool)
	Log     *slog.Logger
}

// Settings are what may change while a [Queue] runs.
type Settings struct {
	Client  Client
	Webhook *web.Webhook
}

// A Queue is the events of a tenant. Several servers share one.
type Queue struct {
	Options

	fresh   *waiting // confirmed by this process, to be sent at once
	backlog backlog
	wake    chan struct{} // lets Run sweep at once

	mu      sync.Mutex
	next    *Queue // that a reload has put in the place of this one, nil for none
	current *Settings
	restart context.CancelFunc // lets Run begin again with other settings
	pending map[string]bool    // by ID: this process is to confirm or to send the event

	users   int           // logins that may make events
	retired bool          // by Retire
	unused  chan struct{} // closed when the queue is retired and has no users

	// Of the goroutine of Run.
	seen map[string]time.Time // when the sweep first saw an unconfirmed event
	// of the server which sweeps; where S3 has no conditional requests, two may sweep at once, and the receiver gets
	// events twice
	lease *lock
}

// NewQueue makes a queue, without a request.
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
	q.lease = newLock(func() Client { return q.settings().Client }, q.Bucket, q.folder()+"lease", q.Log)
	return q
}

func (q *Queue) settings() *Settings {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.current
}

// Configure replaces the settings. All events that wait go to the receiver that they name. A request to another one is
// cut off, because one that hangs must not hold the events back. They are sent again.
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

// adoptReceiver sends the events of this queue to the receiver of the next one. The next one may hold the lease of
// the folder. So it sweeps when this one has left events there.
func (q *Queue) adoptReceiver(next *Queue) {
	s := *next.settings()
	q.mu.Lock()
	q.next, s.Client = next, q.current.Client
	q.mu.Unlock()
	q.Configure(&s)
}

// wakeNext lets the next queue sweep at once.
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

// Retire lets Run end when the last login has called done.
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

// folder is what the keys of the events start with. No user sees them, and no quota counts them: the driver reserves
// the name. Another tenant can have the same prefix, and another webhook.
func (q *Queue) folder() string { return q.Prefix + value.Reserved + "/events/" + q.Tenant + "/" }

// queueFolder is apart from the lease.
func (q *Queue) queueFolder() string { return q.folder() + "queue/" }

// put stores an event under a key of its own. The SDK may repeat the request late, when another server has sent the
// event and deleted it. Then the receiver gets it twice, which the package allows.
func (q *Queue) put(ctx context.Context, e Event, body []byte) error {
	_, err := q.settings().Client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &q.Bucket, Key: &e.key, Body: bytes.NewReader(body), ContentType: aws.String("application/json"),
	})
	return err
}

// remove deletes an event. The SDK may repeat the request, because no other event ever has the key.
func (q *Queue) remove(ctx context.Context, e Event) error {
	_, err := q.settings().Client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &q.Bucket, Key: &e.key})
	return err
}

// begin makes an event durable before its change. Its ID sorts by time. The error is an EAGAIN.
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
		return e, fmt.Errorf("%w: the events of the user that wait for the webhook fill the user's share of %d bytes; "+
			"repair the receiver, or give it more time to catch up", syscall.EAGAIN, q.maxBacklog())
	}
	q.own(e.ID, true)
	if err := q.put(ctx, e, body); err != nil {
		q.cancel(ctx, e) // S3 may have it although its answer was lost
		return e, fmt.Errorf("%w: the event of the change cannot be stored: %w", syscall.EAGAIN, err)
	}
	return e, nil
}

// mayHaveHappened reports whether something may have changed, or may still change, although the change has failed. For
// example, a rename has copied the file when S3 refuses to delete the old one, and some files of a directory when it
// stops at an archived one. S3 may also perform an attempt without a response after it has refused the next one.
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

// end confirms an event whose change has ended without an error. Where something may have changed, or S3 may still
// perform the change, it stays unconfirmed. Otherwise end forgets it. The error is that of the change, or an EAGAIN
// where the change must not be acknowledged.
func (q *Queue) end(ctx context.Context, e Event, err error) error {
	switch {
	case err == nil && time.Since(e.begun) >= q.unconfirmedAfter():
		// Another server may have sent and deleted the event before the change.
		if err := q.postpone(ctx, e); err != nil {
			return fmt.Errorf("%w: the event of the change cannot be confirmed: %w", syscall.EAGAIN, err)
		}
	case err == nil:
		e.Confirmed = true
		if !q.fresh.add(e) {
			_ = q.postpone(ctx, e) // if that fails, the event is there as unconfirmed
		}
	case e.mayHaveHappened(err):
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
		return
	}
	q.released(e)
}

// postpone leaves an event to the sweep of any server, as confirmed.
func (q *Queue) postpone(ctx context.Context, e Event) error {
	defer q.own(e.ID, false)
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer done()
	confirmed := e
	confirmed.Confirmed, confirmed.key = true, q.queueFolder()+e.ID+confirmedSuffix
	body, err := json.Marshal(confirmed)
	if err == nil {
		err = q.put(ctx, confirmed, body)
	}
	if err != nil {
		q.Log.Warn("webhook: an event will be sent as unconfirmed", "id", e.ID, "err", err)
		return err
	}
	if err := q.remove(ctx, e); err != nil {
		q.Log.Warn("webhook: an event will be sent as confirmed and as unconfirmed", "id", e.ID, "err", err)
	}
	q.wakeNext()
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
