package s3client

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"golang.org/x/text/encoding/htmlindex"
)

// tolerant makes a client understand responses whose form differs from AWS. For example, the SDK rejects a whole
// response if it cannot parse one date in it. The contents of objects are not changed.
//
// Package internal/dialects has the reported variants, and runs the whole server with each.
func tolerant(stack *middleware.Stack) error {
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("Tolerate", tolerate), middleware.After)
}

func tolerate(
	ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler,
) (middleware.DeserializeOutput, middleware.Metadata, error) {
	out, metadata, err := next.HandleDeserialize(ctx, in)
	response, ok := out.RawResponse.(*smithyhttp.Response)
	if err != nil || !ok {
		return out, metadata, err
	}
	repairHeader(response.Header)
	ofObject := awsmiddleware.GetOperationName(ctx) == "GetObject" && response.StatusCode < http.StatusMultipleChoices
	if !ofObject {
		err = repairBody(response)
	}
	return out, metadata, err
}

// repairHeader converts headers to the form that the SDK parses, and removes those that it cannot parse. It also makes
// ETags strong: a proxy that changes the encoding of a body marks the ETag as weak, but S3 compares only strong ones.
func repairHeader(h http.Header) {
	if etag := h.Get("Etag"); strings.HasPrefix(etag, `W/"`) {
		h.Set("Etag", strings.TrimPrefix(etag, "W/"))
	}
	if text := h.Get("Last-Modified"); text != "" {
		if at, ok := parseDate(text); ok {
			h.Set("Last-Modified", at.UTC().Format(http.TimeFormat))
		} else {
			h.Del("Last-Modified")
		}
	}
	for _, name := range []string{"X-Amz-Missing-Meta", "X-Amz-Tagging-Count", "X-Amz-Mp-Parts-Count"} {
		repairValue(h, name, number)
	}
	for _, name := range []string{"X-Amz-Delete-Marker", "X-Amz-Server-Side-Encryption-Bucket-Key-Enabled"} {
		repairValue(h, name, boolean)
	}
	repairValue(h, "X-Amz-Object-Lock-Retain-Until-Date", date)
}

func repairValue(h http.Header, name string, k kind) {
	text := h.Get(name)
	if text == "" {
		return
	}
	if repaired, ok := k.repair(text); ok {
		h.Set(name, repaired)
	} else {
		h.Del(name)
	}
}

// repairBody reads a response that is not an object, and converts its XML to the form that the SDK parses.
func repairBody(response *smithyhttp.Response) error {
	body, err := io.ReadAll(response.Body)
	if err != nil { // the received part may still show which server sent it
		response.Body = repairedBody{io.MultiReader(bytes.NewReader(body), failingReader{err}), response.Body}
		return nil
	}
	if bytes.HasPrefix(body, []byte("\x1f\x8b")) { // a proxy compressed it although the request does not accept that
		if body, err = decompress(body); err != nil {
			return &smithy.DeserializationError{Err: err}
		}
	}
	response.Body = repairedBody{bytes.NewReader(repairXML(body)), response.Body}
	return nil
}

// repairedBody reads from memory, and closes the body of the response.
type repairedBody struct {
	io.Reader
	io.Closer
}

// failingReader returns the error of a body that ended early.
type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

func decompress(body []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// declaration matches the start of an XML document. encoding/xml accepts only version 1.0 and UTF-8.
var declaration = regexp.MustCompile(`^\s*<\?xml[^>]*?(?:encoding=["']([^"']*)["'][^>]*)?\?>`)

// repairXML converts a document to UTF-8 and repairs its elements.
func repairXML(body []byte) []byte {
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	if m := declaration.FindSubmatchIndex(body); m != nil {
		label := ""
		if m[2] >= 0 {
			label = string(body[m[2]:m[3]])
		}
		body = toUTF8(body[m[1]:], label)
	}
	r := repairer{body: body}
	for at := 0; at >= 0; {
		at = r.next(at)
	}
	if r.repaired == nil {
		return body
	}
	return append(r.repaired, body[r.done:]...)
}

// toUTF8 converts a text from the encoding with this label. Unknown encodings count as UTF-8.
func toUTF8(text []byte, label string) []byte {
	if label == "" || strings.EqualFold(label, "utf-8") {
		return text
	}
	encoding, err := htmlindex.Get(label)
	if err != nil {
		return text
	}
	converted, err := encoding.NewDecoder().Bytes(text)
	if err != nil {
		return text
	}
	return converted
}

// A kind is the type of the text in an element or header.
type kind int

const (
	text  kind = iota
	token      // text without white space
	number
	boolean
	date
)

// kindOf returns the kind that the SDK expects in an element.
func kindOf(element []byte) kind {
	switch string(element) {
	case "Size", "KeyCount", "MaxKeys", "MaxParts", "MaxUploads", "PartNumber":
		return number
	case "ETag", "UploadId", "VersionId", "Code", "StorageClass", "EncodingType":
		return token
	case "IsTruncated", "IsLatest":
		return boolean
	case "LastModified", "Initiated":
		return date
	}
	return text
}

// repair converts a text to the form that the SDK parses. It returns false if that is impossible.
func (k kind) repair(s string) (string, bool) {
	s = strings.TrimSpace(s)
	switch k {
	case number:
		_, err := strconv.ParseInt(s, 10, 64)
		return s, err == nil
	case boolean:
		value, err := strconv.ParseBool(strings.ToLower(s))
		return strconv.FormatBool(value), err == nil
	case date:
		if _, err := time.Parse(time.RFC3339Nano, s); err == nil && strings.HasSuffix(s, "Z") {
			return s, true
		}
		if at, ok := parseDate(s); ok {
			return at.UTC().Format(time.RFC3339Nano), true
		}
		return "", false
	}
	return s, true
}

// A repairer repairs the numbers, booleans and dates in a document in one pass, and removes the elements that it cannot
// repair. It also splits CommonPrefixes elements with several prefixes, of which the SDK would read only the last one.
type repairer struct {
	body     []byte
	repaired []byte // nil until something is replaced
	done     int    // body[:done] has been copied to repaired
	common   bool   // in a CommonPrefixes element
	prefixed bool   // after the first prefix in that element
}

// next repairs the first element that begins at or after the offset. It returns the offset from which to go on, or -1
// at the end.
func (r *repairer) next(at int) int {
	open := bytes.IndexByte(r.body[at:], '<')
	if open < 0 {
		return -1
	}
	begin := at + open
	length := bytes.IndexByte(r.body[begin:], '>')
	if length < 0 {
		return -1
	}
	end := begin + length + 1
	tag := r.body[begin+1 : end-1]
	switch string(tag) {
	case "CommonPrefixes", "/CommonPrefixes":
		r.common, r.prefixed = tag[0] != '/', false
	case "Prefix":
		if r.common && r.prefixed {
			r.replace(begin, begin, "</CommonPrefixes><CommonPrefixes>")
		}
		r.prefixed = true
	}
	name, empty := bytes.CutSuffix(tag, []byte("/"))
	name, _, _ = bytes.Cut(name, []byte(" "))
	k := kindOf(name[bytes.IndexByte(name, ':')+1:])
	switch {
	case k == text:
		return end
	case empty:
		r.replace(begin, end, "")
		return end
	}
	value, rest, _ := bytes.Cut(r.body[end:], []byte("</"))
	if bytes.IndexByte(value, '<') >= 0 || !bytes.HasPrefix(rest, name) || !bytes.HasPrefix(rest[len(name):], []byte(">")) {
		return end // the element contains other elements
	}
	was := string(value)
	after := end + len(value) + len("</") + len(name) + len(">")
	switch now, ok := k.repair(was); {
	case !ok:
		r.replace(begin, after, "")
	case now != was:
		r.replace(end, end+len(value), now)
	}
	return after
}

// replace replaces body[begin:end].
func (r *repairer) replace(begin, end int, with string) {
	r.repaired = append(append(r.repaired, r.body[r.done:begin]...), with...)
	r.done = end
}

// dateLayouts returns the layouts of dates besides the HTTP ones: XML dates without a zone or with other zones, and
// others.
func dateLayouts() []string {
	return []string{
		time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04:05.999999999Z0700",
		"2006-01-02 15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999 -0700",
		"20060102T150405Z", time.RFC1123Z, "Mon, _2 Jan 2006 15:04:05 -0700", "Mon, _2 Jan 2006 15:04:05 GMT",
	}
}

// parseDate parses a date in any form that servers have been reported to send: with the zone UTC or GMT, without a
// zone, which means UTC, or as seconds or milliseconds since 1970.
func parseDate(s string) (time.Time, bool) {
	s = strings.Trim(s, " \t\r\n:") // AIStore starts dates with a colon
	if at, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return at, true
	}
	s = strings.Replace(s, "UTC", "GMT", 1)
	if at, err := http.ParseTime(s); err == nil {
		return at, true
	}
	for _, layout := range dateLayouts() {
		if at, err := time.Parse(layout, strings.TrimSuffix(s, " GMT")); err == nil {
			return at, true
		}
		if at, err := time.Parse(layout, s); err == nil {
			return at, true
		}
	}
	if n, err := strconv.ParseFloat(s, 64); err == nil && n > 0 {
		const leastMilliseconds = 1e11 // in seconds, this would be the year 5138
		if n >= leastMilliseconds {
			n /= 1000
		}
		return time.UnixMilli(int64(n * 1000)), true
	}
	return time.Time{}, false
}
