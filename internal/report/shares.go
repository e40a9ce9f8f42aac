package report

// An Owner is the user whose session created a line, an event or a span. The zero value represents clients that are
// not logged in, administrators, and the server.
type Owner struct{ Tenant, User string }

// Shares divides a number of bytes between all users. A tenant may hold at most as much as is free, and a user at most
// half of that. Therefore the users of one tenant can fill half of the bytes, a single user a third, and there is
// always room for others. Shares is not safe for concurrent use.
type Shares struct {
	limit, used int
	held        map[Owner]int // by tenant (without a user), and by user
}

// NewShares returns shares of limit bytes.
func NewShares(limit int) *Shares { return &Shares{limit: limit, held: map[Owner]int{}} }

// Add adds bytes of an owner, or removes them if bytes is negative.
func (s *Shares) Add(owner Owner, bytes int) {
	s.used = max(0, s.used+bytes)
	for _, of := range owner.scopes() {
		if s.held[of] += bytes; s.held[of] <= 0 {
			delete(s.held, of)
		}
	}
}

// Fits reports whether this number of bytes fits into the free bytes and into the shares of the owner.
func (s *Shares) Fits(owner Owner, bytes int) bool {
	return bytes <= s.Free() && s.fits(owner, func(int) int { return bytes })
}

// HasRoom reports whether at least half of each share of the owner is free.
func (s *Shares) HasRoom(owner Owner) bool {
	if owner == (Owner{}) {
		return s.Free() >= s.limit/2
	}
	return s.fits(owner, func(share int) int { return share / 2 })
}

// Free returns the number of free bytes.
func (s *Shares) Free() int { return s.limit - s.used }

// fits reports whether each share of the owner has room for the bytes that the function returns for it.
func (s *Shares) fits(owner Owner, bytes func(share int) int) bool {
	share := s.Free()
	for _, of := range owner.scopes() {
		if s.held[of]+bytes(share) > share {
			return false
		}
		share /= 2
	}
	return true
}

// scopes returns the owners whose shares apply: the tenant and the user.
func (o Owner) scopes() []Owner {
	if o == (Owner{}) {
		return nil
	}
	return []Owner{{Tenant: o.Tenant}, o}
}
