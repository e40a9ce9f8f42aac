package bans

import (
	"context"
	"time"

	"github.com/babelftp/babelftp/internal/bans/store"
	"github.com/babelftp/babelftp/internal/limits"
	"github.com/babelftp/babelftp/internal/panics"
)

const (
	// compareEvery is how often a list compares its version with that of the store. It finds a store that has stopped, and messages that were lost.
	compareEvery = 2 * time.Second
	// retryAfter is how long a list waits after an error before it asks the store again.
	retryAfter = 2 * time.Second
	// maxQueued is how many failures wait for the store. More count in this process only.
	maxQueued = 1000
)

// sharing is what a list needs to be shared by several servers. The mutex of the list guards it. The zero value shares nothing.
type sharing struct {
	store    *store.Store
	failures chan store.Failure // waiting for the store
	up       bool               // whether the store has answered the last request
	version  store.Version      // of the last change that the list has

	// unsent has the names that changed while the store did not answer.
	unsent map[string]struct{}
	// pushing holds a value while changes are sent. This keeps them in order.
	pushing chan struct{}
}

// UseStore makes the list count in a store, as soon as [List.Share] runs. It comes before any other call.
func (l *List) UseStore(s *store.Store) {
	l.key = s.Key()
	l.sharing = sharing{store: s, failures: make(chan store.Failure, maxQueued), unsent: map[string]struct{}{}, pushing: make(chan struct{}, 1)}
}

// Share shares the list until ctx ends. It calls observe with nil when the store answers, and with each error. While the store does not answer,
// the list counts for itself. It then sends the bans that were made and ended in this time, and no scores.
func (l *List) Share(ctx context.Context, observe func(error)) {
	said := true // whether the log knows that the store does not answer
	for first := true; ctx.Err() == nil; first = false {
		err := panics.Catch(func() error {
			return l.follow(ctx, func() {
				l.log.Info("limits.store answers: bans are shared with other replicas", "address", l.store.Address())
				observe(nil)
				said = false
			})
		})
		l.leaveStore()
		if ctx.Err() != nil {
			return
		}
		observe(err)
		if first || !said {
			said = true
			l.log.Warn("limits.store does not answer: this replica counts failures and bans for itself; check the store and the network",
				"address", l.store.Address(), "err", err)
		}
		_ = limits.Sleep(ctx, retryAfter)
	}
}

// follow keeps the list equal to that in the store, until an error or the end of ctx.
func (l *List) follow(ctx context.Context, up func()) error {
	changes, err := l.store.Subscribe(ctx) // before the list is loaded, so that no change is lost between
	if err != nil {
		return err
	}
	defer changes.Close()
	if err := l.synchronize(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	l.up = true
	l.mu.Unlock()
	up()
	ticker := time.NewTicker(compareEvery)
	defer ticker.Stop()
	for {
		select {
		case f := <-l.failures:
			err = l.send(ctx, f)
		case m := <-changes.Messages():
			err = l.learn(ctx, m)
		case <-ticker.C:
			err = l.compare(ctx)
		case <-ctx.Done():
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// shared gives a failure to the store. It returns false where that does not answer.
func (l *List) shared(f store.Failure) bool {
	if !l.up {
		return false
	}
	select {
	case l.failures <- f:
		return true
	default:
		return false
	}
}

// leaveStore lets the list count for itself, also what waits for the store.
func (l *List) leaveStore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.up = false; ; {
		select {
		case f := <-l.failures:
			l.add(f)
		default:
			return
		}
	}
}

// send counts a failure in the store.
func (l *List) send(ctx context.Context, f store.Failure) error {
	banned, err := l.store.Fail(ctx, f)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.add(f)
		return err
	}
	for _, name := range banned {
		l.ban(Ban{Name: name, Until: time.Now().Add(f.Ban.Left), Reason: f.Ban.Reason})
	}
	return nil
}

// learn takes over a change of another server, or of this one.
func (l *List) learn(ctx context.Context, m store.Message) error {
	c, err := store.ParseChange(m)
	if err != nil {
		return err
	}
	l.mu.Lock()
	same, next := c.Epoch == l.version.Epoch, l.version.Number+1
	if same && c.Number == next {
		l.version = c.Version
		l.take(c.Ban)
		l.cut()
	}
	l.mu.Unlock()
	if !same || c.Number > next { // else the change is known
		return l.synchronize(ctx)
	}
	return nil
}

// take makes the list have a ban of the store, or not have it, but for what this process has changed since.
func (l *List) take(b store.Ban) {
	if _, unsent := l.unsent[b.Name]; unsent {
		return
	}
	if b.Left <= 0 {
		l.drop(b.Name)
		return
	}
	l.put(Ban{Name: b.Name, Until: time.Now().Add(b.Left), Reason: b.Reason})
}

// compare synchronizes the list with the store where they differ.
func (l *List) compare(ctx context.Context) error {
	version, err := l.store.Version(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	equal := version == l.version && len(l.unsent) == 0
	l.mu.Unlock()
	if equal {
		return nil
	}
	return l.synchronize(ctx)
}

// synchronize sends what the store lacks, and loads what the list lacks.
func (l *List) synchronize(ctx context.Context) error {
	version, err := l.store.Version(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	if version.Lacks(l.version) {
		for name := range l.bans {
			if l.live(name) {
				l.changed(name)
			}
		}
	}
	l.mu.Unlock()
	if err := l.sendChanges(ctx); err != nil {
		return err
	}
	return l.load(ctx)
}

// load takes over all bans of the store.
func (l *List) load(ctx context.Context) error {
	version, all, err := l.store.Load(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version = version
	stored := map[string]struct{}{}
	for _, b := range all {
		stored[b.Name] = struct{}{}
		l.take(b)
	}
	for name := range l.bans {
		if _, found := stored[name]; !found {
			l.take(store.Ban{Name: name})
		}
	}
	l.cut()
	return nil
}

// changed notes that the store does not know of a change.
func (l *List) changed(name string) {
	if l.store != nil {
		l.unsent[name] = struct{}{}
	}
}

// push sends the changes of an administrator, so that other servers have them at once. After an error [List.Share] sends them.
func (l *List) push(ctx context.Context) {
	l.mu.Lock()
	up := l.up
	l.mu.Unlock()
	if !up {
		return
	}
	if err := l.sendChanges(ctx); err != nil {
		l.log.Warn("limits.store did not take a ban, or the end of one, at once; the server tries again", "err", err)
	}
}

// sendChanges sends what the store does not know.
func (l *List) sendChanges(ctx context.Context) error {
	select {
	case l.pushing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.pushing }()
	for {
		b, found := l.nextChange()
		if !found {
			return nil
		}
		if err := l.sendChange(ctx, b); err != nil {
			return err
		}
		l.mu.Lock()
		if l.bans[b.Name].Until.Equal(b.Until) { // else there is another change
			delete(l.unsent, b.Name)
		}
		l.mu.Unlock()
	}
}

// nextChange returns a name that the store does not know, with its ban.
func (l *List) nextChange() (b Ban, found bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name := range l.unsent {
		b := l.bans[name]
		b.Name = name
		return b, true
	}
	return Ban{}, false
}

// sendChange sends a ban, or its end.
func (l *List) sendChange(ctx context.Context, b Ban) error {
	left := time.Until(b.Until)
	if left < time.Millisecond {
		return l.store.Lift(ctx, b.Name)
	}
	return l.store.Ban(ctx, store.Ban{Name: b.Name, Reason: b.Reason, Left: left})
}
