package auth

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/babelftp/babelftp/internal/base/web"
	"github.com/babelftp/babelftp/internal/config"
)

const (
	// maxResponse limits the size of a response. The settings of a user are much smaller.
	maxResponse = 64 << 10
	// maxIdle is the number of idle connections that are kept open.
	maxIdle = 16
	// idleTime limits the time that an idle connection is kept open.
	idleTime = time.Minute
)

// A hook is a source that sends each login to a URL.
type hook struct {
	url, shown string // shown is the URL for messages, without the query, which may contain a key
	secret     string
	timeout    time.Duration
	client     *http.Client
}

func newHook(cfg *config.Hook) (*hook, error) {
	shown, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, errors.New("invalid URL of the hook")
	}
	shown.RawQuery, shown.User = "", nil
	authorities, err := config.Trusted(cfg.CAFile)
	if err != nil {
		return nil, fmt.Errorf("authorities of the hook: %w", err)
	}
	return &hook{
		url: cfg.URL, shown: shown.String(), secret: cfg.Secret.Reveal(), timeout: cfg.Timeout,
		client: web.NewClient(&http.Transport{
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities}, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: idleTime,
		}, 0), // no client timeout: the context of each login has one
	}, nil
}

// A login is the body of the request. Its keys are documented and must not change.
type login struct {
	Tenant   string `json:"tenant"` // empty if the client selected no tenant
	User     string `json:"user"`
	Password string `json:"password"`
	Address  string `json:"address"`
	Protocol string `json:"protocol"`
	TLS      bool   `json:"tls"`
}

// Authenticate implements [Source].
func (h *hook) Authenticate(ctx context.Context, req *Request) (*Response, error) {
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	text, status, err := h.post(ctx, login{
		Tenant: req.Tenant, User: req.User, Password: req.Password, Address: req.Address, Protocol: "ftp",
		TLS: req.Encrypted,
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("hook %s: %w", h.shown, err)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return nil, fmt.Errorf("hook %s: %w", h.shown, ErrRefused)
	case status != http.StatusOK:
		return nil, fmt.Errorf(
			"hook %s: unexpected HTTP status %d: send 200 with the user, or 401 for a wrong password", h.shown, status)
	}
	return decode("response of the hook "+h.shown, text)
}

// probe sends a HEAD request. Any response shows that the hook is running, except for the status codes by which a
// proxy reports that it cannot reach the hook.
func (h *hook) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, h.url, nil)
	if err != nil {
		return errors.New("invalid URL of the hook")
	}
	response, err := h.client.Do(request)
	if err != nil {
		return fmt.Errorf("hook %s: %w", h.shown, web.WithoutURL(err))
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusProxyAuthRequired, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return fmt.Errorf("hook %s: cannot be reached: %s", h.shown, response.Status)
	}
	return nil
}

// post sends a login and returns the body and the status of the response.
func (h *hook) post(ctx context.Context, l login) (text []byte, status int, err error) {
	body, err := json.Marshal(l)
	if err != nil {
		return nil, 0, errors.New("cannot encode the login as JSON")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return nil, 0, errors.New("invalid URL")
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	if h.secret != "" {
		request.Header.Set("Authorization", "Bearer "+h.secret)
	}
	response, err := h.client.Do(request)
	if err != nil {
		return nil, 0, web.WithoutURL(err)
	}
	defer response.Body.Close()
	text, err = io.ReadAll(io.LimitReader(response.Body, maxResponse+1))
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("read response: %w", err)
	case len(text) > maxResponse:
		return nil, 0, fmt.Errorf("the response is longer than %d bytes", maxResponse)
	}
	return text, response.StatusCode, nil
}
