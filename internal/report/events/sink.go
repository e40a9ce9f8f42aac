package events

import (
	"context"

	"github.com/babelftp/babelftp/internal/storage/view"
)

var _ view.Sink = (*Queue)(nil)

// Begin stores the event of a change. Call it before the change.
func (q *Queue) Begin(ctx context.Context, c view.FileChange) (view.Event, error) {
	e, err := q.begin(ctx, Event{
		Type: c.Kind, User: c.User, Path: c.Path, URI: c.URI, ToPath: c.ToPath, ToURI: c.ToURI, Size: c.Size,
		Reason: c.Reason, steps: c.Steps,
	})
	if err != nil {
		return nil, err
	}
	return &openEvent{q, e}, nil
}

// An openEvent is the event of a change in progress.
type openEvent struct {
	queue *Queue
	event Event
}

// End implements [view.Event].
func (b *openEvent) End(ctx context.Context, etag string, err error) error {
	b.event.ETag = etag
	return b.queue.end(ctx, b.event, err)
}
