package inspect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/babelftp/babelftp/internal/base/web"
)

// NameHeader is the request header with the pathname of the file, percent-encoded (RFC 3986).
const NameHeader = "Babelftp-Name"

// NewHook returns an inspector that posts each file to an HTTP server. The request body is chunked and contains the
// bytes of the file; the trailer contains the signature of the body, see [web.Sign]. The server must respond with
// status 200 and {"accept": true} or {"accept": false, "reason": {"en": "..."}}, with a reason in any number of
// languages. An inspection fails if the server accepts no bytes, or does not respond after the last one, for longer
// than the timeout. If authorities is nil, the server's certificate is verified with the authorities of the system.
func NewHook(address, secret string, authorities *x509.CertPool, timeout time.Duration) (*Inspector, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return nil, errors.New("invalid URL of the hook: want https:// or http:// and a host")
	}
	client := web.NewClient(&http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dialer{network, address, timeout}.dial(ctx)
		},
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities},
		TLSHandshakeTimeout: timeout, ResponseHeaderTimeout: timeout, IdleConnTimeout: time.Minute,
	}, 0)
	return &Inspector{inspect: func(ctx context.Context, name string, r io.Reader) error {
		return postToHook(ctx, client, address, []byte(secret), name, r, timeout)
	}}, nil
}

// postToHook posts one file and parses the response.
func postToHook(
	ctx context.Context, client *http.Client, address string, secret []byte, name string, r io.Reader,
	timeout time.Duration,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	signer := web.NewSigner(secret, timestamp)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, nil)
	if err != nil {
		return err
	}
	request.Trailer = http.Header{web.SignatureHeader: nil}
	// The HTTP client sends the trailer after it has read the body to its end.
	request.Body = io.NopCloser(&atEnd{io.TeeReader(r, signer), func() {
		request.Trailer.Set(web.SignatureHeader, signer.Signature())
	}})
	request.ContentLength = -1
	request.Header.Set("Content-Type", "application/octet-stream")
	request.Header.Set(web.TimestampHeader, timestamp)
	request.Header.Set(NameHeader, (&url.URL{Path: name}).EscapedPath())
	response, err := client.Do(request)
	if err != nil {
		return web.WithoutURL(err)
	}
	defer response.Body.Close()
	defer time.AfterFunc(timeout, cancel).Stop()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the hook responded with status %s", response.Status)
	}
	var result struct {
		Accept *bool             `json:"accept"`
		Reason map[string]string `json:"reason"`
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil {
		return err
	}
	switch err := json.Unmarshal(text, &result); {
	case err != nil:
		return fmt.Errorf("invalid JSON in the response of the hook: %w", err)
	case result.Accept == nil:
		return errors.New(`missing "accept" in the response of the hook`)
	case !*result.Accept:
		return &Refusal{Reason: result.Reason}
	}
	return nil
}

// atEnd is a Reader that calls a function at the end of the data.
type atEnd struct {
	io.Reader
	ended func()
}

func (r *atEnd) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		r.ended()
	}
	return n, err
}
