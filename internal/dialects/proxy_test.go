package dialects_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// speak rewrites requests and responses of an operation, of all if it is empty.
func speak(operation string, w s3test.Rewriting) s3test.Fault {
	return s3test.Fault{Operation: operation, Effect: s3test.Rewrite(w)}
}

// headers changes the headers of responses to an operation.
func headers(operation string, change func(h http.Header)) s3test.Fault {
	return speak(operation, s3test.Rewriting{Response: func(r *http.Response, body []byte) []byte {
		change(r.Header)
		return body
	}})
}

// drop removes headers of responses to an operation.
func drop(operation string, names ...string) s3test.Fault {
	return headers(operation, func(h http.Header) {
		for _, name := range names {
			h.Del(name)
		}
	})
}

// document changes the XML of responses to an operation.
func document(operation string, change func(xml string) string) s3test.Fault {
	return speak(operation, s3test.Rewriting{Response: func(r *http.Response, body []byte) []byte {
		if bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")) && isXML(r) {
			return []byte(change(string(body)))
		}
		return body
	}})
}

func isXML(r *http.Response) bool { return strings.Contains(r.Header.Get("Content-Type"), "xml") }

// replace changes the XML by regular expressions.
func replace(operation string, pairs ...string) s3test.Fault {
	return document(operation, func(xml string) string {
		for pair := range slices.Chunk(pairs, 2) {
			xml = regexp.MustCompile(pair[0]).ReplaceAllString(xml, pair[1])
		}
		return xml
	})
}

// answer responds to an operation instead of the server.
func answer(operation string, status int, header, body string) s3test.Fault {
	return speak(operation, s3test.Rewriting{Request: func(*http.Request) *http.Response {
		return s3test.NewResponse(status, header, body)
	}})
}

// errorXML is an error of S3.
func errorXML(code, message string) string {
	return fmt.Sprintf(
		`<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>%s</Message><RequestId>r</RequestId></Error>`,
		code, message)
}

// refuse responds with an error of S3.
func refuse(operation string, status int, code, message string) s3test.Fault {
	return answer(operation, status, "Content-Type: application/xml", errorXML(code, message))
}

// page responds with a page of HTML, as a proxy does.
func page(operation string, status int, server string) s3test.Fault {
	return answer(operation, status, "Content-Type: text/html\nServer: "+server, html(status))
}

func html(status int) string {
	title := fmt.Sprintf("%d %s", status, http.StatusText(status))
	return "<html>\r\n<head><title>" + title + "</title></head>\r\n<body>\r\n<center><h1>" + title +
		"</h1></center>\r\n<hr>\r\n</body>\r\n</html>\r\n"
}

// refuseHeaders responds with an error to requests with one of these headers. The message names the header.
func refuseHeaders(status int, code, message string, names ...string) s3test.Fault {
	return speak("", s3test.Rewriting{Request: func(r *http.Request) *http.Response {
		for _, name := range names {
			if r.Header.Get(name) != "" {
				return s3test.NewResponse(status, "Content-Type: application/xml",
					errorXML(code, fmt.Sprintf(message, strings.ToLower(name))))
			}
		}
		return nil
	}})
}

// ignore drops headers of requests to an operation.
func ignore(operation string, names ...string) s3test.Fault {
	return speak(operation, s3test.Rewriting{Request: func(r *http.Request) *http.Response {
		for _, name := range names {
			r.Header.Del(name)
		}
		return nil
	}})
}

// without drops query parameters of listings.
func without(names ...string) s3test.Fault {
	return speak("ListObjectsV2", s3test.Rewriting{Request: func(r *http.Request) *http.Response {
		query := r.URL.Query()
		for _, name := range names {
			query.Del(name)
		}
		r.URL.RawQuery = encoded(query)
		return nil
	}})
}

// encoded is a query as a signature has it.
func encoded(query url.Values) string { return strings.ReplaceAll(query.Encode(), "+", "%20") }

// sometimes makes a fault happen from the nth request on, so many times.
func sometimes(after, times int, f s3test.Fault) s3test.Fault {
	f.After, f.Times = after, times
	return f
}

// compressed is a body in gzip.
func compressed(body []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(body) // into memory
	_ = w.Close()
	return out.Bytes()
}
