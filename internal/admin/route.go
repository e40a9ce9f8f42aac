package admin

import (
	"encoding/json"
	"net/http"
	"reflect"

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
}

const mediaJSON = "application/json"

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
			respond(w, v, err)
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
				respond(w, v, errNotAudited)
				return
			}
			action := &audit.Action{Event: event, Administrator: administrator(r), Client: remote(r)}
			err := require(r, rt.role)
			if err == nil {
				v, err = change(r, action)
			}
			h.Audit.Write(action, err)
			h.log(r, err) // r.Form has the query and the body that change has parsed
			respond(w, v, err)
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
func respond(w http.ResponseWriter, v any, err error) {
	if err != nil {
		Fail(w, err)
		return
	}
	send(w, http.StatusOK, v)
}

// send writes a JSON response. It must not be cached, because the state changes all the time.
func send(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", mediaJSON)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may have disconnected
}
