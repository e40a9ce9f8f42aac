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

// speak rewrites the requests and responses of an operation, or of all operations if it is empty.
func speak(operation string, w s3test.Rewriting) s3test.Fault {
	return s3test.Fault{Operation: operation, Effect: s3test.Rewrite(w)}
}

// headers changes the response headers of an operation.
func headers(operation string, change func(h http.Header)) s3test.Fault {
	return speak(operation, s3test.Rewriting{Response: func(r *http.Response, body []byte) []byte {
		change(r.Header)
		return body
	}})
}

// drop removes response headers of an operation.
func drop(operation string, names ...string) s3test.Fault {
	return headers(operation, func(h http.Header) {
		for _, name := range names {
			h.Del(name)
		}
	})
}

// document changes the XML responses of an operation.
func document(operation string, change func(xml string) string) s3test.Fault {
	return speak(operation, s3test.Rewriting{Response: func(r *http.Response, body []byte) []byte {
		if bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")) && isXML(r) {
			return []byte(change(string(body)))
		}
		return body
	}})
}

func isXML(r *http.Response) bool { return strings.Contains(r.Header.Get("Content-Type"), "xml") }

// replace changes XML with pairs of a regular expression and a replacement.
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

// errorXML returns an S3 error document.
func errorXML(code, message string) string {
	return fmt.Sprintf(
		`<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>%s</Message><RequestId>r</RequestId></Error>`,
		code, message)
}

// refuse responds with an S3 error.
func refuse(operation string, status int, code, message string) s3test.Fault {
	return answer(operation, status, "Content-Type: application/xml", errorXML(code, message))
}

// page responds with an HTML page like a proxy.
func page(operation string, status int, server string) s3test.Fault {
	return answer(operation, status, "Content-Type: text/html\nServer: "+server, html(status))
}

func html(status int) string {
	title := fmt.Sprintf("%d %s", status, http.StatusText(status))
	return "<html>\r\n<head><title>" + title + "</title></head>\r\n<body>\r\n<center><h1>" + title +
		"</h1></center>\r\n<hr>\r\n</body>\r\n</html>\r\n"
}

// refuseHeaders rejects requests with any of these headers. The message contains the name of the header.
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

// ignore removes headers from requests of an operation.
func ignore(operation string, names ...string) s3test.Fault {
	return speak(operation, s3test.Rewriting{Request: func(r *http.Request) *http.Response {
		for _, name := range names {
			r.Header.Del(name)
		}
		return nil
	}})
}

// without removes query parameters from listings.
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

// encoded encodes a query in the form used for signatures.
func encoded(query url.Values) string { return strings.ReplaceAll(query.Encode(), "+", "%20") }

// sometimes limits a fault to a number of requests, after skipping some.
func sometimes(after, times int, f s3test.Fault) s3test.Fault {
	f.After, f.Times = after, times
	return f
}

// compressed compresses a body with gzip.
func compressed(body []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(body) // writing to memory cannot fail
	_ = w.Close()
	return out.Bytes()
}
