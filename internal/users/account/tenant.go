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
)

// A Tenant is one of a configuration, with what the server has made of it. It does not change: a change of the
// configuration makes another one.
type Tenant struct {
	*config.Tenant
	Name string
	// DefaultLanguage is used until the client says LANG. It is the tenant's, or else the server's, or else the first
	// that the tenant offers. The zero value means the server's.
	DefaultLanguage language.Tag
	// Bundle has the tenant's languages and texts; nil means the server's.
	Bundle *i18n.Bundle

	certificates
	replaced chan struct{} // closed when a change replaces the tenant; Registry.entering is held then
	bucket   *s3client.Bucket
	events   EventSink // nil without a webhook
	skip     view.Names
	users    map[string]*User
	known    map[string]bool // the folded names of users
	external *external       // nil without
	state    *state          // nil until use

	inspector *inspect.Inspector // nil without
}

// newTenant is a tenant without bucket and users.
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
		replaced:        make(chan struct{}),
		users:           map[string]*User{},
		known:           map[string]bool{},
	}, nil
}

// use lets the tenant replace the previous one, if there is one: it takes over the users from the directory or hook,
// and its limits and quotas count.
func (t *Tenant) use(states *states, before *Tenant) {
	if t.external != nil && before != nil {
		for key, known := range before.external.all() {
			if !t.known[key] {
				u := newUser(t, known.Name, known.User)
				u.key = key
				t.external.users[key] = u
			}
		}
	}
	t.state = states.of(stateKey{tenant: t.Name})
	t.state.use(t.Limits.Tenant.Usage, t.Quota)
	for _, u := range t.all() {
		u.use(states)
	}
}

// root returns what the quota of the tenant is for.
func (t *Tenant) root() mount { return mount{at: "/", bucket: t.bucket, prefix: t.bucket.Prefix} }

// all are the users of the configuration, and those from a directory or hook that the process remembers.
func (t *Tenant) all() []*User {
	return slices.AppendSeq(slices.Collect(maps.Values(t.users)), maps.Values(t.external.all()))
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

// Resumable says that the tenant keeps interrupted uploads for the users who began them.
func (t *Tenant) Resumable() bool { return t.Resume == config.KeepInterrupted }

// LenientDataEOF takes an upload under TLS for complete when the data connection ends without close_notify, between
// two records. Then the server cannot tell the end of the file from that of a connection which was cut.
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

// inUTF8 is a user's name or password, which a client at an address may have written in the charset of the tenant.
func (t *Tenant) inUTF8(text string, addr netip.Addr) string {
	return decode(text, t.CompatibilityAt(addr).Charset)
}

// readings returns what a client can mean by a name or a password, UTF-8 first. A text in a charset can be valid UTF-8
// by chance (RFC 2640 A.1).
func readings(text string, charset value.Encoding) []string {
	all := []string{decode(text, charset)}
	if charset.Raw() || !utf8.ValidString(text) {
		return all
	}
	others, _ := charset.Readings(text) // without an error, because the text is valid UTF-8
	for _, r := range others {
		if r.Name != text {
			all = append(all, r.Name)
		}
	}
	return all
}

// decode returns a text in UTF-8, which a client may have written in a charset.
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
