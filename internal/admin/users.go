package admin

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/users/usersfile"
)

// Accounts are the users of all tenants of a server. Its methods are safe for concurrent use.
type Accounts interface {
	// Config returns the configuration in use.
	Config() *config.Config
	// Store returns the store of a tenant, or false if the tenant does not exist.
	Store(tenant string) (*usersfile.Store, bool)
	// Remembered returns the users of a directory or hook who have logged in and are remembered.
	Remembered(tenant string) []string
	// Hash returns the hash of a password, or an error such as [account.ErrPasswordTooShort]. Requests of one client
	// take turns.
	Hash(ctx context.Context, client, user, password string) (string, error)
	// Await waits until accept returns true for the settings in use of a user, which are nil if the user does not
	// exist. The error says why the stored settings are not in use.
	Await(ctx context.Context, tenant, user string, accept func(*config.User) bool) error
	// Texts returns the texts of a tenant in a language, or false if the tenant does not exist.
	Texts(tenant string, tag language.Tag) (Texts, bool)
}

// A Source of users says where the settings of a user are.
type userSource string

// The sources of users.
const (
	fromFile          userSource = "file"          // users_file
	fromState         userSource = "state"         // the shared state
	fromConfiguration userSource = "configuration" // users of the tenant in the configuration
	fromDirectory     userSource = "directory"     // a directory or hook
)

// Values returns the sources, for the OpenAPI document.
func (userSource) Values() []string {
	return []string{string(fromFile), string(fromState), string(fromConfiguration), string(fromDirectory)}
}

// A User is a user of a tenant.
type User struct {
	Tenant string `json:"tenant"`
	Name   string `json:"name"`
	// The keys of the user in the configuration that are set.
	Settings config.Settings `json:"settings"`
	// Whether the user has a password. The password itself is never shown.
	HasPassword bool `json:"has_password"`
	// Where the settings are: in the users_file of the tenant, in the shared state, in the configuration, or in a
	// directory or hook.
	Source userSource `json:"source"`
	// Whether PATCH and DELETE can change the user.
	Writable bool `json:"writable"`
	// Why the user cannot be changed.
	Reason string `json:"reason,omitempty"`
	// Time of the last login, if it is known.
	LastLogin *time.Time `json:"last_login,omitempty"`
	// Number of sessions on this replica.
	Online int `json:"online"`

	version string // empty if unknown
}

// A UserList is a page of users.
type UserList struct {
	// Users sorted by tenant and name.
	Users []User `json:"users"`
	// Value of `after` for the next page. It is missing on the last page.
	Next string `json:"next,omitempty"`
}

// Texts are the texts of a tenant as its users read them.
type Texts struct {
	Tenant string `json:"tenant"`
	// Language of the texts.
	Language string `json:"language"`
	// Languages that users of the tenant can select, beginning with the first choice of the tenant.
	Languages []Language `json:"languages"`
	// Lines that clients read after they have named the host of the tenant.
	Greeting []string `json:"greeting"`
	// Lines that users read after the login, for a user called `alice`.
	Login []string `json:"login"`
	// Line after a wrong password.
	LoginFailed string `json:"login_failed"`
}

// A Language is a language in which users can read texts.
type Language struct {
	// Tag of BCP 47.
	Tag string `json:"tag"`
	// Name of the language in the language itself.
	Name string `json:"name"`
	// Writing direction: ltr or rtl.
	Direction string `json:"direction"`
}

// The limits of a page of users.
const (
	defaultUsers = 100
	maxUsers     = 1000
)

// userRoutes returns the endpoints for users.
func (h *Handler) userRoutes() []route {
	const one = "/users/{tenant}/{name}"
	return []route{
		{http.MethodGet, "/users", Viewer, "List users, sorted by tenant and name", []parameter{
			{name: "tenant", meaning: "only users of this tenant"},
			{name: "q", meaning: "only users whose name contains this text, in any case"},
			{name: "after", meaning: "`next` of the previous page"},
			{name: "limit", meaning: "maximum number of users",
				schema: map[string]any{"type": "integer", "minimum": 1, "maximum": maxUsers, "default": defaultUsers}},
		}, reads(h.users)},
		{http.MethodPost, "/users", Administrator, "Add a user", nil,
			changes("user_add", h.addUser).accepts(newUser{}, mediaJSON).responds(http.StatusCreated)},
		{http.MethodGet, one, Viewer, "Show a user", nil, reads(h.user)},
		{http.MethodPatch, one, Administrator, "Change a user with a JSON Merge Patch (RFC 7396)", nil,
			changes("user_change", h.changeUser).accepts(userPatch{}, mediaMergePatch, mediaJSON).conditional()},
		{http.MethodDelete, one, Administrator, "Remove a user. Files and open sessions remain", nil,
			changes("user_delete", h.deleteUser).responds(http.StatusNoContent).conditional()},
		{http.MethodGet, "/tenants/{tenant}/texts", Viewer, "Show the texts of a tenant as its users read them",
			[]parameter{{name: "lang", meaning: "language tag (BCP 47); the default is the language of the tenant"}},
			reads(h.texts)},
	}
}

// A userKey identifies a user.
type userKey struct{ tenant, name string }

func compareUsers(a, b userKey) int {
	return cmp.Or(strings.Compare(a.tenant, b.tenant), strings.Compare(a.name, b.name))
}

// cursor returns the value of `next` and `after` for a user.
func (k userKey) cursor() string {
	return base64.RawURLEncoding.EncodeToString([]byte(k.tenant + "\x00" + k.name))
}

func parseCursor(text string) (userKey, error) {
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	tenant, name, found := strings.Cut(string(decoded), "\x00")
	if text != "" && (err != nil || !found) {
		return userKey{}, &Error{http.StatusBadRequest, "invalid after: send the next of the previous page"}
	}
	return userKey{tenant, name}, nil
}

// users returns a page of users.
func (h *Handler) users(r *http.Request) (UserList, error) {
	limit := defaultUsers
	if text := r.FormValue("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxUsers {
			return UserList{}, &Error{http.StatusBadRequest,
				fmt.Sprintf("invalid limit %q: want 1 to %d", text, maxUsers)}
		}
		limit = n
	}
	after, err := parseCursor(r.FormValue("after"))
	if err != nil {
		return UserList{}, err
	}
	cfg := h.Accounts.Config()
	h.places.keep(cfg)
	tenants := slices.Sorted(maps.Keys(cfg.Tenants))
	if name := r.FormValue("tenant"); name != "" {
		if cfg.Tenants[name] == nil {
			return UserList{}, errNoTenant(name, h.Source.Tenants(nil))
		}
		tenants = []string{name}
	}
	wanted := config.FoldUser(r.FormValue("q"))
	var keys []userKey
	for _, tenant := range tenants {
		for _, name := range h.names(cfg, tenant) {
			key := userKey{tenant, name}
			if compareUsers(key, after) > 0 && strings.Contains(config.FoldUser(name), wanted) {
				keys = append(keys, key)
			}
		}
	}
	slices.SortFunc(keys, compareUsers)
	page := UserList{Users: []User{}}
	if len(keys) > limit {
		keys = keys[:limit]
		page.Next = keys[limit-1].cursor()
	}
	activity := h.activity()
	for _, key := range keys {
		page.Users = append(page.Users, activity.add(h.userInUse(cfg, key)))
	}
	return page, nil
}

// names returns the normalized names of the users of a tenant, including the remembered users of a directory.
func (h *Handler) names(cfg *config.Config, tenant string) []string {
	var names []string
	known := map[string]bool{}
	for name := range cfg.Tenants[tenant].Users {
		name = config.NormalizeUser(name)
		names, known[name] = append(names, name), true
	}
	for _, name := range h.Accounts.Remembered(tenant) {
		if !known[name] {
			names = append(names, name)
		}
	}
	return names
}

// userInUse returns a user with the settings in use.
func (h *Handler) userInUse(cfg *config.Config, key userKey) User {
	u := User{Tenant: key.tenant, Name: key.name, Settings: config.Settings{}, Source: fromDirectory,
		Reason: "the user is in the directory or hook of auth, which has the settings"}
	in := settingsOf(cfg.Tenants[key.tenant], key.name)
	if in == nil {
		return u
	}
	u.Settings, u.HasPassword, u.Source = in.Settings(), !in.PasswordHash.Empty(), fromConfiguration
	u.Reason = "the user is set in the configuration itself: change the user there, or move it to a users_file"
	store, _ := h.Accounts.Store(key.tenant)
	if store == nil || !store.IsSet() {
		return u
	}
	places, err := h.places.of(cfg.Tenants[key.tenant], store)
	if place, found := places[key.name]; found {
		u.at(place, store)
	} else if err != nil {
		u.Reason = err.Error()
	}
	return u
}

// at sets where the user is stored, and whether the server may write there.
func (u *User) at(place usersfile.Place, store *usersfile.Store) {
	u.Source, u.Writable, u.Reason = userSource(place.Kind), true, ""
	if err := store.Writable(place); err != nil {
		u.Writable, u.Reason = false, err.Error()
	}
}

// settingsOf returns the settings of a user of a tenant, or nil.
func settingsOf(tenant *config.Tenant, name string) *config.User {
	if u := tenant.Users[name]; u != nil {
		return u
	}
	for of, u := range tenant.Users {
		if config.NormalizeUser(of) == name {
			return u
		}
	}
	return nil
}

// placesInUse remembers where the users of each tenant are until its configuration changes, because finding out means
// parsing its files.
type placesInUse struct {
	mu  sync.Mutex
	all map[*config.Tenant]map[string]usersfile.Place
}

// of returns where the users of a tenant are.
func (p *placesInUse) of(tenant *config.Tenant, store *usersfile.Store) (map[string]usersfile.Place, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known, ok := p.all[tenant]; ok {
		return known, nil
	}
	places, err := store.Places()
	if err == nil {
		p.all[tenant] = places
	}
	return places, err
}

// keep forgets the tenants that the configuration does not have anymore.
func (p *placesInUse) keep(cfg *config.Config) {
	inUse := make(map[*config.Tenant]bool, len(cfg.Tenants))
	for _, t := range cfg.Tenants {
		inUse[t] = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.all, func(t *config.Tenant, _ map[string]usersfile.Place) bool { return !inUse[t] })
}

// userActivity has the last logins and the sessions of users.
type userActivity struct {
	last   map[userKey]time.Time
	online map[userKey]int
}

func (h *Handler) activity() userActivity {
	a := userActivity{map[userKey]time.Time{}, map[userKey]int{}}
	for _, l := range h.Source.LastLogins() {
		a.last[userKey{l.Tenant, l.User}] = l.Time
	}
	for _, s := range h.Source.Sessions() {
		if s.User != "" {
			a.online[userKey{s.Tenant, s.User}]++
		}
	}
	return a
}

// add returns the user with its activity.
func (a userActivity) add(u User) User {
	key := userKey{u.Tenant, u.Name}
	if at, known := a.last[key]; known {
		u.LastLogin = &at
	}
	u.Online = a.online[key]
	return u
}

// user returns the user in the path, as it is stored.
func (h *Handler) user(r *http.Request) (User, error) {
	key, store, err := h.userInPath(r)
	if err != nil {
		return User{}, err
	}
	u, err := h.stored(r.Context(), key, store)
	return h.activity().add(u), err
}

// userInPath returns the user in the path and the store of its tenant.
func (h *Handler) userInPath(r *http.Request) (userKey, *usersfile.Store, error) {
	key := userKey{r.PathValue("tenant"), config.NormalizeUser(r.PathValue("name"))}
	store, ok := h.Accounts.Store(key.tenant)
	if !ok {
		return key, nil, errNoTenant(key.tenant, h.Source.Tenants(nil))
	}
	return key, store, nil
}

// stored returns a user with the settings in its store, or with the settings in use if no store has the user.
func (h *Handler) stored(ctx context.Context, key userKey, store *usersfile.Store) (User, error) {
	if store.IsSet() {
		d, place, err := store.Read(ctx, key.name)
		if err == nil {
			u, _, err := userIn(d, key, place)
			if err != nil {
				return User{}, &Error{http.StatusConflict, fmt.Sprintf("invalid settings in %s: correct them there: %v", place, err)}
			}
			u.at(place, store)
			return u, nil
		}
		if !errors.Is(err, usersfile.ErrNotFound) {
			return User{}, storeError(key, err)
		}
	}
	cfg := h.Accounts.Config()
	tenant := cfg.Tenants[key.tenant]
	if tenant == nil || settingsOf(tenant, key.name) == nil &&
		!slices.Contains(h.Accounts.Remembered(key.tenant), key.name) {
		return User{}, errNoUser(key)
	}
	u := h.userInUse(cfg, key)
	if u.Writable { // removed from the store, and not yet from the configuration in use
		return User{}, errNoUser(key)
	}
	text, err := json.Marshal(u)
	u.version = versionOf(text)
	return u, err
}

// userIn returns the user in a document of its store, and the settings as the server would use them.
func userIn(d *usersfile.Document, key userKey, place usersfile.Place) (User, *config.User, error) {
	u := User{Tenant: key.tenant, Name: key.name, version: d.Version(key.name)}
	settings, err := d.Settings(key.name)
	if err != nil || settings == nil {
		return u, nil, err
	}
	in, err := config.DecodeUser(place.Name, settings)
	if err != nil {
		return u, nil, err
	}
	u.Settings, u.HasPassword = in.Settings(), !in.PasswordHash.Empty()
	return u, in, nil
}

func errNoUser(key userKey) error {
	return &Error{http.StatusNotFound, fmt.Sprintf("user %s@%s not found", key.name, key.tenant)}
}

// setHeaders sets the ETag of a response, and its Location if the response is 201.
func (u User) setHeaders(header http.Header, status int) {
	if u.version != "" {
		header.Set("ETag", `"`+u.version+`"`)
	}
	if status == http.StatusCreated {
		header.Set("Location", userPath(u.Tenant, u.Name))
	}
}

// texts returns the texts of the tenant in the path.
func (h *Handler) texts(r *http.Request) (Texts, error) {
	tag := language.Und
	if text := r.FormValue("lang"); text != "" {
		var err error
		if tag, err = language.Parse(text); err != nil {
			return Texts{}, &Error{http.StatusBadRequest, fmt.Sprintf("invalid lang %q: want a language tag such as fr or pt-BR", text)}
		}
	}
	tenant := r.PathValue("tenant")
	texts, ok := h.Accounts.Texts(tenant, tag)
	if !ok {
		return Texts{}, errNoTenant(tenant, h.Source.Tenants(nil))
	}
	for i, l := range texts.Languages {
		texts.Languages[i].Direction = direction(language.Make(l.Tag))
	}
	return texts, nil
}
