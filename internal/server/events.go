package server

import (
	"crypto/x509"
	"fmt"

	"github.com/babelftp/babelftp/internal/base/web"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/report/events"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/users/account"
)

// A tenantQueue is the event queue of a tenant, its settings, and the configuration that they were created from.
type tenantQueue struct {
	*events.Queue
	settings    *events.Settings
	bucket      *s3client.Bucket
	webhook     config.Webhook
	authorities *x509.CertPool
}

// newEventQueues creates the queues of the tenants with a webhook. If the events of a tenant are still stored below
// the same prefix of the same bucket, its queue is kept, and adopts the new settings later.
func (s *Server) newEventQueues(
	cfg *config.Config, buckets map[string]*s3client.Bucket,
) (map[string]*tenantQueue, error) {
	queues := map[string]*tenantQueue{}
	for name, t := range cfg.Tenants {
		w, b := t.Webhook, buckets[name]
		if w.URL == "" {
			continue
		}
		authorities, err := config.Trusted(w.CAFile)
		if err != nil {
			return nil, fmt.Errorf("tenants.%s.ca_file: %w", name, err)
		}
		b.AddUse(s3client.Use{Events: true})
		if q := s.queues[name]; q != nil && q.bucket == b && q.webhook.Receiver == w.Receiver &&
			q.authorities.Equal(authorities) {
			queues[name] = q
			continue
		}
		next := &tenantQueue{bucket: b, webhook: w, authorities: authorities, settings: &events.Settings{
			Client:  b.ObjectClient(),
			Webhook: web.NewWebhook(w.URL, w.Secret.Reveal(), authorities, config.ReceiverTimeout),
		}}
		if q := s.queues[name]; q != nil && q.bucket.SamePlace(b) && q.bucket.Prefix == b.Prefix {
			next.Queue = q.Queue
		} else {
			next.Queue = events.NewQueue(events.Options{
				Bucket: b.Name, Prefix: b.Prefix, Tenant: name, SweepInterval: s.opts.sweepEvents,
				Backlog: s.opts.eventBacklog,
				Memory:  s.eventMemory,
				Observe: func(n int, ok bool) { s.metrics.WebhookEvents(name, n, ok) },
				Log:     s.log.With("tenant", name),
			}, next.settings)
		}
		queues[name] = next
	}
	return queues, nil
}

// useEventQueues puts queues into use, with their settings.
func (s *Server) useEventQueues(queues map[string]*tenantQueue) {
	s.queues = queues
	for _, q := range queues {
		q.Configure(q.settings)
	}
	s.events.Replace(queuesOf(queues))
}

// queuesOf returns the underlying queues.
func queuesOf(queues map[string]*tenantQueue) map[string]*events.Queue {
	plain := map[string]*events.Queue{}
	for name, q := range queues {
		plain[name] = q.Queue
	}
	return plain
}

// sinksOf returns the queues in the form that package account needs.
func sinksOf(queues map[string]*tenantQueue) map[string]account.EventSink {
	sinks := map[string]account.EventSink{}
	for name, q := range queues {
		sinks[name] = q.Queue
	}
	return sinks
}
