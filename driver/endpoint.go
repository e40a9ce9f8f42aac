package driver

import (
	"time"

	"github.com/babelftp/babelftp/driver/internal/clients"
	"github.com/babelftp/babelftp/driver/internal/concurrency"
	"github.com/babelftp/babelftp/driver/internal/endpoint"
	"github.com/babelftp/babelftp/driver/internal/listing"
)

// An Endpoint is what file systems have learned of an S3 server: how many requests at a time it rewards, how far away it is, how long a page of
// a listing takes, and which keys they have written. Share one among all file systems of a server, so that each need not learn it again.
type Endpoint struct {
	uploads     *concurrency.Limiter
	stats       *endpoint.Stats
	splitPoints listing.SplitPointCache
	writes      *clients.WriteLog
}

// NewEndpoint returns the endpoint of a server that nothing is known of yet.
func NewEndpoint() *Endpoint {
	stats := &endpoint.Stats{}
	return &Endpoint{stats: stats, uploads: concurrency.New(stats), writes: clients.NewWriteLog()}
}

// Answered notes how long an answer took to a request that was made for something else than files, such as to see whether a bucket is there.
func (e *Endpoint) Answered(took time.Duration) { e.stats.ObserveAny(time.Now(), took) }
