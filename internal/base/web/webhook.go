package web

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Headers of signed requests.
const (
	TimestampHeader = "Babelftp-Timestamp" // seconds since 1970
	SignatureHeader = "Babelftp-Signature" // see [Sign]
)

// maxDiscarded is the maximum number of bytes of a response that are read so that the connection can be reused.
const maxDiscarded = 64 << 10

// clientIdleTimeout is the time after which an idle connection to the receiver is closed.
const clientIdleTimeout = time.Minute

// A Webhook posts JSON arrays to a receiver, signed with HMAC-SHA256 (RFC 2104).
type Webhook struct {
	url    string
	secret []byte
	client *http.Client
}

// NewWebhook returns a Webhook. If authorities is nil, the receiver's certificate is verified with the authorities of
// the system.
func NewWebhook(address, secret string, authorities *x509.CertPool, timeout time.Duration) *Webhook {
	return &Webhook{url: address, secret: []byte(secret), client: NewClient(&http.Transport{
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities},
		IdleConnTimeout: clientIdleTimeout,
	}, timeout)}
}

// Close closes idle connections. Requests in flight are not affected.
func (w *Webhook) Close() { w.client.CloseIdleConnections() }

// Sign returns the signature of a body: "v1=" followed by the HMAC-SHA256 (RFC 2104) of the timestamp, "." and the
// body, in hexadecimal.
func Sign(secret []byte, timestamp string, body []byte) string {
	s := NewSigner(secret, timestamp)
	s.Write(body)
	return s.Signature()
}

// A Signer computes the signature of the body that is written to it.
type Signer struct{ hash.Hash }

// NewSigner returns a Signer for a request with this timestamp.
func NewSigner(secret []byte, timestamp string) Signer {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(timestamp + "."))
	return Signer{mac}
}

// Signature returns the signature of the bytes written so far, see [Sign].
func (s Signer) Signature() string { return "v1=" + hex.EncodeToString(s.Sum(nil)) }

// Post sends a JSON array. It returns an error unless the receiver responds with a 2xx status.
func (w *Webhook) Post(ctx context.Context, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(TimestampHeader, timestamp)
	request.Header.Set(SignatureHeader, Sign(w.secret, timestamp, body))
	response, err := w.client.Do(request)
	if err != nil {
		return WithoutURL(err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxDiscarded))
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("the receiver responded with status %s", response.Status)
	}
	return nil
}
