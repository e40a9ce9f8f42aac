package events

import (
	"context"

	"github.com/babelftp/babelftp/internal/storage/view"
)

var _ view.Sink = (*Queue)(nil)

// Begin makes the event of a change durable. So the event is in the bucket before the change.
func (q *Queue) Begin(ctx context.Context, c view.Change) (view.Event, error) {
	e, err := q.begin(ctx, Event{
		Type: c.Kind, User: c.User, Path: c.Path, URI: c.URI, ToPath: c.ToPath, ToURI: c.ToURI, Size: c.Size,
		Reason: c.Reason, steps: c.Steps,
	})
	if err != nil {
		return nil, err
	}
	return &begun{q, e}, nil
}

// A begun event is that of a change which is being made.
type begun struct {
	queue *Queue
	event Event
}

// End implements [view.Event].
func (b *begun) End(ctx context.Context, etag string, err error) error {
	b.event.ETag = etag
	return b.queue.end(ctx, b.event, err)
}
