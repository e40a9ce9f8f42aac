package s3error

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"syscall"

	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// A ForeignError is returned if the body of a response does not come from S3. It may be the HTML page of a reverse
// proxy, a firewall or a login portal, for example. The HTTP status determines whether the request is repeated.
type ForeignError struct {
	Status int
	Server string // value of the Server header, if any
	Advice string // how an operator can fix the problem, if known
}

// Problem returns a line with the status and the server.
func (e *ForeignError) Problem() string {
	if e.Server == "" {
		return fmt.Sprintf("HTTP %d without an S3 response", e.Status)
	}
	return fmt.Sprintf("HTTP %d from %s, not from S3", e.Status, e.Server)
}

// What returns what an operator should do.
func (e *ForeignError) What() string { return cmp.Or(e.Advice, "check the log of that server") }

// Error returns the problem and the advice.
func (e *ForeignError) Error() string { return e.Problem() + ": " + e.What() }

// repeatable reports whether the same request may succeed a moment later.
func (e *ForeignError) repeatable() bool {
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported, http.StatusInsufficientStorage,
		http.StatusNetworkAuthenticationRequired:
		return false
	}
	return e.Status < http.StatusMultipleChoices || e.Status >= http.StatusInternalServerError
}

// kind returns the kind of the error. A 404 or 412 from a proxy says nothing about the object, so its kind is EIO.
func (e *ForeignError) kind() error {
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fs.ErrPermission
	case http.StatusRequestEntityTooLarge:
		return syscall.EFBIG
	case http.StatusRequestURITooLong:
		return syscall.ENAMETOOLONG
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return errors.ErrUnsupported
	case http.StatusInsufficientStorage:
		return syscall.ENOSPC
	}
	if e.repeatable() {
		return syscall.EAGAIN
	}
	return syscall.EIO
}

// causes maps responses to advice. A row matches responses with its status whose body contains its text, if any. The
// first matching row is used.
var causes = []struct {
	status       int
	text, advice string
}{
	// texts of nginx, Apache and Go
	{http.StatusBadRequest, "plain HTTP request was sent to HTTPS", tlsAdvice},
	{http.StatusBadRequest, "speaking plain HTTP to an SSL-enabled", tlsAdvice},
	{http.StatusBadRequest, "sent an HTTP request to an HTTPS server", tlsAdvice},
	{http.StatusBadRequest, "Request Header Or Cookie Too Large", headersAdvice},
	{http.StatusRequestHeaderFieldsTooLarge, "", headersAdvice},
	{http.StatusUnauthorized, "", "let requests to S3 pass without a login of that server"},
	{http.StatusForbidden, "", "allow the request in the rules of that proxy or firewall"},
	{http.StatusNotFound, "", "correct s3.endpoint, or let that server pass all paths on to S3"},
	{http.StatusMethodNotAllowed, "", methodsAdvice},
	{http.StatusNotImplemented, "", methodsAdvice},
	{http.StatusProxyAuthRequired, "", "write the name and the password into HTTPS_PROXY, or add S3 to NO_PROXY"},
	{http.StatusRequestTimeout, "", "raise the time-outs of that server for requests to S3"},
	{http.StatusRequestEntityTooLarge, "", "allow request bodies of part_size (client_max_body_size of nginx)"},
	{http.StatusRequestURITooLong, "", "allow request lines of 4 KiB: keys have up to 1,024 bytes in percent-encoding"},
	{http.StatusExpectationFailed, "", "let the header Expect pass on to S3"},
	{http.StatusTooManyRequests, "", "raise the request limit of that server"},
	{http.StatusBadGateway, "", unreachedAdvice},
	{http.StatusServiceUnavailable, "", unreachedAdvice},
	{http.StatusGatewayTimeout, "", "raise the time-outs of that server for requests to S3 (proxy_read_timeout of nginx)"},
	{http.StatusNetworkAuthenticationRequired, "", "log in to the network, or leave it out of the way to S3"},
	{http.StatusOK, "", "correct s3.endpoint: it returns a web page, such as a login portal"},
}

const (
	tlsAdvice       = "use https:// in s3.endpoint: its port speaks TLS"
	headersAdvice   = "allow request headers of 16 KiB (large_client_header_buffers of nginx)"
	methodsAdvice   = "let that server pass HEAD, GET, PUT, POST and DELETE on to S3"
	unreachedAdvice = "check whether that server can reach S3"
)

// adviceFor returns the advice for a response whose body begins with head.
func adviceFor(r *smithyhttp.Response, head []byte) string {
	if to := r.Header.Get("Location"); to != "" && r.StatusCode/100 == 3 {
		return "write the URL to which it redirects into s3.endpoint: " + oneLine(to)
	}
	for _, c := range causes {
		if c.status == r.StatusCode && bytes.Contains(head, []byte(c.text)) {
			return c.advice
		}
	}
	return ""
}

// headSize is the number of bytes of a body that are inspected.
const headSize = 1 << 10

// DetectForeign is an API option for S3 clients (s3.WithAPIOptions) that turns each response whose body does not come
// from S3 into a [ForeignError]. It ignores responses without a body and the content of objects.
func DetectForeign(stack *middleware.Stack) error {
	const id = "DetectForeign"
	if _, there := stack.Deserialize.Get(id); there {
		return nil
	}
	operation := stack.ID()
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc(id, func(
		ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler,
	) (middleware.DeserializeOutput, middleware.Metadata, error) {
		out, metadata, err := next.HandleDeserialize(ctx, in)
		r, ok := out.RawResponse.(*smithyhttp.Response)
		if err != nil || !ok || r.Body == nil || r.ContentLength == 0 || strings.HasPrefix(operation, "Head") ||
			operation == "GetObject" && r.StatusCode < http.StatusMultipleChoices {
			return out, metadata, err
		}
		body := bufio.NewReaderSize(r.Body, headSize)
		head, _ := body.Peek(headSize) // the SDK gets the error too
		r.Body = struct {
			io.Reader
			io.Closer
		}{body, r.Body}
		if isForeign(head, r.StatusCode, operation) {
			_, _ = io.Copy(io.Discard, io.LimitReader(body, maxDiscarded)) // so that the connection can be reused
			_ = r.Body.Close()
			server := oneLine(r.Header.Get("Server"))
			err = &ForeignError{Status: r.StatusCode, Server: server, Advice: adviceFor(r, head)}
		}
		return out, metadata, err
	}), middleware.After)
}

// maxDiscarded is the maximum number of bytes of a foreign body that are read.
const maxDiscarded = 64 << 10

// isForeign reports whether a body that begins with head does not come from S3. If the body ends too early to decide,
// isForeign returns false.
func isForeign(head []byte, status int, operation string) bool {
	text := strings.TrimSpace(strings.TrimPrefix(string(head), "\ufeff"))
	for strings.HasPrefix(text, "<?") || strings.HasPrefix(text, "<!--") {
		end := "?>"
		if strings.HasPrefix(text, "<!--") {
			end = "-->"
		}
		_, rest, closed := strings.Cut(text, end)
		if !closed {
			return false
		}
		text = strings.TrimSpace(rest)
	}
	if text == "" {
		return false
	}
	rest, opens := strings.CutPrefix(text, "<")
	switch {
	case !opens:
		return status >= http.StatusMultipleChoices || hasResult(operation)
	case strings.HasPrefix(rest, "!"): // a DOCTYPE
		return true
	}
	end := strings.IndexAny(rest, " \t\r\n/>")
	if end < 0 {
		return false
	}
	name := rest[:end]
	if _, local, prefixed := strings.Cut(name, ":"); prefixed {
		name = local
	}
	if status < http.StatusMultipleChoices {
		return strings.EqualFold(name, "html")
	}
	return !strings.EqualFold(name, "Error") && !strings.EqualFold(name, "ErrorResponse")
}

// hasResult reports whether S3 responds to an operation with XML. The SDK would parse any other text as an empty
// result.
func hasResult(operation string) bool {
	switch operation {
	case "PutObject", "UploadPart", "DeleteObject", "AbortMultipartUpload", "RestoreObject":
		return false
	}
	return true
}

// oneLine makes the value of a header safe for the log: it replaces control characters and limits the length.
func oneLine(s string) string {
	const maxBytes = 200
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s[:min(len(s), maxBytes)])
}
