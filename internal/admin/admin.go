// Package admin is how the commands of babelftp ask a running server: HTTP with JSON over a Unix socket.
//
// [Listen] opens the socket for the user of the process only, [Handler] answers, and a [Client] asks. The socket's permissions are the only
// authentication, so there is no secret to keep.
package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/internal/bans"
)

// socketMode lets the user of the process connect, and no other.
const socketMode = 0o600

// Listen opens the socket. It replaces one that a killed server has left, and none that a server answers.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	config := &net.ListenConfig{}
	l, err := config.Listen(ctx, "unix", path)
	if errors.Is(err, syscall.EADDRINUSE) {
		if conn, dialErr := new(net.Dialer).DialContext(ctx, "unix", path); dialErr == nil {
			_ = conn.Close()
			return nil, err
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
		l, err = config.Listen(ctx, "unix", path)
	}
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, socketMode); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// Handler answers the requests of clients.
func Handler(list *bans.List) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /bans", func(w http.ResponseWriter, _ *http.Request) { answer(w, list.All()) })
	mux.HandleFunc("PUT /bans", func(w http.ResponseWriter, r *http.Request) {
		name, err := bans.Parse(r.FormValue("name"))
		var d time.Duration
		if text := r.FormValue("time"); err == nil && text != "" {
			if d, err = time.ParseDuration(text); err == nil && d <= 0 {
				err = fmt.Errorf("the time %s is not longer than 0", text)
			}
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer(w, list.Add(r.Context(), name, d))
	})
	mux.HandleFunc("DELETE /bans", func(w http.ResponseWriter, r *http.Request) {
		name, err := bans.Parse(r.FormValue("name"))
		switch {
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadRequest)
		case !list.Remove(r.Context(), name):
			http.Error(w, name+" is not banned: see babelftp bans list", http.StatusNotFound)
		default:
			answer(w, name)
		}
	})
	return mux
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a client that has gone needs no answer
}

// A Client asks the server of a socket.
type Client struct {
	socket string
	http   *http.Client
}

// requestTimeout is how long the server may take to answer.
const requestTimeout = 10 * time.Second

// NewClient makes a client of the server that listens on a socket.
func NewClient(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	return &Client{socket, &http.Client{Transport: &http.Transport{DialContext: dial}, Timeout: requestTimeout}}
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

// maxError is how many bytes of an error are shown.
const maxError = 1 << 10

// ask sends a request and decodes the answer.
func (c *Client) ask(ctx context.Context, method, path string, query url.Values, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, "http://server"+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("no server answers at %s: %w: set admin_socket in its configuration, and ask as the user who runs it", c.socket, errors.Unwrap(err))
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, err := io.ReadAll(io.LimitReader(response.Body, maxError))
		return errors.Join(errors.New(string(bytes.TrimSpace(text))), err)
	}
	return json.NewDecoder(response.Body).Decode(into)
}
