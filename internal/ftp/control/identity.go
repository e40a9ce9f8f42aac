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

// An identity describes the client of a session, with its language, limits and charset.
type identity struct {
	address        netip.Addr
	networkCharset *pathname.Encoding // charset of the address, used until a tenant is known

	hostname     string          // from HOST
	tenant       *account.Tenant // from HOST or login
	software     string          // from CLNT
	name         string          // from USER
	login        *account.Login
	failedLogins int
	onlyTLS      bool            // no login attempt since the TLS handshake
	limits       limits.Scopes   // limits of the server and the address
	guarded      *limits.Session // session that a ban cuts
	locale       *reply.Locale
	listed       bool // the session has listed a directory
}

// describe copies the known properties of the client to c.
func (id *identity) describe(c *report.Client) {
	c.Tenant, c.User, c.Software, c.Language = "", "", id.software, id.locale.Tag()
	if id.tenant != nil {
		c.Tenant = id.tenant.Name
	}
	if id.login != nil {
		c.Tenant, c.User = id.login.Tenant.Name, id.login.Name
	}
}

// setTenant sets the tenant, which may be nil, and the language of the user or the tenant unless the client has
// selected one.
func (id *identity) setTenant(t *account.Tenant) {
	id.tenant = t
	preferences, user := reply.PreferencesOf(t, id.charset()), language.Und
	if id.login != nil {
		preferences.Zone, user = id.login.Zone(), id.login.Language
	}
	id.locale.SetTenant(preferences, user)
}

// charset returns the encoding that the login, the tenant or the network configures. It applies until the client
// has shown that it sends UTF-8.
func (id *identity) charset() *pathname.Encoding {
	switch {
	case id.login != nil:
		return id.login.Compatibility.Charset.Encoding
	case id.tenant != nil:
		return id.tenant.CompatibilityAt(id.address).Charset.Encoding
	}
	return id.networkCharset
}

// decodeForReply decodes text that the client sent before login, to repeat it in a reply.
func (id *identity) decodeForReply(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	decoded, err := id.charset().Decode(text)
	if err != nil {
		return text
	}
	return decoded
}

// chooseHost sets the host and its tenant and undoes an earlier LANG (RFC 2640, 4.1). A host without a tenant,
// such as the server's own address, keeps the language if the session had no host before, because lftp sends LANG
// and then HOST.
func (id *identity) chooseHost(name string, tenant *account.Tenant) {
	if tenant == nil {
		name = "" // without a tenant, users of all tenants may log in
	}
	if name != id.hostname || tenant != nil {
		id.locale.Unselect()
	}
	id.hostname = name
	id.setTenant(tenant)
}

// forget undoes USER and PASS. The tenant stays if HOST has selected it.
func (id *identity) forget() {
	id.name, id.login = "", nil
	if id.hostname == "" {
		id.tenant = nil // it came from the login
	}
	id.setTenant(id.tenant)
}

// scopes returns the scopes whose limits apply to the session.
func (id *identity) scopes() limits.Scopes {
	if id.login == nil {
		return id.limits
	}
	return id.login.Scopes
}

// contended reports whether other sessions are waiting for memory or a transfer slot that an upload of this session
// holds.
func (id *identity) contended() bool {
	memory := id.login.MemoryContended
	return memory != nil && memory() || id.scopes().TransfersRefused()
}

// ignoresChmod reports whether the client gets 200 for SITE CHMOD although S3 stores no permissions.
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

// greeting returns reply 220 with the tenant's greeting, or with the message if the tenant has none. At the start
// of a session (RFC 959, 5.4) the tenant is the one whose host the client sent with SNI. The message is repeated
// in English, because the client has not selected a language yet (RFC 2277, 4.5).
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

// nameCodec returns the codec for pathnames of the client.
func (id *identity) nameCodec() pathname.Codec {
	return pathname.Codec{Rules: id.login.NameRules(), Choice: id.locale.Choice, Listed: id.listed}
}

// setCharset sets the charset that a pathname of the client has revealed, unless the session already has one.
func (id *identity) setCharset(choice pathname.Choice) {
	if id.locale.Choice == pathname.Undecided {
		id.locale.Choice = choice
	}
}

// resolver returns the resolver that finds pathnames of the client in a storage.
func (id *identity) resolver(storage *view.Files, workingDirectory string) *pathname.Resolver {
	return &pathname.Resolver{Rules: id.login.NameRules(), WorkingDirectory: workingDirectory,
		StatDir: storage.StatDir}
}

// hasLetterIAC reports whether the byte 255 (IAC) can be a letter in text of the client.
func (id *identity) hasLetterIAC() bool {
	if id.login != nil {
		return id.nameCodec().HasLetterIAC()
	}
	return pathname.Codec{Rules: pathname.Rules{Encoding: id.charset()}, Choice: id.locale.Choice}.HasLetterIAC()
}

// commandText returns the command line and the replies to its Telnet option requests. If the charset of the client
// has a letter with the byte 255, that byte is read as the letter and not as Telnet IAC.
func (id *identity) commandText(l *wire.Line) (text string, refusals []byte) {
	if l.Literal == "" || !id.hasLetterIAC() {
		return l.Text, l.Refusals
	}
	return l.Literal, l.Refusals[:l.Certain]
}
