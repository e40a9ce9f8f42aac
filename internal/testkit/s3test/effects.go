package s3test

import (
	"encoding/xml"
	"io"
	"net/http"
	"time"
)

// An Effect handles a request instead of the proxy, which would forward the request and return the response.
type Effect func(e *Exchange)

// Refuse returns an S3 error such as 503 SlowDown to the client without forwarding the request.
func Refuse(status int, code string) Effect {
	return func(e *Exchange) {
		_, _ = io.Copy(io.Discard, e.Request.Body) // an unread body may break the connection instead
		response := ErrorResponse(status, code)
		defer response.Body.Close()
		_ = e.Respond(response, response.Body) // the client may have disconnected
	}
}

// ErrorResponse returns an S3 error response.
func ErrorResponse(status int, code string) *http.Response {
	body, err := xml.Marshal(struct {
		XMLName   xml.Name `xml:"Error"`
		Code      string
		Message   string
		RequestID string `xml:"RequestId"`
	}{Code: code, Message: "response of the proxy", RequestID: "proxy"})
	if err != nil {
		panic(err) // impossible for a struct of strings
	}
	return NewResponse(status, "Content-Type: application/xml", xml.Header+string(body))
}

// Hold sends the first half of the response body, and the rest when until is closed. If the response has no body,
// Hold delays the whole response.
func Hold(until <-chan struct{}) Effect {
	return func(e *Exchange) {
		e.relay(e.Request.Body, func(r *http.Response) io.Reader {
			if r.ContentLength <= 0 {
				select {
				case <-until:
				case <-e.Request.Context().Done():
				}
				return r.Body
			}
			half := io.LimitReader(r.Body, r.ContentLength/2)
			return io.MultiReader(half, &held{e, until}, r.Body)
		})
	}
}

// held is a reader that blocks until the channel is closed and then returns EOF.
type held struct {
	e     *Exchange
	until <-chan struct{}
}

func (h *held) Read([]byte) (int, error) {
	_ = http.NewResponseController(h.e.w).Flush()
	select {
	case <-h.until:
		return 0, io.EOF
	case <-h.e.Request.Context().Done():
		return 0, errCut
	}
}

// Advance moves the Date of the response ahead by d, so that stored objects seem older by d.
func Advance(d time.Duration) Effect {
	return func(e *Exchange) {
		e.relay(e.Request.Body, func(r *http.Response) io.Reader {
			if now, err := http.ParseTime(r.Header.Get("Date")); err == nil {
				r.Header.Set("Date", now.Add(d).Format(http.TimeFormat))
			}
			return r.Body
		})
	}
}

// Stall never responds and does not forward the request.
func Stall() Effect {
	return func(e *Exchange) {
		_, _ = io.Copy(io.Discard, e.Request.Body)
		<-e.Request.Context().Done()
		e.Reset()
	}
}

// ResetRequest breaks the connections on both sides in the middle of the request body. A request without a body
// does not reach the server.
func ResetRequest() Effect {
	return func(e *Exchange) {
		if half := e.Request.ContentLength / 2; half > 0 {
			if response, err := e.Forward(io.MultiReader(io.LimitReader(e.Request.Body, half), cut{})); err == nil {
				_ = response.Body.Close()
			}
		}
		e.Reset()
	}
}

// LoseResponse lets the server perform the request and then breaks the connection before sending any of the
// response.
func LoseResponse() Effect {
	return func(e *Exchange) {
		if response, err := e.Forward(e.Request.Body); err == nil {
			_, _ = io.Copy(io.Discard, response.Body) // some servers finish the request while they send the response
			_ = response.Body.Close()
		}
		e.Reset()
	}
}

// CorruptResponse changes a byte in the middle of the response body.
func CorruptResponse() Effect {
	return func(e *Exchange) {
		e.relay(e.Request.Body, func(r *http.Response) io.Reader {
			return &corruptingReader{r: r.Body, left: r.ContentLength / 2}
		})
	}
}

// CorruptRequest changes a byte in the middle of the request body.
func CorruptRequest() Effect {
	return func(e *Exchange) {
		body := &corruptingReader{r: e.Request.Body, left: e.Request.ContentLength / 2}
		e.relay(body, func(r *http.Response) io.Reader { return r.Body })
	}
}

// relay forwards the request with the given body, and sends the response with the body that respond returns.
func (e *Exchange) relay(body io.Reader, respond func(*http.Response) io.Reader) {
	response, err := e.Forward(body)
	if err != nil {
		e.Reset()
	}
	defer response.Body.Close()
	if err := e.Respond(response, respond(response)); err != nil {
		e.Reset()
	}
}

// A corruptingReader changes the byte after the first left bytes.
type corruptingReader struct {
	r    io.Reader
	left int64
}

func (r *corruptingReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if r.left >= 0 && r.left < int64(n) {
		p[r.left] ^= 1
	}
	r.left -= int64(n)
	return n, err
}

// cut is a reader that returns errCut.
type cut struct{}

func (cut) Read([]byte) (int, error) { return 0, errCut }

// CutResponse breaks the connection in the middle of the response body.
func CutResponse() Effect {
	return func(e *Exchange) {
		e.relay(e.Request.Body, func(r *http.Response) io.Reader {
			return io.MultiReader(io.LimitReader(r.Body, r.ContentLength/2), cut{})
		})
	}
}
