package admin

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/babelftp/babelftp/internal/report/audit"
)

// A route is an endpoint of the API. The OpenAPI document is generated from all routes.
type route struct {
	method, path string
	role         Role // the lowest role that may use it
	summary      string
	query        []parameter
	handling
}

// A parameter is a parameter of the query.
type parameter struct {
	name, meaning string
	required      bool
	schema        map[string]any // JSON Schema of the value; nil for any string
}

// A handling answers the requests of a route.
type handling struct {
	serve    func(h *Handler, w http.ResponseWriter, r *http.Request, rt *route)
	event    string       // the audit event of a change
	response reflect.Type // type of the JSON response; nil for another media type
	media    string       // media type of the response
	status   int          // of a successful response; 0 means 200
	body     reflect.Type // type of the JSON body of the request; nil for none
	accepted []string     // media types of the body
	ifMatch  bool         // the request needs If-Match
}

// Media types.
const (
	mediaJSON       = "application/json"
	mediaMergePatch = "application/merge-patch+json" // RFC 7396
)

// none is the type of responses without content.
type none struct{}

// accepts returns a handling of requests with a body of this type, in one of the media types.
func (h handling) accepts(body any, media ...string) handling {
	h.body, h.accepted = reflect.TypeOf(body), media
	return h
}

// responds returns a handling with another status of successful responses.
func (h handling) responds(status int) handling {
	h.status = status
	return h
}

// conditional returns a handling of requests that need If-Match.
func (h handling) conditional() handling {
	h.ifMatch = true
	return h
}

// A headed response sets headers.
type headed interface {
	setHeaders(header http.Header, status int)
}

// reads returns the handling of requests that change nothing.
func reads[T any](handle func(*http.Request) (T, error)) handling {
	return handling{
		response: reflect.TypeFor[T](), media: mediaJSON,
		serve: func(_ *Handler, w http.ResponseWriter, r *http.Request, rt *route) {
			err := require(r, rt.role)
			var v T
			if err == nil {
				v, err = handle(r)
			}
			rt.respond(w, v, err)
		},
	}
}

// changes returns the handling of requests that change something. Each of them is written to the log and the audit
// log, including refused and failed ones. The function may add keys and values to the action.
func changes[T any](event string, change func(*http.Request, *audit.Action) (T, error)) handling {
	return handling{
		event: event, response: reflect.TypeFor[T](), media: mediaJSON,
		serve: func(h *Handler, w http.ResponseWriter, r *http.Request, rt *route) {
			var v T
			if h.Unaudited != nil && h.Unaudited() {
				h.log(r, errNotAudited)
				rt.respond(w, v, errNotAudited)
				return
			}
			action := &audit.Action{Event: event, Administrator: administrator(r), Client: remote(r)}
			err := require(r, rt.role)
			if err == nil {
				v, err = change(r, action)
			}
			h.Audit.Write(action, err)
			h.log(r, err) // r.Form has the query and the body that change has parsed
			rt.respond(w, v, err)
		},
	}
}

// streams returns the handling of requests whose response is written by serve.
func streams(media string, serve http.HandlerFunc) handling {
	return handling{
		media: media,
		serve: func(_ *Handler, w http.ResponseWriter, r *http.Request, rt *route) {
			if err := require(r, rt.role); err != nil {
				Fail(w, err)
				return
			}
			serve(w, r)
		},
	}
}

// respond sends a value, or an error if there is one.
func (rt *route) respond(w http.ResponseWriter, v any, err error) {
	if err != nil {
		Fail(w, err)
		return
	}
	status := cmp.Or(rt.status, http.StatusOK)
	if of, ok := v.(headed); ok {
		of.setHeaders(w.Header(), status)
	}
	if status == http.StatusNoContent {
		w.WriteHeader(status)
		return
	}
	send(w, status, v)
}

// A Failure is the response to a request that failed.
type Failure struct {
	// What is wrong, and what to do.
	Error string `json:"error"`
	// The invalid fields of the body.
	Fields []FieldError `json:"fields,omitempty"`
}

// A FieldError is an invalid field of a body.
type FieldError struct {
	// Path of the field, such as `settings.quota`.
	Path string `json:"path"`
	// What is wrong with the value, and what to do.
	Error string `json:"error"`
}

// fieldErrors is an error with the status 422.
type fieldErrors struct {
	err    *Error
	fields []FieldError
}

// Error implements error.
func (e *fieldErrors) Error() string { return e.err.Text }

// Unwrap returns the error with the status.
func (e *fieldErrors) Unwrap() error { return e.err }

// newFieldErrors returns an error for invalid fields.
func newFieldErrors(fields []FieldError) error {
	slices.SortFunc(fields, func(a, b FieldError) int { return strings.Compare(a.Path, b.Path) })
	lines := make([]string, len(fields))
	for i, f := range fields {
		lines[i] = f.Path + ": " + f.Error
	}
	return &fieldErrors{&Error{http.StatusUnprocessableEntity, strings.Join(lines, "; ")}, fields}
}

// Fail responds with an error. The status is 500 unless err is an [Error].
func Fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if e, ok := errors.AsType[*Error](err); ok {
		status = e.Status
	}
	failure := Failure{Error: err.Error()}
	if of, ok := errors.AsType[*fieldErrors](err); ok {
		failure.Fields = of.fields
	}
	send(w, status, failure)
}

// send writes a JSON response. It must not be cached, because the state changes all the time.
func send(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", mediaJSON)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may have disconnected
}
