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

// NameHeader is the header of a hook's request that has the pathname of the file, percent-encoded (RFC 3986).
const NameHeader = "Babelftp-Name"

// NewHook makes an inspector of an HTTP server. It gets the bytes of each file as the body of a POST, with chunks, and
// in the trailer the signature of [web.Sign] over the body. It answers 200 with {"accept": true}, or with {"accept":
// false, "reason": {"en": "..."}} by languages. It fails where it takes no bytes, or does not answer after the last
// one, for longer than the timeout. Nil authorities are those of the system.
func NewHook(address, secret string, authorities *x509.CertPool, timeout time.Duration) (*Inspector, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return nil, errors.New("the URL of a hook begins with https:// or http:// and a host")
	}
	client := web.NewClient(&http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dialer{network, address, timeout}.dial(ctx)
		},
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities},
		TLSHandshakeTimeout: timeout, ResponseHeaderTimeout: timeout, IdleConnTimeout: time.Minute,
	}, 0)
	return &Inspector{judge: func(ctx context.Context, name string, r io.Reader) error {
		return askHook(ctx, client, address, []byte(secret), name, r, timeout)
	}}, nil
}

// askHook posts one file.
func askHook(
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
	// The trailer is sent after the end of the body has been read.
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
		return fmt.Errorf("the hook answers %s", response.Status)
	}
	var answer struct {
		Accept *bool             `json:"accept"`
		Reason map[string]string `json:"reason"`
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return err
	}
	switch err := json.Unmarshal(text, &answer); {
	case err != nil:
		return fmt.Errorf("the hook's answer is no such JSON: %w", err)
	case answer.Accept == nil:
		return errors.New(`the hook's answer has no "accept"`)
	case !*answer.Accept:
		return &Refusal{Reason: answer.Reason}
	}
	return nil
}

// atEnd calls a function when all has been read.
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
