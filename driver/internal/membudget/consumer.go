package membudget

// A consumer takes memory: it is a member of a group. The zero value has no share: only the bound of all
// holds for it.
type consumer struct{ group, member string }

// fair returns how many bytes one of several may hold of those that the others leave. So there are always some left
// for the next one, and one that is alone has most of them.
func fair(left int64) int64 { return left / 4 * 3 }

// holdings count what consumers hold of the same memory.
type holdings struct {
	total   int64
	groups  map[string]int64
	members map[consumer]int64
}

// allows tells whether a consumer may hold so many bytes more, of limit bytes in all.
func (h *holdings) allows(limit int64, c consumer, bytes int64) bool {
	if c == (consumer{}) {
		return h.total+bytes <= limit
	}
	group, member := h.groups[c.group], h.members[c]
	ofGroup := fair(limit - (h.total - group))
	return member+bytes <= fair(ofGroup-(group-member))
}

// add counts bytes that a consumer takes, or returns.
func (h *holdings) add(c consumer, bytes int64) {
	if h.groups == nil {
		h.groups, h.members = map[string]int64{}, map[consumer]int64{}
	}
	h.total += bytes
	addTo(h.groups, c.group, bytes)
	addTo(h.members, c, bytes)
}

func addTo[K comparable](held map[K]int64, key K, bytes int64) {
	if held[key] += bytes; held[key] == 0 {
		delete(held, key)
	}
}
