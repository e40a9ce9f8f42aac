package linearizability

import (
	"cmp"
	"slices"
	"time"
)

// Shrink returns a smaller part of a history that is still not linearizable.
//
// A reply is suspect if the history becomes linearizable when only that reply is ignored. Every part keeps all
// suspects, and they must remain suspect. This prevents Shrink from removing a command whose data another reply has
// seen. If only the last reply is suspect, that proves nothing, and all commands that changed something are kept.
//
// Shrink uses most of the given time. It rejects a part whose check takes more than a small share of it.
func (r Rules) Shrink(h History, patience time.Duration) History {
	const share, smallShare = 8, 200
	h = h.sorted()
	deadline := time.Now().Add(patience)
	fails := func(part History) bool {
		return time.Now().Before(deadline) && r.Check(part, patience/share) == Unexplained
	}
	explains := func(part History) bool {
		return time.Now().Before(deadline) && r.Check(part, patience/smallShare) == Explained
	}
	low, high := 0, len(h) // binary search for the earliest reply at which the history fails
	ends := slices.SortedFunc(slices.Values(h), func(a, b Command) int { return cmp.Compare(a.Return, b.Return) })
	for low+1 < high {
		if middle := (low + high) / 2; fails(h.until(ends[middle-1].Return)) {
			high = middle
		} else {
			low = middle
		}
	}
	if high == len(h) && !fails(h) {
		return h
	}
	h = h.until(ends[high-1].Return)
	for _, name := range h.names() {
		if part, alone := h.without(name); alone && fails(part) {
			h = part
		}
	}
	suspects := slices.DeleteFunc(slices.Clone(h), func(c Command) bool {
		return c.inDoubt() || !c.is(ends[high-1]) && !explains(h.leaveOpen(c))
	})
	stay := suspects
	if len(suspects) == 1 {
		stay = slices.DeleteFunc(slices.Clone(h), func(c Command) bool { return c.isRead() || c.Code/100 != 2 })
		stay = append(stay, suspects...)
	}
	takes := func(part History, leavesDoubtsOut bool) bool {
		return !slices.ContainsFunc(suspects, func(c Command) bool { return !explains(part.leaveOpen(c)) }) &&
			// a command in doubt may never take effect, so removing it keeps the contradiction
			(leavesDoubtsOut || fails(part))
	}
	for i := len(h) - 1; i >= 0; i-- {
		if part, doubts := h.leaveOut(i, i+1, nil); doubts && takes(part, true) {
			h = part
		}
	}
	for size := len(h); size > 0; {
		before := len(h)
		for end := len(h); end > 0; end -= size {
			part, doubts := h.leaveOut(max(0, end-size), end, stay)
			if len(part) < len(h) && takes(part, doubts) {
				h = part
			}
		}
		if size > 1 {
			size /= 2
		} else if len(h) == before {
			break
		}
	}
	return h
}

// is reports whether both are the same command. A client has at most one command in flight, so its call time
// identifies it.
func (c *Command) is(other Command) bool { return c.Client == other.Client && c.Call == other.Call }

// leaveOut returns the history without the commands from from to end, except those in stay. It also reports whether
// all removed commands are in doubt.
func (h History) leaveOut(from, end int, stay History) (part History, doubts bool) {
	doubts = true
	for i := range h {
		if i < from || i >= end || slices.ContainsFunc(stay, h[i].is) {
			part = append(part, h[i])
			continue
		}
		doubts = doubts && h[i].inDoubt()
	}
	return part, doubts
}

// leaveOpen returns the history as if one reply had not arrived.
func (h History) leaveOpen(reply Command) (part History) {
	for _, c := range h {
		if c.is(reply) {
			if c.isRead() {
				continue
			}
			c.Code, c.Settled = 0, false
		}
		part = append(part, c)
	}
	return part
}

// until returns the part of the history that was known at a moment: commands without a reply are in doubt.
func (h History) until(moment time.Duration) (part History) {
	for _, c := range h {
		switch {
		case c.Call > moment:
		case c.Return <= moment:
			part = append(part, c)
		case !c.isRead():
			c.Code, c.Settled = 0, false
			part = append(part, c)
		}
	}
	return part
}

// without returns the history without a name. It returns false if a rename or a directory connects the name with
// another one.
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
