package tenant

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/names/charset"
	"github.com/babelftp/babelftp/internal/names/hostname"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/storage/view"
	"github.com/babelftp/babelftp/internal/users/account"
	"github.com/babelftp/babelftp/internal/users/bans"
)

// A Registry is the tenants and their users. It is the control connection's backend. A [Change] replaces them while
// it is in use.
type Registry struct {
	current atomic.Pointer[directory]
	// entering is held for reading while a login is counted, and for writing while a change is applied.
	entering sync.RWMutex

	verifier  *verifier
	newQuotas chan *Quota                            // of users whom sources brought; see [Registry.NewQuotas]
	throttle  *limits.Throttle[netip.Prefix, string] // of logins, by [limits.Network] and what failures count for
	endings   view.Endings
	bans      *bans.List
	log       *slog.Logger
}

var _ account.Backend = (*Registry)(nil)

// Options is what the configuration of the tenants does not say.
type Options struct {
	// Files is what the file systems of all users have in common: sizes of parts, concurrency and memory.
	Files driver.Options
	// Events are the sinks of the tenants that have a webhook, by their names.
	Events map[string]EventSink
	// Logger gets what happens to the files of a user. The default discards it.
	Logger *slog.Logger
	// Bans are asked before a password, and learn of those that are wrong. The default bans none.
	Bans *bans.List
}

// An EventSink notes the files that the users of a tenant store, delete, rename and copy.
type EventSink interface {
	view.Sink
	// Use says that a login may make events, until it calls done.
	Use() (done func())
}

type tenant struct {
	account.Tenant
	certificates
	config   *config.Tenant
	replaced chan struct{} // closed when a change replaces the tenant; Registry.entering is held then
	bucket   *s3client.Bucket
	quota    *Quota    // nil without
	events   EventSink // nil without a webhook
	users    map[string]*user
	external *external        // nil without
	removed  map[string]*user // whom the configuration no longer has, with sessions
	scope    *limits.Scope

	maxPresign time.Duration // the longest life of a link; 0: there are none
	printable  bool          // whether names with control characters are refused.
	truncates  bool          // whether STOR after REST ends the file
	resumable  bool          // whether interrupted uploads are kept for the user who began them
}

// NewRegistry takes the tenants from a valid configuration; buckets has one for each, by the tenant's name. It notes
// in the buckets which modes of overwriting their users need. The error names the tenant whose languages or messages
// bundle cannot take, or whose files [driver.New] would refuse.
func NewRegistry(
	cfg *config.Config, bundle *i18n.Bundle, buckets map[string]*s3client.Bucket, opts Options,
) (*Registry, error) {
	verifier, err := newVerifier(hashesOf(cfg))
	if err != nil {
		return nil, err
	}
	r := &Registry{
		verifier:  verifier,
		newQuotas: make(chan *Quota, maxNewQuotas),
		throttle:  limits.NewThrottle[netip.Prefix, string](cfg.Limits.FailedLoginDelay),
		log:       opts.Logger,
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if r.bans = opts.Bans; r.bans == nil {
		r.bans = bans.New(config.Bans{}, config.Networks{}, r.log, func(string) {})
	}
	r.current.Store(&directory{})
	first, err := r.Prepare(cfg, bundle, buckets, opts.Events, opts.Files)
	if err != nil {
		return nil, err
	}
	first.Apply()
	return r, nil
}

// checkStorage returns an error if [driver.New] would refuse the files of a user, with these options of all users.
func (r *Registry) checkStorage(u *user, files driver.Options) error {
	for _, m := range u.mounts {
		opts := r.storageOptions(files, u, m)
		if err := opts.Validate(); err != nil {
			return fmt.Errorf("tenant %s: user %s: directory %s: %w", u.tenant.Name, u.name, m.at, err)
		}
	}
	return nil
}

// newTenant is a tenant without bucket and users.
func newTenant(cfg *config.Config, name string, tc *config.Tenant, bundle *i18n.Bundle) (*tenant, error) {
	if len(tc.Languages) > 0 || len(tc.Messages) > 0 {
		var err error
		if bundle, err = bundle.WithOverrides(tc.Languages, tc.Messages); err != nil {
			return nil, fmt.Errorf("tenant %s: languages: %w", name, err)
		}
	}
	return &tenant{
		config: tc,
		Tenant: account.Tenant{
			Name:            name,
			DefaultLanguage: FirstOffered(bundle, tc.DefaultLanguage, cfg.DefaultLanguage),
			Bundle:          bundle,
			Greeting:        byTag(tc.Greeting),
			Welcome:         byTag(tc.Welcome),
			GreetAfterLang:  tc.GreetAfterLang,
			Encoding:        tc.PathnameEncoding.Encoding,
			Normalization:   tc.NormalizationOf(),
			Backslash:       tc.Backslash,
			LenientDataEOF:  tc.TLS.StrictDataEOF != nil && !*tc.TLS.StrictDataEOF,

			RequireSessionReuse: tc.TLS.RequiresSessionReuse(&cfg.TLS),
			IgnoreChmod:         tc.Chmod == config.IgnoreChmod,
			KeepLineEnds:        tc.ASCII == config.KeepLineEnds,
		},
		replaced:   make(chan struct{}),
		users:      map[string]*user{},
		scope:      limits.NewTenant(name, tc.Limits.Sessions, tc.Limits.Limits()),
		maxPresign: tc.Presign,
		printable:  tc.ControlCharacters == config.RefuseControlCharacters,
		truncates:  tc.StorAfterRest == config.TruncateRest,
		resumable:  tc.Resume == config.KeepInterrupted,
	}, nil
}

// FirstOffered is the first of the tags for which the bundle has a language, or else its first language.
func FirstOffered(bundle *i18n.Bundle, tags ...language.Tag) language.Tag {
	for _, tag := range tags {
		if found, ok := bundle.Match(tag); ok {
			return found
		}
	}
	return bundle.Tags()[0]
}

// byTag is texts by language as [i18n.SelectText] takes them.
func byTag(texts map[language.Tag]string) map[string]string {
	m := make(map[string]string, len(texts))
	for tag, text := range texts {
		m[tag.String()] = text
	}
	return m
}

// Host implements [account.Backend].
func (r *Registry) Host(name string) (*account.Tenant, bool) {
	t, ok := r.current.Load().hosts[hostname.Normalize(name)]
	if !ok {
		return nil, false
	}
	return &t.Tenant, true
}

// Owner is the owner of a user's uploads. Two tenants can share a folder.
func Owner(user, tenant string) string { return user + "@" + tenant }

// Users are those of a tenant, with those whom a source brought as long as the process remembers them.
func (r *Registry) Users(tenant string) (names []string) {
	t := r.current.Load().tenants[tenant]
	if t == nil {
		return nil
	}
	for _, u := range t.all() {
		names = append(names, u.name)
	}
	return names
}

type user struct {
	tenant     *tenant
	name       string
	settings   *config.User
	credential credential
	// certificates of which the client must show one, if there are any.
	certificates []value.ClientCertificate
	mounts       []mount // what the user sees
	home         string
	directories  *view.Directories
	language     language.Tag                 // undetermined means the tenant's
	encodings    map[string]*charset.Encoding // of directories as the user sees them
	policy       view.Policy
	overwrite    config.Overwrite
	scope        *limits.Scope
	networks     []config.Networks // of the tenant and of the user
	times        config.TimeLimits
	quota        *Quota                    // nil without
	lastLogin    atomic.Pointer[time.Time] // nil before the first in this process, which keeps no others
}

// addUse notes in the buckets of a user what the user may do there, and how the user overwrites files. It returns
// those that were verified for other modes.
func (u *user) addUse() (unsuited []*s3client.Bucket) {
	for _, m := range u.mounts {
		_, most := u.policy.Bounds(m.at)
		m.bucket.AddUse(s3client.Use{Write: most.Write || most.Mkdir, Delete: most.Delete || most.Rename})
		if most.Write && !m.bucket.AddOverwriteMode(u.overwrite) {
			unsuited = append(unsuited, m.bucket)
		}
	}
	return unsuited
}

func newUser(server config.TimeLimits, t *tenant, name string, uc *config.User) *user {
	tc := t.config
	u := &user{
		tenant:      t,
		name:        config.NormalizeUser(name),
		settings:    uc,
		mounts:      userMounts(t.bucket, uc.Root, t.Normalization.Normalize),
		home:        uc.Home,
		directories: view.NewDirectories(uc.Home),
		language:    languageOf(t.Bundle, uc.Language),
		encodings:   encodingsBelow(uc.Root, tc.DirectoryEncodings),
		policy: view.Policy{
			layerOf(tc.Permissions, tc.PathPermissions).Below(uc.Root),
			folderPermissions(tc.Folders).Below(uc.Root),
			layerOf(uc.Permissions, uc.PathPermissions),
		},
		overwrite: tc.OverwriteOf(uc),
		scope: limits.NewUser(
			t.Name, cmp.Or(uc.Limits.Sessions, tc.Limits.SessionsPerUser),
			uc.Limits.Limits().Or(tc.Limits.PerUser.Limits())),
		networks: []config.Networks{tc.Limits.Networks, uc.Limits.Networks},
		times: config.TimeLimits{
			IdleTimeout:    shortest(uc.Limits.IdleTimeout, tc.Limits.IdleTimeout, server.IdleTimeout),
			CommandTimeout: shortest(uc.Limits.CommandTimeout, tc.Limits.CommandTimeout, server.CommandTimeout),
		},
	}
	whole := u.mounts[len(u.mounts)-1] // that of "/"
	u.quota = newQuota(whole.bucket, whole.prefix, u.name, int64(uc.Quota))
	u.credential.hash = uc.PasswordHash.Reveal()
	u.certificates = uc.Certificates
	return u
}

// shortest is the shortest of times, of which 0 is none.
func shortest(times ...time.Duration) (least time.Duration) {
	for _, t := range times {
		if t > 0 && (least == 0 || t < least) {
			least = t
		}
	}
	return least
}

// encodingsBelow returns the encodings of a tenant's directories for a user who sees root as "/". It leaves out
// directories outside of root. "/" has the encoding of root, or of the nearest directory above it. The control
// connection compares the names in NFC.
func encodingsBelow(root string, dirs map[string]value.Encoding) map[string]*charset.Encoding {
	seen := map[string]*charset.Encoding{}
	root = norm.NFC.String(strings.TrimSuffix(root, "/"))
	around := ""
	for dir, encoding := range dirs {
		dir = norm.NFC.String(dir)
		switch {
		case strings.HasPrefix(dir, root+"/"):
			seen[strings.TrimPrefix(dir, root)] = encoding.Encoding
		case strings.HasPrefix(root+"/", dir+"/") && len(dir) > len(around):
			around = dir
			seen["/"] = encoding.Encoding
		}
	}
	return seen
}

// languageOf is the language of a user, undetermined if the user has none that the tenant offers.
func languageOf(bundle *i18n.Bundle, tag language.Tag) language.Tag {
	found, ok := bundle.Match(tag)
	if tag == language.Und || !ok {
		return language.Und
	}
	return found
}

// find returns the user who logs in with name at a virtual host, or without one (""), and nil if there is none. A
// client from before UTF-8 writes the name in its tenant's charset.
func (d *directory) find(host, name string) *user {
	if utf8.ValidString(name) {
		return d.lookUp(host, name)
	}
	var found *user
	for _, t := range d.tenants {
		u := d.lookUp(host, t.inUTF8(name))
		if u == nil || u.tenant != t {
			continue
		}
		if found != nil {
			return nil // one text in one charset, another in another
		}
		found = u
	}
	return found
}

// inUTF8 is a user's name or password, which the client may have written in the tenant's charset.
func (t *tenant) inUTF8(text string) string {
	if t.Encoding.Raw() {
		return text
	}
	decoded, err := t.Encoding.Decode(text)
	if err != nil {
		return text
	}
	return decoded
}

// lookUp finds a name in UTF-8.
//
// A host chooses the tenant, and user@tenant may name no other. Without one it is user@tenant, or a name that only
// one tenant has. A valid configuration has no name that means two users.
func (d *directory) lookUp(host, name string) *user {
	name = config.NormalizeUser(name)
	at := strings.LastIndexByte(name, '@')
	if host != "" {
		t, ok := d.hosts[hostname.Normalize(host)]
		if !ok {
			return nil
		}
		if u := t.users[name]; u != nil {
			return u
		}
		if at >= 0 && name[at+1:] == t.Name {
			return t.users[name[:at]]
		}
		return nil
	}
	if u := d.users[name]; u != nil {
		return u
	}
	if at >= 0 {
		if t := d.tenants[name[at+1:]]; t != nil {
			return t.users[name[:at]]
		}
	}
	return nil
}

// loggedIn notes the time of a login and returns that of the one before, zero if this process has seen none.
func (u *user) loggedIn(now time.Time) time.Time {
	return *cmp.Or(u.lastLogin.Swap(&now), &time.Time{})
}
