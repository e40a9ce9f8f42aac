package account

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/users/usersfile"
)

const (
	// rehashInterval is the time between two writes of new hashes, each of which makes the server reload its
	// configuration.
	rehashInterval = 5 * time.Second
	// maxRehashes limits the passwords that wait for the next write. Hashing them takes two seconds on a slow
	// processor. Other users get their new hash after a later login.
	maxRehashes = 50
	// rehashTimeout limits the time for writing hashes to the shared state.
	rehashTimeout = time.Minute
)

// A rehasher replaces weak password hashes in users files after logins. It works in the background, so no login waits
// for it, and a failure affects no login: the next one tries again.
type rehasher struct {
	log     *slog.Logger
	closing chan struct{}

	mu      sync.Mutex
	waiting map[*User]string // verified passwords
	running chan struct{}    // closed when the goroutine ends; nil without a goroutine
	closed  bool
	logged  map[string]string // the reason that was logged, by file
}

func newRehasher(log *slog.Logger) *rehasher {
	return &rehasher{
		log: log, closing: make(chan struct{}), waiting: map[*User]string{}, logged: map[string]string{},
	}
}

// schedule schedules a new hash for a user whose hash is weak, after the password has been verified.
func (r *rehasher) schedule(ctx context.Context, u *User, password string) {
	if !u.Tenant.Rehashes() || u.closedReason(time.Now()) != "" || !passwordhash.IsWeaker(u.PasswordHash.Reveal(), password) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || len(r.waiting) >= maxRehashes {
		return
	}
	r.waiting[u] = password
	if r.running == nil {
		r.running = make(chan struct{})
		ctx = context.WithoutCancel(ctx)
		panics.Go(func() { r.run(ctx) })
	}
}

// run writes new hashes until no password waits.
func (r *rehasher) run(ctx context.Context) {
	for {
		select {
		case <-time.After(rehashInterval):
		case <-r.closing:
		}
		r.mu.Lock()
		waiting := r.waiting
		r.waiting = map[*User]string{}
		r.mu.Unlock()
		if err := panics.Catch(func() error { r.rehash(ctx, waiting); return nil }); err != nil {
			r.log.Error("rehashing passwords failed; the next login tries again", "err", err)
		}
		if r.ended() {
			return
		}
	}
}

// ended reports whether no password waits, so that the goroutine must end.
func (r *rehasher) ended() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) > 0 {
		return false
	}
	close(r.running)
	r.running = nil
	return true
}

// close writes what waits, and ends the goroutine.
func (r *rehasher) close() {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.closing)
	}
	running := r.running
	r.mu.Unlock()
	if running != nil {
		<-running
	}
}

// rehash hashes passwords and writes them to the stores of the tenants.
func (r *rehasher) rehash(ctx context.Context, passwords map[*User]string) {
	byTenant := map[*Tenant][]*User{}
	for u := range passwords {
		byTenant[u.Tenant] = append(byTenant[u.Tenant], u)
	}
	for t, users := range byTenant {
		places, err := t.store.Places()
		if err != nil {
			r.log.Warn(rehashFailed, "tenant", t.Name, "err", err)
			continue
		}
		in := map[usersfile.Place][]*User{}
		for _, u := range users {
			if place, known := places[u.Name]; known {
				in[place] = append(in[place], u)
			}
		}
		for place, users := range in {
			if err := t.store.Writable(place); err != nil {
				r.tell(place.Name, err)
				continue
			}
			r.rehashIn(ctx, t.store, place, users, passwords)
		}
	}
}

const rehashFailed = "rehashing passwords failed; the next login tries again"

// rehashIn writes the new hashes of the users at a place.
func (r *rehasher) rehashIn(
	ctx context.Context, store *usersfile.Store, at usersfile.Place, users []*User, passwords map[*User]string,
) {
	about := []any{"tenant", users[0].Tenant.Name, string(at.Kind), at.Name}
	hashed, err := hashAndWrite(ctx, store, at, users, passwords)
	if err != nil {
		r.log.Warn(rehashFailed, append(about, "err", err)...)
	}
	for _, user := range hashed {
		r.log.Info("rehashed a password with argon2id", append(about, "user", user)...)
	}
}

// hashAndWrite hashes the passwords of the users at a place, and writes the hashes. It returns the users.
func hashAndWrite(
	ctx context.Context, store *usersfile.Store, at usersfile.Place, users []*User, passwords map[*User]string,
) (hashed []string, err error) {
	var changes []usersfile.Rehash
	for _, u := range users {
		hash, err := passwordhash.New(passwords[u])
		if err != nil {
			return nil, err
		}
		changes = append(changes, usersfile.Rehash{User: u.Name, Old: u.PasswordHash.Reveal(), New: hash})
	}
	// The server ends only after the hashes are written, or S3 does not answer.
	ctx, cancel := context.WithTimeout(ctx, rehashTimeout)
	defer cancel()
	return store.WriteHashes(ctx, at, changes)
}

// tell logs once why the hashes in a file are not replaced.
func (r *rehasher) tell(file string, reason error) {
	if r.logged[file] == reason.Error() {
		return
	}
	r.logged[file] = reason.Error()
	r.log.Info("passwords are not rehashed", "file", file, "reason", reason)
}
