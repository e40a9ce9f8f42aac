package membudget

import "sync"

// Divisors of the limit of the budget that yield the limits of the shares. Listings have a share of their own and do
// not wait, because a client may read a listing while it uploads, and the two would then wait for each other.
const (
	listingShare  = 4
	transferShare = 16 // so that a thousand downloads use less memory than all uploads together
	firstShare    = 16

	// minFirstShare is the minimum of the share for first blocks in bytes. It contains enough blocks for several users.
	minFirstShare = 1 << 20
)

// A Share is memory in addition to the budget that nobody waits for. It is divided between groups and members like the
// budget. It is safe for concurrent use.
type Share struct {
	*shared
	consumer consumer
}

type shared struct {
	limit int64

	mu   sync.Mutex
	held holdings
}

func newShare(limit int64) Share { return Share{shared: &shared{limit: limit}} }

// of returns the share for a consumer.
func (s Share) of(c consumer) Share { return Share{s.shared, c} }

// TryTake takes bytes from the share. It returns false if the consumer may not get them.
func (s Share) TryTake(bytes int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.held.allows(s.limit, s.consumer, bytes) {
		return false
	}
	s.held.add(s.consumer, bytes)
	return true
}

// Return returns bytes of TryTake.
func (s Share) Return(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held.add(s.consumer, -bytes)
}

// Limit returns the size of the share in bytes.
func (s Share) Limit() int64 { return s.limit }

// Used returns the number of bytes in use by all consumers.
func (s Share) Used() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held.total
}
