package limits

import "sync"

// A Max is how many sessions there may be.
type Max struct {
	Limit string // the name of the limit, as the configuration and the metrics have it
	Count int    // 0 for no limit
}

// exceeded says whether one session more than open is too many.
func (m Max) exceeded(open int) bool { return m.Count > 0 && open >= m.Count }

// Sessions counts open sessions. K is what they are counted by: a [Network] or a user.
type Sessions[K comparable] struct {
	total, each Max

	mu    sync.Mutex
	open  int
	byKey map[K]int
}

// NewSessions bounds all sessions by total, and those of each key by each.
func NewSessions[K comparable](total, each Max) *Sessions[K] {
	return &Sessions[K]{total: total, each: each, byKey: make(map[K]int)}
}

// Enter counts a session. The session calls leave once, when it has ended. Where a
// session would be one too many, Enter counts nothing and returns the name of the limit,
// which is empty otherwise.
func (s *Sessions[K]) Enter(key K) (leave func(), limit string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.each.exceeded(s.byKey[key]):
		return nil, s.each.Limit
	case s.total.exceeded(s.open):
		return nil, s.total.Limit
	}
	s.open++
	s.byKey[key]++
	return func() { s.leave(key) }, ""
}

func (s *Sessions[K]) leave(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	if s.byKey[key]--; s.byKey[key] == 0 {
		delete(s.byKey, key)
	}
}
