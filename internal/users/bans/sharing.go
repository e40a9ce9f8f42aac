package bans

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/storage/state"
)

const (
	// shareInterval is the minimum time between two writes of the scores, and between two attempts to write bans.
	shareInterval = time.Second
	// cleanInterval is the time between two deletions of expired bans and scores in the store.
	cleanInterval = time.Minute
	// maxSharedScores limits the scores that a replica shares. The highest scores are shared.
	maxSharedScores = 1000
	// maxSharedBans limits the names whose bans after failures are shared, because strangers choose the names. Further
	// bans hold on their own replica. Bans by administrators are always shared.
	maxSharedBans = 10_000
	// parallelWrites is the number of bans that are written at the same time.
	parallelWrites = 8

	bansPrefix   = "bans/"
	scoresPrefix = "scores/"
)

// A Sharing exchanges the bans and scores of a [List] with other replicas. The store has these items:
//
//   - "bans/NAME/ID" is a ban, where NAME is the name in Base64, and ID differs for each ban. It is never changed. If
//     there are several for a name, the one that ends last is in force.
//   - "scores/REPLICA" has the scores from the failures at one replica. A name is banned when the sum of all replicas
//     reaches the maximum.
//
// Methods of a nil Sharing do nothing.
type Sharing struct {
	list    *List
	store   *state.Store
	log     *slog.Logger
	replica string        // differs for each process
	wake    chan struct{} // tells Run that a ban has changed

	mu      sync.Mutex
	shared  map[string]map[string]Ban          // bans in the store, by name and item
	remote  map[string]map[string]limits.Score // scores of other replicas, by item and name
	pending map[string]*Ban                    // changes to be written, by name; nil removes the ban
	scores  string                             // scores that were written last, as JSON
}

// Share lets replicas exchange bans and scores. key is the same for all replicas; it replaces the key for the hashes of
// unknown users. Call it before the list is in use, and then [Sharing.Run].
func (l *List) Share(s *state.Store, key []byte, log *slog.Logger) *Sharing {
	l.key = key
	l.sharing = &Sharing{
		list: l, store: s, log: log, replica: rand.Text(), wake: make(chan struct{}, 1),
		shared: map[string]map[string]Ban{}, remote: map[string]map[string]limits.Score{}, pending: map[string]*Ban{},
	}
	s.Watch(bansPrefix, l.sharing.bansChanged)
	s.Watch(scoresPrefix, l.sharing.scoresChanged)
	return l.sharing
}

// folderOf returns the prefix of the items of a name.
func folderOf(name string) string {
	return bansPrefix + base64.RawURLEncoding.EncodeToString([]byte(name)) + "/"
}

// nameOf returns the name in an item, and false if there is none.
func nameOf(item string) (string, bool) {
	encoded, _, ok := strings.Cut(strings.TrimPrefix(item, bansPrefix), "/")
	name, err := base64.RawURLEncoding.DecodeString(encoded)
	return string(name), ok && err == nil
}

// set writes a new ban to the store in the background, or removes all bans of a name if b is nil. The caller holds the
// lock of the list.
func (s *Sharing) set(name string, b *Ban) {
	if s == nil {
		return
	}
	s.mu.Lock()
	if b != nil && !b.ByAdministrator() && len(s.shared)+len(s.pending) >= maxSharedBans {
		s.mu.Unlock()
		return
	}
	s.pending[name] = b
	if b == nil { // until the other replicas have removed their scores
		for _, scores := range s.remote {
			delete(scores, name)
		}
	}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// points returns the points of a name at other replicas.
func (s *Sharing) points(name string, now time.Time, halfLife time.Duration) (sum float64) {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, scores := range s.remote {
		sum += scores[name].At(now, halfLife)
	}
	return sum
}

// bansChanged applies changes of the store to the list.
func (s *Sharing) bansChanged(changes []state.Change) {
	var names []string
	s.mu.Lock()
	for _, c := range changes {
		name, ok := nameOf(c.Name)
		if !ok {
			continue
		}
		var b Ban
		switch {
		case c.Value == nil:
			delete(s.shared[name], c.Name)
		case json.Unmarshal(c.Value, &b) != nil || b.Name != name:
			continue
		default:
			if s.shared[name] == nil {
				s.shared[name] = map[string]Ban{}
			}
			s.shared[name][c.Name] = b
		}
		names = append(names, name)
	}
	s.mu.Unlock()
	for _, name := range names {
		s.settle(name)
	}
}

// settle applies the bans of a name in the store to the list, unless a change of this replica is not written yet.
func (s *Sharing) settle(name string) {
	s.mu.Lock()
	if _, changed := s.pending[name]; changed {
		s.mu.Unlock()
		return
	}
	var longest *Ban
	for _, b := range s.shared[name] {
		if longest == nil || b.Until.After(longest.Until) {
			longest = &b
		}
	}
	if longest == nil {
		delete(s.shared, name)
	}
	s.mu.Unlock()
	s.list.take(name, longest)
}

// take applies a ban of another replica, or removes the ban if b is nil. In both cases, the other replicas have reset
// the score.
func (l *List) take(name string, b *Ban) {
	l.mu.Lock()
	defer l.mu.Unlock()
	current := l.bans.Get(name)
	switch {
	case b == nil || b.expired():
		if !current.expired() {
			l.log.Info("ban removed by another replica", "name", name)
		}
		l.remove(name)
	case current.Until.Equal(b.Until) && current.Reason == b.Reason:
		return
	default:
		l.put(*b)
		l.cut()
		l.log.Info("banned by another replica", "kind", b.Kind(), "name", name, "until", b.Until, "reason", b.Reason)
	}
	l.scores.Delete(name)
}

// scoresChanged applies changes of the store.
func (s *Sharing) scoresChanged(changes []state.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range changes {
		delete(s.remote, c.Name)
		var scores map[string]limits.Score
		if c.Value != nil && c.Name != scoresPrefix+s.replica && json.Unmarshal(c.Value, &scores) == nil {
			s.remote[c.Name] = scores
		}
	}
}

// Run writes changes to the store until ctx ends. It writes bans at once, and the scores at most once a second.
func (s *Sharing) Run(ctx context.Context) {
	write, clean := time.NewTicker(shareInterval), time.NewTicker(cleanInterval)
	defer write.Stop()
	defer clean.Stop()
	var failed bool
	for {
		var err error
		select {
		case <-s.wake:
			if failed { // the ticker repeats the attempt
				continue
			}
			err = s.writeBans(ctx)
		case <-write.C:
			if err = s.writeBans(ctx); err == nil {
				err = s.writeScores(ctx)
			}
		case <-clean.C:
			s.clean(ctx)
		case <-ctx.Done():
			return
		}
		if err != nil && !failed && ctx.Err() == nil {
			s.log.Warn("bans not shared with other replicas; retrying", "err", err)
		}
		failed = err != nil
	}
}

// writeBans writes all pending changes.
func (s *Sharing) writeBans(ctx context.Context) error {
	s.mu.Lock()
	pending := maps.Clone(s.pending)
	s.mu.Unlock()
	writing, ctx := errgroup.WithContext(ctx)
	writing.SetLimit(parallelWrites)
	for name, b := range pending {
		writing.Go(func() error {
			if err := s.writeBan(ctx, name, b); err != nil {
				return err
			}
			s.mu.Lock()
			if s.pending[name] == b {
				delete(s.pending, name)
			}
			s.mu.Unlock()
			s.settle(name)
			return nil
		})
	}
	return writing.Wait()
}

// writeBan writes a ban and deletes earlier ones of the same name. A nil ban only deletes.
func (s *Sharing) writeBan(ctx context.Context, name string, b *Ban) error {
	earlier := s.store.Names(folderOf(name))
	if b != nil && !b.expired() {
		text, err := json.Marshal(b)
		if err != nil {
			return err
		}
		item := folderOf(name) + strconv.FormatInt(b.Until.Unix(), 10) + "-" + rand.Text()
		if err := s.store.Update(ctx, item, func([]byte) ([]byte, error) { return text, nil }); err != nil {
			return err
		}
	}
	for _, item := range earlier {
		if err := s.store.Delete(ctx, item); err != nil {
			return err
		}
	}
	return nil
}

// writeScores writes the scores of this replica if they have changed.
func (s *Sharing) writeScores(ctx context.Context) error {
	text, err := json.Marshal(s.list.highestScores())
	if err != nil || string(text) == s.scores || s.scores == "" && string(text) == "{}" {
		return err
	}
	err = s.store.Update(ctx, scoresPrefix+s.replica, func([]byte) ([]byte, error) { return text, nil })
	if err == nil {
		s.scores = string(text)
	}
	return err
}

// highestScores returns the scores to be shared, by name.
func (l *List) highestScores() map[string]limits.Score {
	l.mu.Lock()
	defer l.mu.Unlock()
	type entry struct {
		name   string
		score  limits.Score
		points float64
	}
	var all []entry
	now := time.Now()
	for name, score := range l.scores.All() {
		if points := l.points(score, now); points >= forgotten {
			all = append(all, entry{name, score, points})
		}
	}
	slices.SortFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(b.points, a.points), cmp.Compare(a.name, b.name))
	})
	highest := map[string]limits.Score{}
	for _, e := range all[:min(len(all), maxSharedScores)] {
		highest[e.name] = e.score
	}
	return highest
}

// clean deletes expired bans from the store, and the scores of processes that have ended. Errors are ignored, because
// the next call tries again.
func (s *Sharing) clean(ctx context.Context) {
	s.list.mu.Lock()
	halfLife := s.list.cfg.HalfLife
	s.list.mu.Unlock()
	var old []string
	now := time.Now()
	s.mu.Lock()
	for _, bans := range s.shared {
		for item, b := range bans {
			if b.expired() {
				old = append(old, item)
			}
		}
	}
	for item, scores := range s.remote {
		if !slices.ContainsFunc(slices.Collect(maps.Values(scores)), func(score limits.Score) bool {
			return score.At(now, halfLife) >= forgotten
		}) {
			old = append(old, item)
		}
	}
	s.mu.Unlock()
	for _, item := range old {
		_ = s.store.Delete(ctx, item)
	}
}
