package s3test

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// A Rewriting changes requests on their way to the server and responses on their way back. A nil field changes
// nothing.
type Rewriting struct {
	// Request changes a request, which is then signed again. If it returns a response, the client gets that
	// response and the request is not forwarded.
	Request func(r *http.Request) *http.Response

	// Unsigned keeps the client's signature, which becomes invalid if Request changes a signed part.
	Unsigned bool

	// Response changes a response and returns the new body. For HEAD, body is empty.
	Response func(r *http.Response, body []byte) []byte

	// Close closes the connection after the response.
	Close bool
}

// Rewrite returns the effect of a rewriting.
func Rewrite(rewriting Rewriting) Effect {
	return func(e *Exchange) {
		response, err := rewriting.request(e)
		if err != nil {
			e.Reset()
		}
		defer response.Body.Close()
		body := io.Reader(response.Body)
		if rewriting.Response != nil {
			content, err := io.ReadAll(response.Body)
			if err != nil {
				e.Reset()
			}
			content = rewriting.Response(response, content)
			if e.Request.Method != http.MethodHead && response.Header.Get("Content-Length") != "" {
				response.Header.Set("Content-Length", strconv.Itoa(len(content)))
			}
			body = bytes.NewReader(content)
		}
		if rewriting.Close {
			response.Header.Set("Connection", "close") // HTTP/2 sends GOAWAY
		}
		if err := e.Respond(response, body); err != nil {
			e.Reset()
		}
	}
}

// request rewrites and forwards a request.
func (w *Rewriting) request(e *Exchange) (*http.Response, error) {
	if w.Request != nil {
		if response := w.Request(e.Request); response != nil {
			_, _ = io.Copy(io.Discard, e.Request.Body) // an unread body may break the connection instead
			return response, nil
		}
		if !w.Unsigned {
			if err := e.Sign(); err != nil {
				return nil, err
			}
		}
	}
	return e.Forward(e.Request.Body)
}

// Sign signs the request with the server's credentials and the current time, as a gateway does. Anonymous requests
// are left unsigned.
func (e *Exchange) Sign() error {
	if e.Request.Header.Get("Authorization") == "" {
		return nil
	}
	e.Request.URL.Host, e.Request.URL.Scheme = e.Request.Host, e.proxy.target.Scheme
	s := e.proxy.server
	return v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }).SignHTTP(
		e.Request.Context(), aws.Credentials{AccessKeyID: s.AccessKeyID, SecretAccessKey: s.SecretAccessKey}, e.Request,
		e.Request.Header.Get("X-Amz-Content-Sha256"), "s3", s.Region, time.Now())
}

// NewResponse returns a response made by the proxy. The header consists of lines in the form "Name: value".
func NewResponse(status int, header, body string) *http.Response {
	response := &http.Response{
		StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)),
	}
	for line := range strings.Lines(header) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		response.Header.Add(name, strings.TrimSpace(value))
	}
	return response
}
