package control

import (
	"net/netip"
	"unicode/utf8"

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
	address        netip.Addr
	networkCharset *pathname.Encoding // of the address, before a tenant is known

	hostname     string          // from HOST
	tenant       *account.Tenant // from HOST or login
	software     string          // from CLNT
	name         string          // from USER
	login        *account.Login
	failedLogins int
	onlyTLS      bool            // whether the client has begun no login since the TLS handshake
	limits       limits.Scopes   // of the server and the address
	guarded      *limits.Session // what a ban cuts
	locale       *reply.Locale
	listed       bool // whether the session has listed a directory
}

// describe adds what is known of the client.
func (id *identity) describe(c *report.Client) {
	c.Tenant, c.User, c.Software, c.Language = "", "", id.software, id.locale.Tag()
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
	preferences, user := reply.PreferencesOf(t, id.charset()), language.Und
	if id.login != nil {
		preferences.Zone, user = id.login.Zone(), id.login.Language
	}
	id.locale.SetTenant(preferences, user)
}

// charset returns the encoding of a client that has not shown that it writes UTF-8: from its login, or else from its
// network.
func (id *identity) charset() *pathname.Encoding {
	switch {
	case id.login != nil:
		return id.login.Compatibility.Charset.Encoding
	case id.tenant != nil:
		return id.tenant.CompatibilityAt(id.address).Charset.Encoding
	}
	return id.networkCharset
}

// shown is what the client has written before its login, for a reply.
func (id *identity) shown(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	decoded, err := id.charset().Decode(text)
	if err != nil {
		return text
	}
	return decoded
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

// scarce tells whether others need what an upload of this session holds: memory, or a place among the transfers.
func (id *identity) scarce() bool {
	memory := id.login.Scarce
	return memory != nil && memory() || id.scopes().TransfersRefused()
}

// ignoresChmod tells whether the client gets 200 for SITE CHMOD, though S3 keeps no permissions.
func (id *identity) ignoresChmod() bool {
	return id.login != nil && id.login.Compatibility.Chmod == config.IgnoreChmod
}

// reply returns a reply of one line in the language of the client.
func (id *identity) reply(code int, message i18n.ID, args ...string) (wire.Reply, error) {
	return wire.NewReply(code, id.text(message, args...)), nil
}

// text renders a message in the language of the client.
func (id *identity) text(message i18n.ID, args ...string) string {
	return id.locale.Text(message, args...)
}

// greeting is 220 with the tenant's greeting, or a message where there is none. At the beginning of a session (RFC 959
// 5.4) the tenant is that of the host that the client has named to TLS. The message is in English too, because the
// client has chosen no other language yet (RFC 2277 4.5).
func (id *identity) greeting(text i18n.ID, args ...string) wire.Reply {
	lines := reply.Greeting(id.locale, id.tenant, id.login)
	if lines == nil {
		lines = []string{id.locale.Text(text, args...)}
		if english := id.locale.InEnglish(); english != nil {
			lines = append(lines, english.Text(text, args...))
		}
	}
	return wire.NewReply(220, lines...)
}

// nameCodec translates the pathnames of the client.
func (id *identity) nameCodec() pathname.Codec {
	return pathname.Codec{Rules: id.login.NameRules(), Choice: id.locale.Choice, Listed: id.listed}
}

// decide sets the charset that the pathnames of the client have shown, unless the session has one already.
func (id *identity) decide(choice pathname.Choice) {
	if id.locale.Choice == pathname.Undecided {
		id.locale.Choice = choice
	}
}

// resolver finds the pathnames of the client in a storage.
func (id *identity) resolver(storage *view.Files, workingDirectory string) *pathname.Resolver {
	return &pathname.Resolver{Rules: id.login.NameRules(), WorkingDirectory: workingDirectory,
		StatDir: storage.StatDir}
}

// hasLetterIAC says that the byte 255 may be a letter in what the client writes.
func (id *identity) hasLetterIAC() bool {
	if id.login != nil {
		return id.nameCodec().HasLetterIAC()
	}
	return pathname.Codec{Rules: pathname.Rules{Encoding: id.charset()}, Choice: id.locale.Choice}.HasLetterIAC()
}

// commandText is a command line as the client meant it, and the answers to the Telnet options that it asks for. A
// client whose charset has a letter with the byte 255 means that letter, and not Telnet's IAC.
func (id *identity) commandText(l *wire.Line) (text string, refusals []byte) {
	if l.Literal == "" || !id.hasLetterIAC() {
		return l.Text, l.Refusals
	}
	return l.Literal, l.Refusals[:l.Certain]
}
