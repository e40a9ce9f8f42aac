package fairness

import (
	"math"
	"math/bits"
	"slices"
)

// A need says when the turn of something that waits may come: as soon as one of its three numbers is not above its
// limit.
type need [3]int

// never is a number that is above each limit.
const never = math.MaxInt

// nothing is the need of an empty place.
func nothing() need { return need{never, never, never} }

func (n need) within(limits need) bool {
	return n[0] <= limits[0] || n[1] <= limits[1] || n[2] <= limits[2]
}

func least(a, b need) need { return need{min(a[0], b[0]), min(a[1], b[1]), min(a[2], b[2])} }

// A line is what waits, in order. It finds the first whose turn may come without a look at each of those before.
//
// Above the places stands a binary tree. Each node has the least of each number below it. So the first whose turn may
// come is found from the root down, and who comes, goes or needs something else changes only the nodes above its
// place.
type line[T any] struct {
	places []*place[T] // in order; nil where one has left
	tree   []need      // the root is 1, the nodes below i are 2i and 2i+1, and the second half are the places
}

// A place is a place in a line, or none if line is nil.
type place[T any] struct {
	who   T
	line  *line[T]
	index int
}

// join takes the last place in a line.
func (p *place[T]) join(l *line[T], n need) {
	if len(l.places) == len(l.tree)/2 {
		l.closeUp()
	}
	p.line, p.index = l, len(l.places)
	l.places = append(l.places, p)
	p.set(n)
}

// taken tells whether the place is in a line.
func (p *place[T]) taken() bool { return p.line != nil }

// set changes what the one who has the place needs.
func (p *place[T]) set(n need) {
	tree := p.line.tree
	i := len(tree)/2 + p.index
	tree[i] = n
	for i /= 2; i > 0; i /= 2 {
		tree[i] = least(tree[2*i], tree[2*i+1])
	}
}

// leave gives the place up.
func (p *place[T]) leave() {
	p.set(nothing())
	p.line.places[p.index] = nil
	p.line = nil
}

// closeUp makes room at the end for as many as wait at least, so that a place costs little on average.
func (l *line[T]) closeUp() {
	leaves := l.tree[len(l.tree)/2:]
	l.places = slices.DeleteFunc(l.places, func(p *place[T]) bool { return p == nil })
	size := 2 << bits.Len(uint(len(l.places)))
	l.tree = slices.Repeat([]need{nothing()}, 2*size)
	for i, p := range l.places {
		l.tree[size+i] = leaves[p.index]
		p.index = i
	}
	for i := size - 1; i > 0; i-- {
		l.tree[i] = least(l.tree[2*i], l.tree[2*i+1])
	}
}

// least returns the least of each number of all who wait.
func (l *line[T]) least() need {
	if len(l.tree) == 0 {
		return nothing()
	}
	return l.tree[1]
}

func (l *line[T]) empty() bool { return l.least() == nothing() }

// first returns the first whose turn may come, and false if there is none.
func (l *line[T]) first(limits need) (who T, ok bool) {
	if !l.least().within(limits) {
		return who, false
	}
	i, half := 1, len(l.tree)/2
	for i < half {
		if i *= 2; !l.tree[i].within(limits) {
			i++
		}
	}
	return l.places[i-half].who, true
}
