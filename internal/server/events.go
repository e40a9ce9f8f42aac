package server

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/destination"
	"github.com/babelftp/babelftp/internal/config/encryption"
	"github.com/babelftp/babelftp/internal/events"
	"github.com/babelftp/babelftp/internal/s3client"
	"github.com/babelftp/babelftp/internal/webhook"
)

// Defaults of a webhook.
const (
	webhookTimeout = 10 * time.Second
	// unconfirmedAfter is longer than S3 may take to make an upload visible.
	unconfirmedAfter = 15 * time.Minute
)

func newWebhook(r destination.Receiver) (*webhook.Webhook, error) {
	authorities, err := encryption.Authorities(r.CAFile)
	if err != nil {
		return nil, err
	}
	return webhook.New(r.URL, r.Secret.Reveal(), authorities, cmp.Or(r.Timeout, webhookTimeout)), nil
}

// newEventQueues makes the queues of the tenants that have a webhook.
func newEventQueues(cfg *config.Config, buckets map[string]*s3client.Bucket, m *metrics, log *slog.Logger) (map[string]*events.Queue, error) {
	queues := map[string]*events.Queue{}
	for name, t := range cfg.Tenants {
		w, b := t.Webhook, buckets[name]
		if w.URL == "" {
			continue
		}
		hook, err := newWebhook(w.Receiver)
		if err != nil {
			return nil, fmt.Errorf("tenants.%s.webhook.ca_file: %w", name, err)
		}
		delivered, postponed := m.events.WithLabelValues(name, "delivered"), m.events.WithLabelValues(name, "postponed")
		queues[name] = events.NewQueue(events.Options{
			Client: b.ObjectClient(), Bucket: b.Name, Prefix: b.Prefix, Tenant: name, Webhook: hook,
			UnconfirmedAfter: cmp.Or(w.UnconfirmedAfter, unconfirmedAfter),
			Observe: func(n int, ok bool) {
				if ok {
					delivered.Add(float64(n))
					return
				}
				postponed.Add(float64(n))
			},
			Log: log.With("tenant", name),
		})
	}
	return queues, nil
}

// sendEvents sends the events of all queues. The function that it returns ends that, and leaves in S3 what was not sent.
func (s *Server) sendEvents(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var sending sync.WaitGroup
	for _, q := range s.events {
		sending.Go(func() { q.Run(ctx) })
	}
	return func() {
		cancel()
		sending.Wait()
	}
}
