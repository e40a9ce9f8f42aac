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

// A Rewriting changes requests on their way to the server, and responses on their way back. A field that is nil
// changes nothing.
type Rewriting struct {
	// Request changes a request, which is then signed again. If it returns a response, the client gets that one and the
	// server does not get the request.
	Request func(r *http.Request) *http.Response

	// Unsigned keeps the signature of the client, which no longer fits if Request changes what is signed.
	Unsigned bool

	// Response changes a response. It returns the new body. The body of a response to HEAD is empty.
	Response func(r *http.Response, body []byte) []byte

	// Close closes the connection after the response.
	Close bool
}

// Rewrite is the effect of a rewriting.
func Rewrite(rewriting Rewriting) Effect {
	return func(e *exchange) {
		response, err := rewriting.request(e)
		if err != nil {
			e.reset()
		}
		defer response.Body.Close()
		body := io.Reader(response.Body)
		if rewriting.Response != nil {
			content, err := io.ReadAll(response.Body)
			if err != nil {
				e.reset()
			}
			content = rewriting.Response(response, content)
			if e.r.Method != http.MethodHead && response.Header.Get("Content-Length") != "" {
				response.Header.Set("Content-Length", strconv.Itoa(len(content)))
			}
			body = bytes.NewReader(content)
		}
		if rewriting.Close {
			response.Header.Set("Connection", "close") // HTTP/2 sends GOAWAY
		}
		if e.r.Method == http.MethodHead {
			body = http.NoBody
		}
		if err := e.answer(response, body); err != nil {
			e.reset()
		}
	}
}

// request forwards a request as it was rewritten.
func (w *Rewriting) request(e *exchange) (*http.Response, error) {
	if w.Request != nil {
		if response := w.Request(e.r); response != nil {
			_, _ = io.Copy(io.Discard, e.r.Body) // a server that does not read it may break the connection instead
			return response, nil
		}
		if !w.Unsigned {
			e.sign()
		}
	}
	return e.forward(e.r.Body)
}

// sign signs a request with the credentials of the server, as a gateway does.
func (e *exchange) sign() {
	if e.r.Header.Get("Authorization") == "" {
		return
	}
	e.r.URL.Host, e.r.URL.Scheme = e.r.Host, e.proxy.target.Scheme
	s := e.proxy.server
	err := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }).SignHTTP(
		e.r.Context(), aws.Credentials{AccessKeyID: s.AccessKeyID, SecretAccessKey: s.SecretAccessKey}, e.r,
		e.r.Header.Get("X-Amz-Content-Sha256"), "s3", s.Region, time.Now())
	if err != nil {
		e.reset()
	}
}

// NewResponse returns a response for [Rewriting.Request]. The header is given as lines "Name: value".
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
