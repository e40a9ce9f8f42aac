package report

// An Owner is the user whose session has made a line, an event or a span. The zero value stands for clients that are
// not logged in, for administrators and for the server.
type Owner struct{ Tenant, User string }

// Shares divide a number of bytes that all users fill together. A tenant holds at most as much as is free, and a user
// at most half of that. So the users of one tenant can fill half of it, one user a third, and whoever fills a share
// leaves room to the others. The methods must not be called concurrently.
type Shares struct {
	most, used int
	held       map[Owner]int // by tenant, without a user, and by user
}

// NewShares divides so many bytes.
func NewShares(most int) *Shares { return &Shares{most: most, held: map[Owner]int{}} }

// Add counts bytes of an owner, which are negative if they are no longer held.
func (s *Shares) Add(owner Owner, bytes int) {
	s.used = max(0, s.used+bytes)
	for _, of := range owner.scopes() {
		if s.held[of] += bytes; s.held[of] <= 0 {
			delete(s.held, of)
		}
	}
}

// Fits reports whether so many bytes fit into what is free, and into the shares of the owner.
func (s *Shares) Fits(owner Owner, bytes int) bool {
	return bytes <= s.Free() && s.fits(owner, func(int) int { return bytes })
}

// Roomy reports whether half of each share of the owner is free.
func (s *Shares) Roomy(owner Owner) bool {
	if owner == (Owner{}) {
		return s.Free() >= s.most/2
	}
	return s.fits(owner, func(share int) int { return share / 2 })
}

// Free returns how many bytes nobody holds.
func (s *Shares) Free() int { return s.most - s.used }

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

// scopes returns the tenant and the user.
func (o Owner) scopes() []Owner {
	if o == (Owner{}) {
		return nil
	}
	return []Owner{{Tenant: o.Tenant}, o}
}
