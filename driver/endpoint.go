package driver

import (
	"sync"
	"time"

	"github.com/babelftp/babelftp/driver/internal/listing"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/upload"
	"github.com/babelftp/babelftp/internal/base/schedule"
)

// An Endpoint holds what file systems share of an S3 server: its measured distance, the slots for parts of uploads,
// where large directories can be split, and which renames are running. Share one among all file systems of a server, so
// that not each has to measure.
type Endpoint struct {
	uploads     *upload.Limiter
	stats       *s3api.Stats
	splitPoints *listing.SplitPointCache
	moves       *moveLock
	changes     *sync.Map // to [*journal.Changes] by bucket and prefix
	requests    *schedule.Requests
	user        *schedule.User // nil where no users share the server
}

// NewEndpoint returns the endpoint of a server that nothing is known of yet.
func NewEndpoint() *Endpoint {
	stats := &s3api.Stats{}
	return &Endpoint{
		stats: stats, uploads: upload.NewLimiter(stats.Far), splitPoints: &listing.SplitPointCache{},
		moves: &moveLock{}, changes: &sync.Map{},
		requests: schedule.NewRequests(stats.Far),
	}
}

// For is the endpoint for the file systems of a user. While the server is busy, and other users make requests too,
// those of each tenant and of each of its users go in turn.
func (e *Endpoint) For(tenant, user string) *Endpoint {
	of := *e
	of.user = e.requests.For(tenant, user)
	return &of
}

// Answered reports how long S3 took to answer a request that was not made for files. A check whether a bucket exists
// is an example.
func (e *Endpoint) Answered(took time.Duration) { e.stats.Observe(time.Now(), took) }
