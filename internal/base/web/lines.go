package web

import (
	"bytes"
	"context"
	"log/slog"
	"time"
)

// How long a receiver that fails is left alone: first and at most.
const (
	minRetry = time.Second
	maxRetry = 30 * time.Second
)

// Lines posts lines, of which each is a JSON object, again and again until the receiver accepts them. It is for one
// goroutine.
type Lines struct {
	ctx     context.Context // of all posts
	webhook *Webhook
	log     *slog.Logger
	retry   time.Duration // minRetry, or less in tests
}

// NewLines posts lines until ctx ends.
func NewLines(ctx context.Context, w *Webhook, log *slog.Logger) *Lines {
	return &Lines{ctx: ctx, webhook: w, log: log, retry: minRetry}
}

// Write posts complete lines as one array. It fails only when the context has ended. The receiver may get lines
// twice, if its answer was lost.
func (l *Lines) Write(lines []byte) (int, error) {
	body := bytes.Join(
		[][]byte{[]byte("["), bytes.ReplaceAll(bytes.TrimSpace(lines), []byte("\n"), []byte(",")), []byte("]")}, nil)
	for retry := l.retry; ; retry = min(2*retry, maxRetry) {
		err := l.webhook.Post(l.ctx, body)
		if err == nil {
			if retry > l.retry {
				l.log.Info("audit log: the receiver of audit.webhook accepts lines again")
			}
			return len(lines), nil
		}
		if retry == l.retry && l.ctx.Err() == nil {
			l.log.Error("audit log: the receiver of audit.webhook does not accept lines; they wait", "err", err)
		}
		select {
		case <-time.After(retry):
		case <-l.ctx.Done():
			return 0, err
		}
	}
}
