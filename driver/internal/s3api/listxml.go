package s3api

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// A listDecoder decodes the objects in a ListObjectsV2 response instead of the SDK. For a thousand objects the SDK
// takes several times as long as all other work on a page. The decoder cuts the Contents elements out of the response,
// lets the SDK decode the rest, and adds the objects afterwards. It reads only the fields that a Version needs, and it
// handles only the form in which servers usually write these elements. It passes any other response to the SDK
// unchanged.
//
// It also reads the continuation token of the next page. Ceph's token is the last key of the page without encoding, and
// may contain characters that XML does not allow.
type listDecoder struct {
	objects []types.Object
	token   *string
	isList  bool // the document is a listing, possibly an empty one
}

// install is a request option. It must be used for one request only.
func (d *listDecoder) install(o *s3.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		const decoder = "OperationDeserializer" // the SDK's
		err := stack.Deserialize.Insert(
			middleware.DeserializeMiddlewareFunc("CutContents", d.cutContents), decoder, middleware.After)
		if err != nil {
			return err
		}
		return stack.Deserialize.Insert(
			middleware.DeserializeMiddlewareFunc("AddContents", d.addContents), decoder, middleware.Before)
	})
}

// hasToken reports whether the decoder has read the token of the next page from the response. Otherwise the token comes
// from the SDK.
func (d *listDecoder) hasToken() bool { return d.token != nil }

// cutContents runs before the SDK's decoder and cuts the objects out of the response.
func (d *listDecoder) cutContents(
	ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler,
) (middleware.DeserializeOutput, middleware.Metadata, error) {
	*d = listDecoder{} // discard the result of the previous attempt
	out, metadata, err := next.HandleDeserialize(ctx, in)
	response, ok := out.RawResponse.(*smithyhttp.Response)
	if err != nil || !ok || response.StatusCode >= http.StatusMultipleChoices {
		return out, metadata, err
	}
	return out, metadata, replaceBody(response, func(body []byte) []byte {
		d.isList = bytes.Contains(body, []byte("<ListBucketResult"))
		objects, rest, ok := cutObjects(body)
		if ok {
			d.objects, d.token, body = objects, cutToken(rest), rest
		}
		return body
	})
}

// replaceBody reads the body of a response and replaces it by the result of change, without illegal characters, before
// the SDK decodes it.
func replaceBody(response *smithyhttp.Response, change func(body []byte) []byte) error {
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return &smithy.DeserializationError{Err: err}
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{bytes.NewReader(replaceIllegal(change(body))), response.Body}
	return nil
}

// replaceIllegal replaces characters that XML does not allow by U+FFFD, even if they are written as character
// references, so that the SDK can decode the rest of the response. Ceph, for example, repeats the prefix of a listing
// without encoding, even if the request asks for percent-encoding.
func replaceIllegal(body []byte) []byte {
	if utf8.Valid(body) && !bytes.ContainsFunc(body, isIllegal) && !bytes.Contains(body, []byte("&#")) {
		return body
	}
	body = bytes.Map(func(r rune) rune {
		if isIllegal(r) {
			return utf8.RuneError
		}
		return r
	}, body)
	made := make([]byte, 0, len(body))
	for {
		before, after, found := bytes.Cut(body, []byte("&#"))
		made = append(made, before...)
		if !found {
			return made
		}
		number, after, _ := bytes.Cut(after, []byte(";"))
		if code, ok := parseReference("#" + string(number)); ok && isIllegal(code) {
			made = utf8.AppendRune(made, utf8.RuneError)
		} else {
			made = append(append(append(made, "&#"...), number...), ';')
		}
		body = after
	}
}

// parseReference returns the character of a reference like #x2F or #47 (XML 1.0, section 4.1). The character may be one
// that XML does not allow.
func parseReference(name string) (rune, bool) {
	digits, ok := strings.CutPrefix(name, "#")
	if !ok {
		return 0, false
	}
	base := 10
	if hex, ok := strings.CutPrefix(digits, "x"); ok {
		digits, base = hex, 16
	}
	code, err := strconv.ParseUint(digits, base, 31)
	return rune(code), err == nil
}

// isIllegal reports whether XML 1.0 does not allow a character (section 2.2).
func isIllegal(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r >= 0xD800 && r < 0xE000 || r == 0xFFFE || r == 0xFFFF ||
		r > utf8.MaxRune
}

// addContents runs after the SDK's decoder and adds the objects to its result.
func (d *listDecoder) addContents(
	ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler,
) (middleware.DeserializeOutput, middleware.Metadata, error) {
	out, metadata, err := next.HandleDeserialize(ctx, in)
	if list, ok := out.Result.(*s3.ListObjectsV2Output); ok && err == nil && d.objects != nil {
		list.Contents = d.objects
		if d.token != nil {
			list.NextContinuationToken = d.token
		}
	}
	return out, metadata, err
}

// cutToken returns the continuation token in a response, or nil if there is not exactly one.
func cutToken(response []byte) *string {
	const begin, end = "<NextContinuationToken>", "</NextContinuationToken>"
	_, after, found := bytes.Cut(response, []byte(begin))
	element, _, ended := bytes.Cut(after, []byte(end))
	token, ok := parseText(element)
	if !found || !ended || !ok || bytes.Contains(after, []byte(begin)) {
		return nil
	}
	return &token
}

// cutObjects returns the objects in a response and the rest of the response. It returns false if the response is not
// written in the usual form: comments, for example, may hide elements, or look like elements.
func cutObjects(body []byte) (objects []types.Object, rest []byte, ok bool) {
	const begin, end = "<Contents>", "</Contents>"
	if !utf8.Valid(body) || bytes.Contains(body, []byte("<!")) {
		return nil, nil, false
	}
	rest = make([]byte, 0, 1<<10)
	objects = make([]types.Object, 0, bytes.Count(body, []byte(begin)))
	depth := 0
	for {
		before, after, found := bytes.Cut(body, []byte(begin))
		rest = append(rest, before...)
		depth += unclosed(before)
		if !found {
			return objects, rest, !bytes.Contains(bytes.ToLower(rest), []byte("contents"))
		}
		element, after, found := bytes.Cut(after, []byte(end))
		object, ok := parseObject(element)
		if !found || !ok || depth != 1 {
			return nil, nil, false
		}
		objects = append(objects, object)
		body = after
	}
}

// unclosed returns the number of elements that begin in a text and do not end in it.
func unclosed(text []byte) int {
	n := 0
	for {
		_, tag, found := bytes.Cut(text, []byte("<"))
		if !found {
			return n
		}
		tag, text, _ = bytes.Cut(tag, []byte(">"))
		switch {
		case bytes.HasPrefix(tag, []byte("/")):
			n--
		case !bytes.HasPrefix(tag, []byte("?")) && !bytes.HasSuffix(tag, []byte("/")):
			n++
		}
	}
}

// parseObject parses the content of a Contents element: a sequence of elements without attributes and without text
// between them.
func parseObject(elements []byte) (o types.Object, ok bool) {
	for len(elements) > 0 {
		name, after, ok := bytes.Cut(elements, []byte(">"))
		if !ok || len(name) < 2 || name[0] != '<' || !isName(name[1:]) {
			return o, false
		}
		name = name[1:]
		text, after, ok := bytes.Cut(after, []byte("</"+string(name)+">"))
		if !ok || !parseInto(&o, string(name), text) {
			return o, false
		}
		elements = after
	}
	return o, true
}

// parseInto parses one child of a Contents element. Children that the driver does not use may contain other elements,
// but none with the same name.
func parseInto(o *types.Object, name string, element []byte) bool {
	switch name {
	case "Key", "ETag", "StorageClass":
		text, ok := parseText(element)
		switch name {
		case "Key":
			o.Key = &text
		case "ETag":
			o.ETag = &text
		default:
			o.StorageClass = types.ObjectStorageClass(text)
		}
		return ok
	case "Size":
		size, err := strconv.ParseInt(string(element), 10, 64)
		o.Size = &size
		return err == nil
	case "LastModified":
		modified, err := time.Parse(time.RFC3339Nano, string(element))
		o.LastModified = &modified
		return err == nil
	}
	return !bytes.Contains(element, []byte("<"+name))
}

func isName(text []byte) bool {
	return !bytes.ContainsFunc(text, func(c rune) bool {
		return (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9')
	})
}

// parseText decodes character data that has only the predefined entities and character references.
func parseText(text []byte) (string, bool) {
	if bytes.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == '<' }) {
		return "", false
	}
	if bytes.IndexByte(text, '&') < 0 {
		return string(text), true
	}
	var plain strings.Builder
	for {
		before, after, found := bytes.Cut(text, []byte("&"))
		plain.Write(before)
		if !found {
			return plain.String(), true
		}
		name, after, _ := bytes.Cut(after, []byte(";"))
		switch string(name) {
		case "quot":
			plain.WriteByte('"')
		case "apos":
			plain.WriteByte('\'')
		case "amp":
			plain.WriteByte('&')
		case "lt":
			plain.WriteByte('<')
		case "gt":
			plain.WriteByte('>')
		default:
			code, ok := parseReference(string(name))
			if !ok {
				return "", false
			}
			plain.WriteRune(code)
		}
		text = after
	}
}
