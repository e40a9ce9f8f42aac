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
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/babelftp/babelftp/internal/base/web"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/doctor"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/report/sessionlog"
	"github.com/babelftp/babelftp/internal/users/bans"
)

// A Client calls the API of a server.
type Client struct {
	at, advice string // for error messages: the address of the server and what to do if it cannot be reached
	base       string
	name       string // name of the administrator; empty if a client certificate names the administrator
	password   string
	http       *http.Client
}

// requestTimeout limits the time of a request.
const requestTimeout = 30 * time.Second

// NewClient returns a client of the server that listens on this Unix socket.
func NewClient(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	return &Client{
		at: socket, advice: "start it, or name its admin_socket with --socket or --config",
		base: "http://localhost", // a host that no proxy is used for
		http: web.NewClient(&http.Transport{DialContext: dial}, requestTimeout),
	}
}

// NewRemoteClient returns a client of the server whose admin.listen has this URL. The name is empty if a
// client certificate in encryption names the administrator.
func NewRemoteClient(address, name, password string, encryption *tls.Config) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil ||
		strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("invalid server address %q: want a URL such as https://babelftp.example.com:9122", address)
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

// Server returns the state of the replica.
func (c *Client) Server(ctx context.Context) (s Server, err error) {
	return s, c.do(ctx, http.MethodGet, "/server", nil, &s)
}

// Sessions returns the sessions of the replica, oldest first.
func (c *Client) Sessions(ctx context.Context) (all []report.SessionInfo, err error) {
	return all, c.do(ctx, http.MethodGet, "/sessions", nil, &all)
}

// Disconnect ends a session.
func (c *Client) Disconnect(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, "/sessions/"+url.PathEscape(id), nil, new(string))
}

// Transfers returns the running transfers of the replica, ordered by the start of their sessions.
func (c *Client) Transfers(ctx context.Context) (all []report.TransferInfo, err error) {
	return all, c.do(ctx, http.MethodGet, "/transfers", nil, &all)
}

// Users returns all users of all tenants, sorted by tenant and name.
func (c *Client) Users(ctx context.Context) (all []User, err error) {
	query := url.Values{"limit": {strconv.Itoa(maxUsers)}}
	for {
		var page UserList
		if err := c.do(ctx, http.MethodGet, "/users", query, &page); err != nil {
			return nil, err
		}
		if all = append(all, page.Users...); page.Next == "" {
			return all, nil
		}
		query.Set("after", page.Next)
	}
}

// Uploads returns the incomplete uploads of a tenant, or of all tenants if tenant is empty.
func (c *Client) Uploads(ctx context.Context, tenant string) (uploads Uploads, err error) {
	return uploads, c.do(ctx, http.MethodGet, "/uploads", url.Values{"tenant": {tenant}}, &uploads)
}

// Abort removes an interrupted upload.
func (c *Client) Abort(ctx context.Context, tenant, id string) error {
	return c.do(ctx, http.MethodDelete, "/uploads/"+url.PathEscape(tenant)+"/"+url.PathEscape(id), nil, new(string))
}

// Bans returns the bans, sorted by name.
func (c *Client) Bans(ctx context.Context) (all []bans.Ban, err error) {
	return all, c.do(ctx, http.MethodGet, "/bans", nil, &all)
}

// Ban bans an address or a user for the given time. If d is 0, the server uses the time from its
// configuration.
func (c *Client) Ban(ctx context.Context, name string, d time.Duration) (b bans.Ban, err error) {
	query := url.Values{"name": {name}}
	if d != 0 {
		query.Set("time", d.String())
	}
	return b, c.do(ctx, http.MethodPut, "/bans", query, &b)
}

// Unban ends the ban of an address or a user, and returns its name.
func (c *Client) Unban(ctx context.Context, name string) (unbanned string, err error) {
	return unbanned, c.do(ctx, http.MethodDelete, "/bans", url.Values{"name": {name}}, &unbanned)
}

// Debug makes the server log the commands and replies of the sessions that match address, tenant and user for
// the given time. Empty strings match everything.
func (c *Client) Debug(
	ctx context.Context, address, tenant, user string, d time.Duration,
) (rule sessionlog.Rule, err error) {
	query := url.Values{"address": {address}, "tenant": {tenant}, "user": {user}, "time": {d.String()}}
	return rule, c.do(ctx, http.MethodPut, "/debug", query, &rule)
}

// Findings returns the problems that the log shows for an address or a network within the given time before
// now.
func (c *Client) Findings(ctx context.Context, address string, since time.Duration) (found []doctor.Finding, err error) {
	query := url.Values{"address": {address}, "since": {since.String()}}
	return found, c.do(ctx, http.MethodGet, "/findings", query, &found)
}

// DebugRules returns the rules that select the sessions whose commands and replies are logged.
func (c *Client) DebugRules(ctx context.Context) (rules []sessionlog.Rule, err error) {
	return rules, c.do(ctx, http.MethodGet, "/debug", nil, &rules)
}

// DebugOff removes all debug rules and returns them.
func (c *Client) DebugOff(ctx context.Context) (rules []sessionlog.Rule, err error) {
	return rules, c.do(ctx, http.MethodDelete, "/debug", nil, &rules)
}

// maxError limits the bytes of an error response that are read.
const maxError = 1 << 12

// do sends a request and decodes the response.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, into any) error {
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
				"the certificate of %s is not trusted: %w: pass its CA with --ca-file, or correct the address",
				c.at, err)
		}
		if sent.Load() {
			return c.noResponse(method, err)
		}
		if errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("%w: run the command as the user of the server, or as root", err)
		}
		return fmt.Errorf("cannot connect to the server at %s: %w: %s", c.at, withoutAddress(err), c.advice)
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusUnauthorized:
		return errRefused
	case http.StatusOK:
		if err := json.NewDecoder(response.Body).Decode(into); err != nil {
			return c.noResponse(method, err)
		}
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxError))
	if err != nil {
		return c.noResponse(method, err)
	}
	var failed struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(text, &failed) != nil {
		failed.Error = string(bytes.TrimSpace(text))
	}
	return errors.New(cmp.Or(failed.Error, response.Status))
}

var errRefused = errors.New("login refused: check --as and --password-file, or the client certificate")

// withoutAddress strips the socket path from a connection error, because the caller's message already has it.
func withoutAddress(err error) error {
	if of, ok := errors.AsType[*net.OpError](err); ok && of.Net == "unix" {
		return of.Err
	}
	return err
}

// noResponse returns the error for a request whose response was lost. A request that changes something may
// have succeeded.
func (c *Client) noResponse(method string, err error) error {
	if method == http.MethodGet {
		return fmt.Errorf("no response from the server at %s: %w", c.at, err)
	}
	return fmt.Errorf("no response from the server at %s, which may have executed the request: %w", c.at, err)
}
