package admin

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/babelftp/babelftp/internal/base/web"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/doctor"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/report/sessionlog"
	"github.com/babelftp/babelftp/internal/users/account"
	"github.com/babelftp/babelftp/internal/users/bans"
)

// A Client asks a server.
type Client struct {
	at, advice string // where no server answers, and what to do
	base       string
	name       string // of the administrator, empty for who shows a certificate
	password   string
	http       *http.Client
}

// requestTimeout is how long the server may take to answer.
const requestTimeout = 30 * time.Second

// NewClient makes a client of the server that listens on a socket.
func NewClient(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	return &Client{
		at: socket, advice: "start it, or name its admin_socket by --socket or --config",
		base: "http://localhost", // which no proxy is asked for
		http: web.NewClient(&http.Transport{DialContext: dial}, requestTimeout),
	}
}

// NewRemoteClient makes a client of the server whose admin.listen has a URL. The name is empty for who shows a
// certificate.
func NewRemoteClient(address, name, password string, encryption *tls.Config) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil ||
		strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("%q is not an address of a server: write it like https://babelftp.example.com:9122", address)
	}
	if u.Scheme == "http" && !config.IsLoopback(u.Host) {
		return nil, fmt.Errorf("%s would send the password in the clear: write https", address)
	}
	return &Client{
		at: address, advice: "start it with admin.listen, or correct the address",
		base: u.Scheme + "://" + u.Host, name: name, password: password,
		http: web.NewClient(&http.Transport{TLSClientConfig: encryption}, requestTimeout),
	}, nil
}

// Server returns what there is to know of the server.
func (c *Client) Server(ctx context.Context) (s Server, err error) {
	return s, c.ask(ctx, http.MethodGet, "/server", nil, &s)
}

// Sessions returns the sessions of the replica, those that began first first.
func (c *Client) Sessions(ctx context.Context) (all []report.ShownSession, err error) {
	return all, c.ask(ctx, http.MethodGet, "/sessions", nil, &all)
}

// Disconnect ends a session.
func (c *Client) Disconnect(ctx context.Context, id string) error {
	return c.ask(ctx, http.MethodDelete, "/sessions/"+url.PathEscape(id), nil, new(string))
}

// Transfers returns the transfers of the replica, those of the oldest sessions first.
func (c *Client) Transfers(ctx context.Context) (all []report.ShownTransfer, err error) {
	return all, c.ask(ctx, http.MethodGet, "/transfers", nil, &all)
}

// Users returns who has logged in to the replica since it started, sorted by tenant and name.
func (c *Client) Users(ctx context.Context) (all []account.LastLogin, err error) {
	return all, c.ask(ctx, http.MethodGet, "/users", nil, &all)
}

// Uploads returns the uploads of a tenant that are not complete, those of all tenants for an empty name.
func (c *Client) Uploads(ctx context.Context, tenant string) (uploads Uploads, err error) {
	return uploads, c.ask(ctx, http.MethodGet, "/uploads", url.Values{"tenant": {tenant}}, &uploads)
}

// Abort removes an interrupted upload.
func (c *Client) Abort(ctx context.Context, tenant, id string) error {
	return c.ask(ctx, http.MethodDelete, "/uploads/"+url.PathEscape(tenant)+"/"+url.PathEscape(id), nil, new(string))
}

// Bans returns the bans, sorted by name.
func (c *Client) Bans(ctx context.Context) (all []bans.Ban, err error) {
	return all, c.ask(ctx, http.MethodGet, "/bans", nil, &all)
}

// Ban bans an address or a user for a time, or for that of the server's configuration with 0.
func (c *Client) Ban(ctx context.Context, name string, d time.Duration) (b bans.Ban, err error) {
	query := url.Values{"name": {name}}
	if d != 0 {
		query.Set("time", d.String())
	}
	return b, c.ask(ctx, http.MethodPut, "/bans", query, &b)
}

// Unban ends the ban of an address or a user, and returns its name.
func (c *Client) Unban(ctx context.Context, name string) (unbanned string, err error) {
	return unbanned, c.ask(ctx, http.MethodDelete, "/bans", url.Values{"name": {name}}, &unbanned)
}

// Debug lets the log have the commands and replies of the sessions of an address, a tenant and a user for a time.
// Empty texts mean any.
func (c *Client) Debug(
	ctx context.Context, address, tenant, user string, d time.Duration,
) (rule sessionlog.Rule, err error) {
	query := url.Values{"address": {address}, "tenant": {tenant}, "user": {user}, "time": {d.String()}}
	return rule, c.ask(ctx, http.MethodPut, "/debug", query, &rule)
}

// Findings returns what the log tells about an address or a network since a time ago, in a language of the server.
func (c *Client) Findings(ctx context.Context, address string, since time.Duration) (found []doctor.Finding, err error) {
	query := url.Values{"address": {address}, "since": {since.String()}}
	return found, c.ask(ctx, http.MethodGet, "/findings", query, &found)
}

// DebugRules returns for which sessions the log has commands and replies.
func (c *Client) DebugRules(ctx context.Context) (rules []sessionlog.Rule, err error) {
	return rules, c.ask(ctx, http.MethodGet, "/debug", nil, &rules)
}

// DebugOff ends all that, and returns what held.
func (c *Client) DebugOff(ctx context.Context) (rules []sessionlog.Rule, err error) {
	return rules, c.ask(ctx, http.MethodDelete, "/debug", nil, &rules)
}

// maxError is how many bytes of an error are shown.
const maxError = 1 << 12

// ask sends a request and decodes the answer.
func (c *Client) ask(ctx context.Context, method, path string, query url.Values, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, c.base+Root+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	if c.name != "" {
		request.SetBasicAuth(c.name, c.password)
	}
	var sent atomic.Bool
	response, err := c.http.Do(request.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaders: func() { sent.Store(true) },
	})))
	if err != nil {
		err = web.WithoutURL(err)
		if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
			return fmt.Errorf(
				"the certificate of %s is not trusted: %w: name its authorities with --ca-file, or correct the address",
				c.at, err)
		}
		if sent.Load() {
			return c.unanswered(method, err)
		}
		if errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("%w: ask as the user who runs the server, or as root", err)
		}
		return fmt.Errorf("no server answers at %s: %w: %s", c.at, withoutAddress(err), c.advice)
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusUnauthorized:
		return errRefused
	case http.StatusOK:
		if err := json.NewDecoder(response.Body).Decode(into); err != nil {
			return c.unanswered(method, err)
		}
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxError))
	if err != nil {
		return c.unanswered(method, err)
	}
	var failed struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(text, &failed) != nil {
		failed.Error = string(bytes.TrimSpace(text))
	}
	return errors.New(cmp.Or(failed.Error, response.Status))
}

var errRefused = errors.New("the server refuses the login: correct --as and --password-file, or the client certificate")

// withoutAddress is an error of a connection to a socket without the path of that.
func withoutAddress(err error) error {
	if of, ok := errors.AsType[*net.OpError](err); ok && of.Net == "unix" {
		return of.Err
	}
	return err
}

// unanswered is the error of a request whose answer is lost. What it was to change may have changed.
func (c *Client) unanswered(method string, err error) error {
	if method == http.MethodGet {
		return fmt.Errorf("the server at %s did not answer: %w", c.at, err)
	}
	return fmt.Errorf("the server at %s did not answer, and may have done it all the same: %w", c.at, err)
}
