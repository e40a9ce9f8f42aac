package control

import (
	"slices"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/ftp/reply"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/storage/view"
	"github.com/babelftp/babelftp/internal/users/account"
)

// An identity is who the client is, and what follows from that: its language, its limits, and how it writes names.
type identity struct {
	hostname     string          // from HOST
	tenant       *account.Tenant // from HOST or login
	name         string          // from USER
	password     string          // from PASS, until the engine has asked for it
	login        *account.Login
	failedLogins int
	onlyTLS      bool            // whether the client has begun no login since the TLS handshake
	limits       limits.Scopes   // of the server and the address
	guarded      *limits.Session // what a ban cuts
	locale       *reply.Locale
}

// describe adds what is known of the client.
func (id *identity) describe(c *report.Client) {
	c.Tenant, c.User, c.Language = "", "", id.locale.Tag()
	if id.tenant != nil {
		c.Tenant = id.tenant.Name
	}
	if id.login != nil {
		c.Tenant, c.User = id.login.Tenant.Name, id.login.Name
	}
}

// setTenant makes a tenant, or none, the session's, and the language of the user or the tenant, unless the client has
// selected one.
func (id *identity) setTenant(t *account.Tenant) {
	id.tenant = t
	user := language.Und
	if id.login != nil {
		user = id.login.Language
	}
	id.locale.SetTenant(reply.PreferencesOf(t), user)
}

// chooseHost starts again with a host, or none, and its tenant, which ends what LANG has chosen (RFC 2640 4.1). What
// names no tenant, such as the server's own address, leaves a session without one as it is: lftp sends LANG, then
// that.
func (id *identity) chooseHost(name string, tenant *account.Tenant) {
	if tenant == nil {
		name = "" // users are those of all tenants
	}
	if name != id.hostname || tenant != nil {
		id.locale.Unselect()
	}
	id.hostname = name
	id.setTenant(tenant)
}

// forget ends what USER and PASS have said. The tenant stays if HOST has chosen it.
func (id *identity) forget() {
	id.name, id.login = "", nil
	if id.hostname == "" {
		id.tenant = nil // it was the user's
	}
	id.setTenant(id.tenant)
}

// scopes are those whose limits the session shares.
func (id *identity) scopes() limits.Scopes {
	if id.login == nil {
		return id.limits
	}
	return id.login.Scopes
}

// ignoresChmod tells whether the user's tenant answers SITE CHMOD, though S3 keeps no permissions.
func (id *identity) ignoresChmod() bool {
	return id.login != nil && id.login.Tenant.Compatibility.Chmod == config.IgnoreChmod
}

// text renders a message in the language of the client.
func (id *identity) text(message i18n.ID, args ...string) string {
	return id.locale.Text(message, args...)
}

// greeting is 220 with the tenant's greeting, or a message where there is none, and in English too if it is to be
// bilingual. At the beginning of a session (RFC 959 5.4) the tenant is that of the host that the client has named to
// TLS.
func (id *identity) greeting(bilingual bool, text i18n.ID, args ...string) wire.Reply {
	message := func(l *reply.Locale) []string { return []string{l.Text(text, slices.Clone(args)...)} }
	lines := reply.Greeting(id.locale, id.tenant, id.login)
	if lines == nil {
		lines = message(id.locale)
	}
	if english := id.locale.InEnglish(); bilingual && english != nil {
		more := reply.Greeting(english, id.tenant, id.login)
		if more == nil || slices.Equal(more, lines) { // the tenant has no English text
			more = message(english)
		}
		lines = append(lines, more...)
	}
	return wire.NewReply(220, lines...)
}

// nameCodec translates the pathnames of the client.
func (id *identity) nameCodec() pathname.Codec {
	return pathname.Codec{Rules: id.login.NameRules(), UTF8: id.locale.UTF8}
}

// resolver finds the pathnames of the client in a storage.
func (id *identity) resolver(storage *view.Files, workingDirectory string) *pathname.Resolver {
	return &pathname.Resolver{Rules: id.login.NameRules(), WorkingDirectory: workingDirectory,
		StatDir: storage.StatDir}
}

// commandText is a command line as the client meant it, and the answers to the Telnet options that it asks for. A
// client whose charset has a letter with the byte 255 means that letter, and not Telnet's IAC.
func (id *identity) commandText(l *wire.Line) (text string, refusals []byte) {
	if l.Literal == "" || id.login == nil || !id.nameCodec().HasLetterIAC() {
		return l.Text, l.Refusals
	}
	return l.Literal, l.Refusals[:l.Certain]
}
