package membudget

import "sync"

// What is held in addition to the budget, as a fraction of its limit. An upload whose client reads a listing first
// would wait for itself if a listing could wait for memory.
const (
	listingShare  = 4
	transferShare = 16 // so that a thousand downloads take less than all uploads together
	firstShare    = 16

	// minFirstShare is how many bytes the first blocks of parts have at least: enough blocks to divide them among
	// several.
	minFirstShare = 1 << 20
)

// A Share is memory in addition to the budget, for which no transfer waits. Users and tenants share it as
// they share the budget. It is safe for concurrent use.
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

// of returns the same share for a consumer.
func (s Share) of(c consumer) Share { return Share{s.shared, c} }

// TryTake takes so many bytes, or returns false where they are not left.
func (s Share) TryTake(bytes int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.held.allows(s.limit, s.consumer, bytes) {
		return false
	}
	s.held.add(s.consumer, bytes)
	return true
}

// Return gives bytes back that were taken.
func (s Share) Return(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held.add(s.consumer, -bytes)
}

// Limit is how many bytes the share has.
func (s Share) Limit() int64 { return s.limit }

// Used is how many bytes are taken, by all together.
func (s Share) Used() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held.total
}
