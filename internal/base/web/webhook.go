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

// The headers of a request.
const (
	TimestampHeader = "Babelftp-Timestamp" // seconds since 1970
	SignatureHeader = "Babelftp-Signature" // [Sign]
)

// maxAnswer is how much of an answer is read so that its connection can be used again, in bytes.
const maxAnswer = 64 << 10

// idleTime is how long a connection to the receiver stays that no request uses.
const idleTime = time.Minute

// A Webhook posts arrays of JSON objects to a receiver, signed by HMAC-SHA256 (RFC 2104).
type Webhook struct {
	url    string
	secret []byte
	client *http.Client
}

// NewWebhook makes a webhook. Without authorities, its certificate must come from one of the system's.
func NewWebhook(address, secret string, authorities *x509.CertPool, timeout time.Duration) *Webhook {
	return &Webhook{url: address, secret: []byte(secret), client: NewClient(&http.Transport{
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities},
		IdleConnTimeout: idleTime,
	}, timeout)}
}

// Close closes the connections that no request uses. Requests that run go on.
func (w *Webhook) Close() { w.client.CloseIdleConnections() }

// Sign is the signature of a body: "v1=" and the HMAC-SHA256 (RFC 2104) over the timestamp, "." and the body, in hex.
func Sign(secret []byte, timestamp string, body []byte) string {
	s := NewSigner(secret, timestamp)
	s.Write(body)
	return s.Signature()
}

// A Signer makes the signature of a body that is written to it.
type Signer struct{ hash.Hash }

// NewSigner begins a signature.
func NewSigner(secret []byte, timestamp string) Signer {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(timestamp + "."))
	return Signer{mac}
}

// Signature is [Sign] of what was written.
func (s Signer) Signature() string { return "v1=" + hex.EncodeToString(s.Sum(nil)) }

// Post sends a JSON array. The error says that the receiver has not answered 2xx.
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
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer))
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("the receiver answers %s", response.Status)
	}
	return nil
}
