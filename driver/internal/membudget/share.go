package membudget

import "sync/atomic"

// What is held in addition to the budget, as a fraction of its limit. An upload whose client reads a listing first would wait for itself if a
// listing could wait for memory.
const (
	listingShare  = 4
	metadataShare = 16
	transferShare = 16 // a thousand downloads shall not take as much as all uploads together
)

// A Share is memory in addition to the budget, for which no transfer waits. It is safe for concurrent use.
type Share struct {
	limit int64
	used  atomic.Int64
}

// TryTake takes so many bytes, or returns false where they are not left.
func (s *Share) TryTake(bytes int64) bool {
	if s.used.Add(bytes) > s.limit {
		s.used.Add(-bytes)
		return false
	}
	return true
}

// Return gives bytes back that were taken.
func (s *Share) Return(bytes int64) { s.used.Add(-bytes) }

// Limit is how many bytes the share has.
func (s *Share) Limit() int64 { return s.limit }

// Used is how many bytes are taken.
func (s *Share) Used() int64 { return s.used.Load() }
