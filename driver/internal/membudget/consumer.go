package membudget

// A consumer is a member of a group that uses memory. The zero value is limited only by the limit of all.
type consumer struct{ group, member string }

// threeQuarters returns how many of the bytes that others leave one consumer may hold. A quarter is always left for
// the next consumer, and a consumer without competition gets most of the bytes.
func threeQuarters(left int64) int64 { return left / 4 * 3 }

// holdings count the bytes that consumers hold.
type holdings struct {
	total   int64
	groups  map[string]int64
	members map[consumer]int64
}

// allows reports whether a consumer may get additional bytes, if there are limit bytes in total.
func (h *holdings) allows(limit int64, c consumer, bytes int64) bool {
	if c == (consumer{}) {
		return h.total+bytes <= limit
	}
	group, member := h.groups[c.group], h.members[c]
	ofGroup := threeQuarters(limit - (h.total - group))
	return member+bytes <= threeQuarters(ofGroup-(group-member))
}

// add counts bytes that a consumer gets, or returns if bytes is negative.
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
