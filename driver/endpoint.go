package driver

import (
	"sync"
	"time"

	"github.com/babelftp/babelftp/driver/internal/listing"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/upload"
	"github.com/babelftp/babelftp/internal/base/schedule"
)

// An Endpoint holds what file systems share on one S3 server: its measured distance, the slots for parts of uploads,
// the points at which listings of large directories can be split, and the renames in progress. All file systems on the
// same server should share one Endpoint, so that they do not have to measure separately.
type Endpoint struct {
	uploads     *upload.Limiter
	stats       *s3api.Stats
	splitPoints *listing.SplitPointCache
	moves       *moveLock
	changes     *sync.Map // [*journal.Changes] by bucket and prefix
	requests    *schedule.Requests
	user        *schedule.User // nil if users do not share the server
}

// NewEndpoint returns an endpoint for a server about which nothing is known yet.
func NewEndpoint() *Endpoint {
	stats := &s3api.Stats{}
	return &Endpoint{
		stats: stats, uploads: upload.NewLimiter(stats.Far), splitPoints: &listing.SplitPointCache{},
		moves: &moveLock{}, changes: &sync.Map{},
		requests: schedule.NewRequests(stats.Far),
	}
}

// For returns the endpoint for the file systems of a user. While the server is busy and several users send requests,
// the tenants, and the users within each tenant, take turns.
func (e *Endpoint) For(tenant, user string) *Endpoint {
	of := *e
	of.user = e.requests.For(tenant, user)
	return &of
}

// Observe records how long S3 took to respond to a request that no file system has sent, for example to check that a
// bucket exists.
func (e *Endpoint) Observe(took time.Duration) { e.stats.Observe(time.Now(), took) }
