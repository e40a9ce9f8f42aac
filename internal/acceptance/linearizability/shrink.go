package linearizability

import (
	"cmp"
	"slices"
	"time"
)

// Shrink returns a part of a history that is not linearizable, which has few commands. It leaves out only what gives
// the others no more freedom: what came after a moment, names that no rename and no directory connects with the
// others, and commands that only read.
//
// It takes about as long as it may. A part that takes more than a small share of that time counts as explained.
func (r Rules) Shrink(h History, patience time.Duration) History {
	const share = 20
	h = h.sorted()
	deadline := time.Now().Add(patience)
	fails := func(part History) bool {
		return time.Now().Before(deadline) && r.Check(part, patience/share) == Unexplained
	}
	if !fails(h) {
		return h
	}
	low, high := 0, len(h) // the number of the command whose reply ends the shortest beginning that fails
	ends := slices.SortedFunc(slices.Values(h), func(a, b Command) int { return cmp.Compare(a.Return, b.Return) })
	for low+1 < high {
		if middle := (low + high) / 2; fails(h.until(ends[middle-1].Return)) {
			high = middle
		} else {
			low = middle
		}
	}
	h = h.until(ends[high-1].Return)
	for _, name := range h.names() {
		if part, alone := h.without(name); alone && fails(part) {
			h = part
		}
	}
	for i := len(h) - 1; i >= 0; i-- {
		if !h[i].isRead() && h[i].Code/100 != 5 { // a refusal only reads
			continue
		}
		if part := slices.Delete(slices.Clone(h), i, i+1); fails(part) {
			h = part
		}
	}
	return h
}

// until is what was known at a moment: a command without a reply until then is in doubt.
func (h History) until(moment time.Duration) (part History) {
	for _, c := range h {
		switch {
		case c.Call > moment:
		case c.Return <= moment:
			part = append(part, c)
		case !c.isRead():
			c.Code = 0
			part = append(part, c)
		}
	}
	return part
}

// without leaves a name out. It returns false where a rename or a directory connects the name with another one.
func (h History) without(name string) (part History, alone bool) {
	for _, c := range h {
		switch {
		case c.Verb == "RNTO" && (c.Name == name || c.To == name),
			c.Name != "" && c.Name != name && connected(c.Name, name):
			return nil, false
		case c.Name != name:
			part = append(part, c)
		}
	}
	if len(part.names()) == 0 {
		return nil, false
	}
	for i, c := range part {
		if c.Verb != "MLSD" {
			continue
		}
		left := map[string]int64{}
		for n, size := range c.Listing {
			if n != name {
				left[n] = size
			}
		}
		part[i].Listing = left
	}
	return part, true
}
