package account

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"unicode/utf8"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/base/inspect"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/storage/view"
	"github.com/babelftp/babelftp/internal/users/usersfile"
)

// A Tenant is a tenant of a configuration with the objects that the server built from it. It is immutable: changing
// its configuration creates a new Tenant.
type Tenant struct {
	*config.Tenant
	Name string
	// DefaultLanguage is used until the client sends LANG. It is the language of the tenant if offered, or else of
	// the server, or else the first language that the tenant offers.
	DefaultLanguage language.Tag
	// Bundle holds the languages and texts of the tenant.
	Bundle *i18n.Bundle

	certificates
	replaced chan struct{} // closed by a configuration change that replaces the tenant, with Registry.entering locked
	bucket   *s3client.Bucket
	events   EventSink // nil without a webhook
	skip     view.Names
	rules    []objectRule
	users    map[string]*User
	known    map[string]bool // the folded names of users
	external *externalUsers  // nil if no service is configured
	state    *state          // set by use
	store    *usersfile.Store

	inspector *inspect.Inspector // nil if no inspector is configured
}

// newTenant returns a tenant without a bucket and users.
func newTenant(cfg *config.Config, name string, tc *config.Tenant, bundle *i18n.Bundle) (*Tenant, error) {
	if len(tc.Languages) > 0 || len(tc.Messages) > 0 {
		var err error
		if bundle, err = bundle.WithOverrides(tc.Languages, tc.Messages); err != nil {
			return nil, fmt.Errorf("tenant %s: languages: %w", name, err)
		}
	}
	inspector, err := tc.Inspect.New()
	if err != nil {
		return nil, fmt.Errorf("tenant %s: inspect: %w", name, err)
	}
	return &Tenant{
		inspector:       inspector,
		Tenant:          tc,
		Name:            name,
		DefaultLanguage: FirstOffered(bundle, tc.DefaultLanguage, cfg.DefaultLanguage),
		Bundle:          bundle,
		skip:            view.NewNames(tc.Webhook.Skip),
		rules:           newObjectRules(tc.Objects.Rules),
		replaced:        make(chan struct{}),
		users:           map[string]*User{},
		known:           map[string]bool{},
	}, nil
}

// use makes the tenant current. It takes over the remembered external users of the previous tenant, if any, and
// applies the limits and quotas.
func (t *Tenant) use(states *states, before *Tenant) {
	if t.external != nil && before != nil {
		for key, known := range before.external.snapshot() {
			if !t.known[key] {
				u := newUser(t, known.Name, known.User)
				u.key = key
				t.external.users[key] = u
			}
		}
	}
	t.state = states.of(stateKey{tenant: t.Name})
	t.state.use(t.Limits.Tenant.Usage, t.Quota)
	for _, u := range t.allUsers() {
		u.use(states)
	}
}

// root returns the mount that the quota of the tenant applies to.
func (t *Tenant) root() mount { return mount{at: "/", bucket: t.bucket, prefix: t.bucket.Prefix} }

// allUsers returns the users in the configuration and the remembered users of a service.
func (t *Tenant) allUsers() []*User {
	return slices.AppendSeq(slices.Collect(maps.Values(t.users)), maps.Values(t.external.snapshot()))
}

// FirstOffered returns the first of the tags that the bundle supports, or else the first language of the bundle.
func FirstOffered(bundle *i18n.Bundle, tags ...language.Tag) language.Tag {
	for _, tag := range tags {
		if found, ok := bundle.Match(tag); ok {
			return found
		}
	}
	return bundle.Tags()[0]
}

// Resumable reports whether the tenant keeps interrupted uploads for the users who started them.
func (t *Tenant) Resumable() bool { return t.Resume == config.KeepInterrupted }

// LenientDataEOF reports whether an upload over TLS is accepted if the data connection ends between two records
// without close_notify. The server then cannot distinguish the end of the file from a lost connection.
func (t *Tenant) LenientDataEOF() bool { return t.TLS.StrictDataEOF != nil && !*t.TLS.StrictDataEOF }

// isReplaced reports whether a change has replaced the tenant.
func (t *Tenant) isReplaced() bool {
	select {
	case <-t.replaced:
		return true
	default:
		return false
	}
}

// toUTF8 decodes a user name or password that a client with this address may have sent in the charset of the tenant.
func (t *Tenant) toUTF8(text string, addr netip.Addr) string {
	return decode(text, t.CompatibilityAt(addr).Charset)
}

// readings returns the possible meanings of a name or a password, UTF-8 first. Text in another charset can happen to
// be valid UTF-8 (RFC 2640, section A.1).
func readings(text string, charset value.Encoding) []string {
	all := []string{decode(text, charset)}
	if charset.Raw() || !utf8.ValidString(text) {
		return all
	}
	others, _ := charset.Readings(text) // no error, because the text is valid UTF-8
	for _, r := range others {
		if r.Name != text {
			all = append(all, r.Name)
		}
	}
	return all
}

// decode returns text in UTF-8. Text that is neither UTF-8 nor valid in the charset is returned as it is.
func decode(text string, charset value.Encoding) string {
	if charset.Raw() || utf8.ValidString(text) {
		return text
	}
	decoded, err := charset.Decode(text)
	if err != nil {
		return text
	}
	return decoded
}
