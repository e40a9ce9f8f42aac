package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/report/audit"
	"github.com/babelftp/babelftp/internal/report/sessionlog"
	"github.com/babelftp/babelftp/internal/users/bans"
)

// Root is the path prefix of the API. An incompatible version of the API would get a new one.
const Root = "/api/v1"

// storageTimeout limits the time that a request waits for S3. It is shorter than the timeout of a
// [Client].
const storageTimeout = 20 * time.Second

// Options are the dependencies of a [Handler].
type Options struct {
	Source Source
	Bans   *bans.List
	Debug  *sessionlog.Switch
	Tail   *LogTail
	// Bundle returns the texts of findings. It is called for each request, because a reload may replace the
	// bundle.
	Bundle func() *i18n.Bundle
	Audit  *audit.Log // receives all changes; nil for none
	// Unaudited reports whether changes are refused because the audit log cannot be written; nil for never.
	Unaudited func() bool
	Log       *slog.Logger // also receives all changes
}

// A Handler serves the API below [Root] in JSON. Names are in snake_case, times in the format of RFC 3339,
// and sizes in bytes. An error is an object with the field "error".
type Handler struct {
	Options
	mux    *http.ServeMux
	events events

	reading sync.Mutex // held while Tail is read for findings
}

// NewHandler returns a handler of the API.
func NewHandler(o Options) *Handler {
	h := &Handler{Options: o, mux: http.NewServeMux()}
	h.events.build = h.state
	for pattern, handle := range map[string]func(*http.Request) (any, error){
		"GET /server":    func(*http.Request) (any, error) { return h.Source.Server(), nil },
		"GET /sessions":  func(*http.Request) (any, error) { return bySince(h.Source.Sessions()), nil },
		"GET /transfers": func(*http.Request) (any, error) { return transfersOf(bySince(h.Source.Sessions())), nil },
		"GET /tenants":   func(*http.Request) (any, error) { return h.Source.Tenants(h.Source.Sessions()), nil },
		"GET /users":     func(*http.Request) (any, error) { return h.Source.Users(), nil },
		"GET /audit":     func(*http.Request) (any, error) { return h.Source.Audit(), nil },
		"GET /uploads":   h.uploads,
		"GET /bans":      func(*http.Request) (any, error) { return h.Bans.All(), nil },
		"GET /findings":  h.findings,
		"GET /debug":     func(*http.Request) (any, error) { return h.Debug.Rules(), nil },
	} { // patterns with GET also match HEAD
		h.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { respond(w, r, handle) })
	}
	for pattern, change := range map[string]func(*http.Request, *audit.Action) (any, error){
		"DELETE /sessions/{id}":         h.disconnect,
		"DELETE /uploads/{tenant}/{id}": h.abort,
		"PUT /bans":                     h.ban,
		"DELETE /bans":                  h.unban,
		"PUT /debug":                    h.debug,
		"DELETE /debug":                 h.debugOff,
	} {
		h.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			respond(w, r, func(r *http.Request) (any, error) {
				if h.Unaudited != nil && h.Unaudited() {
					h.log(r, errNotAudited)
					return nil, errNotAudited
				}
				action := &audit.Action{Administrator: administrator(r), Client: remote(r)}
				v, err := change(r, action)
				h.Audit.Write(action, err)
				h.log(r, err) // r.Form has the query and the body that change has parsed
				return v, err
			})
		})
	}
	h.mux.HandleFunc("GET /events", h.events.serve)
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		Fail(w, &Error{http.StatusNotFound, "unknown endpoint " + r.Method + " " + Root + r.URL.Path})
	})
	return h
}

var errNotAudited = &Error{
	http.StatusServiceUnavailable, "the audit log cannot be written, so audit.required refuses changes: see the log",
}

// log logs a change by an administrator, or the error if it failed.
func (h *Handler) log(r *http.Request, err error) {
	log := h.Log.With("administrator", administrator(r), "method", r.Method, "path", Root+r.URL.Path, "form",
		r.Form.Encode(), "remote", remote(r))
	if err != nil {
		log.Info("administrator request failed", "err", err)
		return
	}
	log.Info("administrator request")
}

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	http.StripPrefix(Root, h.mux).ServeHTTP(w, r)
}

// respond sends what handle returns.
func respond(w http.ResponseWriter, r *http.Request, handle func(*http.Request) (any, error)) {
	v, err := handle(r)
	if err != nil {
		Fail(w, err)
		return
	}
	send(w, http.StatusOK, v)
}

// An Error is an error with the HTTP status to respond with.
type Error struct {
	Status int
	Text   string
}

// Error implements error.
func (e *Error) Error() string { return e.Text }

// Fail responds with an error. The status is 500 unless err is an [Error].
func Fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if e, ok := errors.AsType[*Error](err); ok {
		status = e.Status
	}
	send(w, status, map[string]string{"error": err.Error()})
}

// send writes a JSON response. It must not be cached, because the state changes all the time.
func send(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may have disconnected
}

// bySince sorts sessions by their start.
func bySince(sessions []report.SessionInfo) []report.SessionInfo {
	slices.SortFunc(sessions, func(a, b report.SessionInfo) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
	})
	return sessions
}

func transfersOf(sessions []report.SessionInfo) []*report.TransferInfo {
	transfers := []*report.TransferInfo{}
	for _, s := range sessions {
		if s.Transfer != nil {
			transfers = append(transfers, s.Transfer)
		}
	}
	return transfers
}

func (h *Handler) disconnect(r *http.Request, action *audit.Action) (any, error) {
	id := r.PathValue("id")
	action.Event, action.About = "disconnect", []any{"session", id}
	for _, s := range h.Source.Sessions() {
		if s.ID == id && s.User != "" {
			action.About = append(action.About, "tenant", s.Tenant, "user", s.User)
		}
	}
	if !h.Source.Disconnect(id) {
		return nil, &Error{http.StatusNotFound,
			"session " + id + " not found: it may have ended, or belong to another replica"}
	}
	return id, nil
}

func (h *Handler) uploads(r *http.Request) (any, error) {
	ctx, cancel := context.WithTimeout(r.Context(), storageTimeout)
	defer cancel()
	uploads, err := h.Source.Uploads(ctx, r.FormValue("tenant"))
	if err != nil {
		return nil, storageError(err)
	}
	return uploads, nil
}

func (h *Handler) abort(r *http.Request, action *audit.Action) (any, error) {
	ctx, cancel := context.WithTimeout(r.Context(), storageTimeout)
	defer cancel()
	tenant, id := r.PathValue("tenant"), r.PathValue("id")
	action.Event, action.About = "abort_upload", []any{"tenant", tenant, "upload", id}
	if err := h.Source.Abort(ctx, tenant, id); err != nil {
		return nil, storageError(err)
	}
	return id, nil
}

// storageError adds the HTTP status to an error of the storage.
func storageError(err error) error {
	if answer, ok := errors.AsType[*Error](err); ok {
		return answer
	}
	if errors.Is(err, syscall.EBUSY) {
		return &Error{http.StatusConflict, err.Error()}
	}
	return &Error{http.StatusBadGateway, err.Error()}
}

func (h *Handler) ban(r *http.Request, action *audit.Action) (any, error) {
	action.Event, action.About = "ban", []any{"banned", r.FormValue("name")}
	name, err := bans.Parse(r.FormValue("name"))
	var d time.Duration
	if text := r.FormValue("time"); err == nil && text != "" {
		if d, err = time.ParseDuration(text); err == nil && d <= 0 {
			err = fmt.Errorf("invalid time %s: must be longer than 0", text)
		}
	}
	if err != nil {
		return nil, &Error{http.StatusBadRequest, err.Error()}
	}
	b := h.Bans.Add(name, d)
	action.About = []any{"banned", b.Name, "until", b.Until.UTC()}
	return b, nil
}

func (h *Handler) unban(r *http.Request, action *audit.Action) (any, error) {
	action.Event, action.About = "unban", []any{"banned", r.FormValue("name")}
	name, err := bans.Parse(r.FormValue("name"))
	if err != nil {
		return nil, &Error{http.StatusBadRequest, err.Error()}
	}
	if !h.Bans.Remove(name) {
		return nil, &Error{http.StatusNotFound, "no ban of " + name + " on this replica: see babelftp bans list"}
	}
	return name, nil
}

func (h *Handler) debug(r *http.Request, action *audit.Action) (any, error) {
	action.Event = "debug"
	for _, key := range []string{"address", "tenant", "user", "time"} {
		if text := r.FormValue(key); text != "" {
			action.About = append(action.About, "debug_"+key, text)
		}
	}
	d, err := time.ParseDuration(r.FormValue("time"))
	var rule sessionlog.Rule
	if err == nil {
		rule, err = sessionlog.NewRule(r.FormValue("address"), r.FormValue("tenant"), r.FormValue("user"), d)
	}
	if err != nil {
		return nil, &Error{http.StatusBadRequest, err.Error()}
	}
	// The user is not checked, because users of an external directory are not known until they log in.
	if tenants := h.Source.Tenants(nil); rule.Tenant != "" &&
		!slices.ContainsFunc(tenants, func(t Tenant) bool { return t.Name == rule.Tenant }) {
		return nil, errNoTenant(rule.Tenant, tenants)
	}
	h.Debug.Add(rule)
	return rule, nil
}

func (h *Handler) debugOff(_ *http.Request, action *audit.Action) (any, error) {
	action.Event = "debug_off"
	return h.Debug.Clear(), nil
}
