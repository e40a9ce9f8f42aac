package usersfile

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/storage/state"
)

// Stored are the users of all tenants in the shared state, as the configuration needs them. Each version of a user is
// parsed only once.
type Stored struct {
	state   *state.Store
	changed chan struct{}

	mu    sync.Mutex
	items map[string]*storedItem // by the name of the item
}

// A storedItem is an item of the shared state. It is parsed by the next Merge.
type storedItem struct {
	text   []byte
	parsed bool
	of     Item
	user   *config.User // nil if the item has no user, or an invalid one
	reason string       // why the user is invalid
}

// NewStored returns the users in the shared state, and follows their changes.
func NewStored(s *state.Store) *Stored {
	st := &Stored{state: s, changed: make(chan struct{}, 1), items: map[string]*storedItem{}}
	s.Watch(ItemsPrefix, func(changes []state.Change) {
		st.mu.Lock()
		defer st.mu.Unlock()
		for _, c := range changes {
			if c.Value == nil {
				delete(st.items, c.Name)
			} else {
				st.items[c.Name] = &storedItem{text: c.Value}
			}
		}
		select {
		case st.changed <- struct{}{}:
		default:
		}
	})
	return st
}

// Changed returns a channel that receives a value after users have changed.
func (st *Stored) Changed() <-chan struct{} { return st.changed }

// Merge adds the users to a configuration; see [config.Config.MergeUsers]. before is the result of the last Merge, or
// nil.
func (st *Stored) Merge(cfg, before *config.Config) (merged *config.Config, problems []config.UserProblem) {
	users := config.StoredUsers{}
	st.mu.Lock()
	for name, i := range st.items {
		if !i.parsed {
			i.parse(name, st.state.URL(name))
		}
		switch tenant := i.of.Tenant; {
		case i.reason != "":
			problems = append(problems, config.UserProblem{Tenant: tenant, User: i.of.Name, Reason: i.reason})
		case i.user != nil:
			if users[tenant] == nil {
				users[tenant] = map[string]*config.User{}
			}
			users[tenant][i.of.Name] = i.user
		}
	}
	st.mu.Unlock()
	merged, invalid := cfg.MergeUsers(users, !st.state.Known(), before)
	problems = append(problems, invalid...)
	slices.SortFunc(problems, func(a, b config.UserProblem) int {
		return cmp.Or(strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.User, b.User))
	})
	return merged, problems
}

// parse parses the text. Invalid users are reported by Merge.
func (i *storedItem) parse(name, url string) {
	i.parsed = true
	of, ok := ParseItem(name, i.text)
	i.of = of
	switch {
	case !ok: // a removed user
	case of.Text == nil:
		i.reason = url + ": it does not have exactly one user, with the name of the item"
	default:
		var err error
		if i.user, err = config.ParseUser(url, of.Text, of.Name, false); err != nil {
			i.reason = err.Error()
		}
	}
	i.text, i.of.Text = nil, nil
}
