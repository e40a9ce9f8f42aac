package driver

import (
	"time"

	"github.com/babelftp/babelftp/driver/internal/clients"
	"github.com/babelftp/babelftp/driver/internal/concurrency"
	"github.com/babelftp/babelftp/driver/internal/endpoint"
	"github.com/babelftp/babelftp/driver/internal/listing"
	"github.com/babelftp/babelftp/driver/internal/tree"
)

// An Endpoint holds what file systems have measured of an S3 server: its distance, and how many parallel requests pay. It also remembers how long
// a page of a listing takes, which keys they have written, and which renames are running. Share one among all file systems of a server, so that each need not measure
// anew.
type Endpoint struct {
	uploads     *concurrency.Limiter
	stats       *endpoint.Stats
	splitPoints listing.SplitPointCache
	writes      *clients.WriteLog
	moves       tree.Moves
}

// NewEndpoint returns the endpoint of a server that nothing is known of yet.
func NewEndpoint() *Endpoint {
	stats := &endpoint.Stats{}
	return &Endpoint{stats: stats, uploads: concurrency.New(stats), writes: clients.NewWriteLog()}
}

// Answered reports how long S3 took to answer a request that was not made for files. A check whether a bucket exists is an example.
func (e *Endpoint) Answered(took time.Duration) { e.stats.Observe(time.Now(), took) }
