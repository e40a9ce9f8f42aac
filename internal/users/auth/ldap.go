package auth

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-ldap/ldap/v3"

	"github.com/babelftp/babelftp/internal/config"
)

// A directory is a set of LDAP servers with the same entries.
type directory struct {
	template
	cfg     *config.LDAP
	servers []*url.URL
	tls     *tls.Config

	mu   sync.Mutex
	idle []*connection
}

// A connection is a connection to a server of a directory. It can be reused by any login, because each login starts
// with a bind.
type connection struct {
	*ldap.Conn
	tcp net.Conn
}

func newDirectory(cfg *config.Auth) (*directory, error) {
	authorities, err := config.Trusted(cfg.LDAP.CAFile)
	if err != nil {
		return nil, fmt.Errorf("authorities of the directory: %w", err)
	}
	d := &directory{
		template: template{source: "directory", user: cfg.User.New(), groups: cfg.Groups, names: cfg.LDAP.Attributes},
		cfg:      &cfg.LDAP, tls: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities},
	}
	for _, text := range cfg.LDAP.URLs {
		server, err := url.Parse(text)
		if err != nil {
			return nil, errors.New("invalid URL of the directory")
		}
		d.servers = append(d.servers, server)
	}
	return d, nil
}

// Authenticate implements [Source].
func (d *directory) Authenticate(ctx context.Context, req *Request) (*Response, error) {
	// a bind without a password succeeds as anonymous (RFC 4513, section 5.1.2)
	if req.Password == "" || strings.ContainsRune(req.Password, 0) {
		return nil, fmt.Errorf("directory: the password is empty or contains NUL: %w", ErrRefused)
	}
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	entry, err := d.authenticate(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("directory: %w", err)
	}
	values := func(name string) []string {
		if values := entry.GetEqualFoldAttributeValues(name); len(values) > 0 {
			return values
		}
		return nil
	}
	tenant, err := d.tenant(values)
	if err != nil {
		return nil, err
	}
	user, err := d.settings(req.User, values, sameName)
	if err != nil {
		return nil, err
	}
	return &Response{Tenant: tenant, User: user}, nil
}

// probe connects to each server. If logins search for the user's entry, it also binds and searches.
func (d *directory) probe(ctx context.Context) error {
	for _, server := range d.servers {
		if err := d.probeOne(ctx, server); err != nil {
			return fmt.Errorf("directory %s: %w", server.Redacted(), err)
		}
	}
	return nil
}

func (d *directory) probeOne(ctx context.Context, server *url.URL) error {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	c, err := d.dial(ctx, server)
	if err != nil {
		return cmp.Or(ctx.Err(), err)
	}
	defer c.end()
	defer context.AfterFunc(ctx, c.end)()
	if d.cfg.UserDN != "" {
		return nil
	}
	if err := d.bindToSearch(c); err != nil {
		return cmp.Or(ctx.Err(), err)
	}
	if _, err := c.Search(ldap.NewSearchRequest(d.cfg.BaseDN, ldap.ScopeBaseObject, ldap.NeverDerefAliases, 1, 0, false,
		// "1.1" requests no attributes (RFC 4511, section 4.5.1.8)
		"(objectClass=*)", []string{"1.1"}, nil)); err != nil {
		return cmp.Or(ctx.Err(), describe("base_dn: search", err))
	}
	return nil
}

// sameName reports whether two strings are equal, or are the same distinguished name.
func sameName(a, b string) bool {
	if a == b {
		return true
	}
	first, errFirst := ldap.ParseDN(a)
	second, errSecond := ldap.ParseDN(b)
	return errFirst == nil && errSecond == nil && first.EqualFold(second)
}

// authenticate returns the entry of the user from the first server that responds. An idle connection is tried first.
func (d *directory) authenticate(ctx context.Context, req *Request) (*ldap.Entry, error) {
	deadline, _ := ctx.Deadline()
	share := func(others int) time.Duration { return time.Until(deadline) / time.Duration(others+1) }
	if c := d.takeIdle(); c != nil {
		if entry, err := d.authenticateOn(ctx, share(len(d.servers)), req, func(context.Context) (*connection, error) {
			return c, nil
		}); !isDown(err) {
			return entry, err
		}
	}
	var failures []string
	for i, server := range d.servers {
		connect := func(ctx context.Context) (*connection, error) { return d.dial(ctx, server) }
		entry, err := d.authenticateOn(ctx, share(len(d.servers)-1-i), req, connect)
		if !isDown(err) {
			return entry, err
		}
		failures = append(failures, server.Redacted()+": "+err.Error())
	}
	return nil, errors.New(strings.Join(failures, "; "))
}

// authenticateOn authenticates with one server, within a timeout.
func (d *directory) authenticateOn(
	ctx context.Context, timeout time.Duration, req *Request, connect func(context.Context) (*connection, error),
) (*ldap.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c, err := connect(ctx)
	if err != nil {
		return nil, cmp.Or(ctx.Err(), err)
	}
	entry, err := d.login(ctx, c, req)
	if isDown(err) {
		return nil, cmp.Or(ctx.Err(), err)
	}
	return entry, err
}

// isDown reports whether the next server should be tried after this error.
func isDown(err error) bool {
	if err == nil || errors.Is(err, ErrRefused) {
		return false
	}
	response, ok := errors.AsType[*ldap.Error](err)
	return !ok || response.ResultCode >= ldap.ErrorNetwork || response.ResultCode == ldap.LDAPResultBusy ||
		response.ResultCode == ldap.LDAPResultUnavailable
}

// dial connects to a server. The connection uses TLS unless start_tls is false.
func (d *directory) dial(ctx context.Context, server *url.URL) (*connection, error) {
	secure := server.Scheme == "ldaps"
	port := server.Port()
	switch {
	case port == "" && secure:
		port = ldap.DefaultLdapsPort
	case port == "":
		port = ldap.DefaultLdapPort
	}
	tcp, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(server.Hostname(), port))
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = tcp.Close() })
	defer stop()
	config := d.tls.Clone()
	config.ServerName = server.Hostname()
	if secure {
		under := tls.Client(tcp, config)
		if err := under.HandshakeContext(ctx); err != nil {
			_ = tcp.Close()
			return nil, err
		}
		c := &connection{ldap.NewConn(under, true), tcp}
		c.Start()
		return c, nil
	}
	c := &connection{ldap.NewConn(tcp, false), tcp}
	c.Start()
	if d.cfg.UsesStartTLS() {
		if err := c.StartTLS(config); err != nil {
			c.end()
			return nil, fmt.Errorf("StartTLS: %w", err)
		}
	}
	return c, nil
}

// end closes the connection, even if the server has stopped reading.
func (c *connection) end() {
	_ = c.tcp.Close()
	_ = c.Close()
}

// takeIdle returns an idle connection of an earlier login, or nil.
func (d *directory) takeIdle() *connection {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.idle) > 0 {
		last := len(d.idle) - 1
		c := d.idle[last]
		d.idle = d.idle[:last]
		if !c.IsClosing() && c.tcp.SetDeadline(time.Time{}) == nil {
			return c
		}
		c.end()
	}
	return nil
}

// keep makes the connection available to the next login. It is closed if it stays idle for too long.
func (d *directory) keep(c *connection) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.idle = slices.DeleteFunc(d.idle, func(c *connection) bool { return c.IsClosing() })
	if len(d.idle) >= maxIdle || c.tcp.SetDeadline(time.Now().Add(idleTime)) != nil {
		c.end()
		return
	}
	d.idle = append(d.idle, c)
}

// login returns the entry of the user if the password is right. It closes the connection when ctx is done.
func (d *directory) login(ctx context.Context, c *connection, req *Request) (entry *ldap.Entry, err error) {
	stop := context.AfterFunc(ctx, func() { _ = c.tcp.Close() })
	defer func() {
		if stop() && !isDown(err) {
			d.keep(c)
			return
		}
		c.end()
	}()
	if d.cfg.UserDN != "" {
		return d.bindAndRead(c, req)
	}
	return d.searchAndBind(c, req)
}

// bindAndRead binds as the user with the DN from user_dn, and reads the user's own entry.
func (d *directory) bindAndRead(c *connection, req *Request) (*ldap.Entry, error) {
	dn := d.cfg.UserDNOf(req.User)
	if err := bind(c, dn, req.Password); err != nil {
		return nil, err
	}
	entry, err := d.find(c, dn, ldap.ScopeBaseObject, req.User)
	if ldap.IsErrorWithCode(err, ldap.LDAPResultNoSuchObject) || err == nil && entry == nil {
		return nil, fmt.Errorf("the user cannot read an entry that matches the name and the filter: %w", ErrRefused)
	}
	return entry, err
}

// searchAndBind searches the entry of the user and binds with its DN. It also binds for an unknown user, so that the
// refusal is not faster than for a known user.
func (d *directory) searchAndBind(c *connection, req *Request) (*ldap.Entry, error) {
	if err := d.bindToSearch(c); err != nil {
		return nil, err
	}
	entry, err := d.find(c, d.cfg.BaseDN, ldap.ScopeWholeSubtree, req.User)
	if err != nil {
		return nil, err
	}
	dn := d.cfg.UserAttributeOf() + "=" + ldap.EscapeDN(req.User) + "," + d.cfg.BaseDN
	if entry != nil && entry.DN != "" {
		dn = entry.DN
	}
	err = bind(c, dn, req.Password)
	switch {
	case err != nil && (entry != nil || !errors.Is(err, ErrRefused)):
		return nil, err
	case entry == nil || entry.DN == "":
		return nil, fmt.Errorf("no entry matches the name and the filter: %w", ErrRefused)
	}
	return entry, nil
}

// bindToSearch binds as the search account, or as anonymous.
func (d *directory) bindToSearch(c *connection) (err error) {
	if d.cfg.BindDN == "" {
		err = c.UnauthenticatedBind("")
	} else {
		err = c.Bind(d.cfg.BindDN, d.cfg.BindPassword.Reveal())
	}
	if err != nil {
		return fmt.Errorf("bind_dn: %w", err)
	}
	return nil
}

// find returns the only entry with this name, or nil. Directories ignore case and extra spaces in names. Only the
// exact name is accepted here, because other spellings would give a user several homes and limits, and circumvent
// bans.
func (d *directory) find(c *connection, base string, scope int, user string) (*ldap.Entry, error) {
	attribute, filter := d.cfg.UserAttributeOf(), d.cfg.Filter
	condition := "(" + attribute + "=" + ldap.EscapeFilter(user) + ")"
	if filter != "" {
		condition = "(&" + condition + filter + ")"
	}
	wanted := []string{attribute}
	for _, name := range d.names {
		if name != "" {
			wanted = append(wanted, name)
		}
	}
	const most = 2 // detects that the name is not unique
	result, err := c.Search(
		ldap.NewSearchRequest(base, scope, ldap.NeverDerefAliases, most, 0, false, condition, wanted, nil))
	switch {
	case ldap.IsErrorWithCode(err, ldap.LDAPResultSizeLimitExceeded) || err == nil && len(result.Entries) > 1:
		several := &ldap.Error{ResultCode: ldap.LDAPResultSizeLimitExceeded,
			Err: errors.New("correct attributes.name or filter")}
		return nil, fmt.Errorf("several entries have this name: %w", several)
	case err != nil:
		return nil, describe("search", err)
	case len(result.Entries) == 0:
		return nil, nil
	}
	entry := result.Entries[0]
	if !slices.ContainsFunc(entry.GetEqualFoldAttributeValues(attribute), func(v string) bool {
		return config.NormalizeUser(v) == user
	}) {
		return nil, nil
	}
	return entry, nil
}

// bind binds as a user.
func bind(c *connection, dn, password string) error {
	err := c.Bind(dn, password)
	// Servers return these codes if the password is wrong, the account is locked or the name does not exist.
	if ldap.IsErrorAnyOf(
		err, ldap.LDAPResultInvalidCredentials, ldap.LDAPResultInappropriateAuthentication, ldap.LDAPResultNoSuchObject,
		ldap.LDAPResultInvalidDNSyntax, ldap.LDAPResultConstraintViolation, ldap.LDAPResultUnwillingToPerform) {
		return fmt.Errorf("%w: %w", describe("bind", err), ErrRefused)
	}
	return describe("bind", err)
}

// describe removes the message of the server from an LDAP error, because it may contain user names. Other errors are
// returned unchanged.
func describe(operation string, err error) error {
	response, ok := errors.AsType[*ldap.Error](err)
	if !ok || response.ResultCode >= ldap.ErrorNetwork {
		return err
	}
	return fmt.Errorf(
		"%s: %w", operation, &ldap.Error{ResultCode: response.ResultCode, Err: errors.New("see the log of the directory")})
}
