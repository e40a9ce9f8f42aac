package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/report/audit"
	"github.com/babelftp/babelftp/internal/report/sessionlog"
	"github.com/babelftp/babelftp/internal/users/bans"
	"github.com/babelftp/babelftp/internal/users/usersfile"
)

// Root is the path prefix of the API. An incompatible version of the API would get a new one.
const Root = "/api/v1"

// storageTimeout limits the time that a request waits for S3. It is shorter than the timeout of a
// [Client].
const storageTimeout = 20 * time.Second

// Options are the dependencies of a [Handler].
type Options struct {
	Source   Source
	Accounts Accounts
	Bans     *bans.List
	Debug    *sessionlog.Switch
	Tail     *LogTail
	// Bundle returns the texts of findings. It is called for each request, because a reload may replace the
	// bundle.
	Bundle func() *i18n.Bundle
	Audit  *audit.Log // receives all changes; nil for none
	// Unaudited reports whether changes are refused because the audit log cannot be written; nil for never.
	Unaudited func() bool
	Log       *slog.Logger // also receives all changes

	Search  *audit.Searcher
	History *Recorder
	// Problems returns the current problems of the replica without findings. Since may be zero.
	Problems func() []Problem
	// Configuration returns the configuration in use without secrets; see [config.Config.Effective].
	Configuration func(tenant string) (text string, ok bool, err error)
	Peers         *Peers // nil for a single replica
}

// A Handler serves the API below [Root] in JSON. Names are in snake_case, times in the format of RFC 3339,
// and sizes in bytes. An error is an object with the field "error".
type Handler struct {
	Options
	mux    *http.ServeMux
	events events
	places placesInUse

	reading sync.Mutex // held while Tail is read for findings

	problems    problemTracker
	logFindings logFindings
	peerStates  peerCache
}

// NewHandler returns a handler of the API.
func NewHandler(o Options) *Handler {
	h := &Handler{Options: o, mux: http.NewServeMux(),
		places: placesInUse{all: map[*config.Tenant]map[string]usersfile.Place{}}}
	h.events.build = h.state
	for _, rt := range h.routes() { // patterns with GET also match HEAD
		h.mux.HandleFunc(rt.method+" "+rt.path, func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			rt.serve(h, w, r, &rt)
		})
	}
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		Fail(w, &Error{http.StatusNotFound, "unknown endpoint " + r.Method + " " + Root + r.URL.Path})
	})
	return h
}

// routes returns all endpoints of the API.
func (h *Handler) routes() []route {
	return slices.Concat(h.stateRoutes(), h.consoleRoutes(), h.controlRoutes(), h.userRoutes())
}

// stateRoutes returns the endpoints that show the state of the replica.
func (h *Handler) stateRoutes() []route {
	sessions := func() []report.SessionInfo { return bySince(h.Source.Sessions()) }
	return []route{
		{http.MethodGet, "/me", Viewer, "Show the login that sends the request", nil,
			reads(func(r *http.Request) (Identity, error) { return identity(r), nil })},
		{http.MethodGet, "/openapi.json", Viewer, "Show this document", nil, streams(mediaJSON, openAPI)},
		{http.MethodGet, "/server", Viewer, "Show the state of the replica", nil,
			reads(func(*http.Request) (Server, error) { return h.Source.Server(), nil })},
		{http.MethodGet, "/sessions", Viewer, "List the sessions of the replica, oldest first", nil,
			reads(func(*http.Request) ([]report.SessionInfo, error) { return sessions(), nil })},
		{http.MethodGet, "/transfers", Viewer, "List the running transfers of the replica", nil,
			reads(func(*http.Request) ([]*report.TransferInfo, error) { return transfersOf(sessions()), nil })},
		{http.MethodGet, "/tenants", Viewer, "List the tenants with their buckets and quotas", nil,
			reads(func(*http.Request) ([]Tenant, error) { return h.Source.Tenants(h.Source.Sessions()), nil })},
		{http.MethodGet, "/uploads", Viewer, "List the incomplete uploads of all replicas",
			[]parameter{{name: "tenant", meaning: "only uploads of this tenant"}}, reads(h.uploads)},
		{http.MethodGet, "/bans", Viewer, "List the bans, sorted by name", nil,
			reads(func(*http.Request) ([]bans.Ban, error) { return h.Bans.All(), nil })},
		{http.MethodGet, "/findings", Viewer, "List the problems that the log shows for clients", []parameter{
			{name: "address", meaning: "address or network of the clients, such as 192.0.2.0/24", required: true},
			{name: "since", meaning: "how old the lines of the log may be, such as 2h", required: true},
			{name: "lang", meaning: "language of the texts, if it differs from Accept-Language"},
		}, reads(h.findings)},
		{http.MethodGet, "/debug", Viewer, "List the debug rules", nil,
			reads(func(*http.Request) ([]sessionlog.Rule, error) { return h.Debug.Rules(), nil })},
		{http.MethodGet, "/events", Viewer, "Stream the state of the replica as server-sent events", nil,
			streams("text/event-stream", h.events.serve)},
	}
}

// controlRoutes returns the endpoints with which operators control the replica.
func (h *Handler) controlRoutes() []route {
	name := parameter{name: "name", required: true,
		meaning: "address, network such as 192.0.2.0/24, or user such as alice@acme"}
	duration := parameter{name: "time", meaning: "duration, such as 10m or 24h",
		schema: map[string]any{"type": "string", "pattern": `^([0-9.]+(ns|us|µs|ms|s|m|h))+$`}}
	needed := duration
	needed.required = true
	return []route{
		{http.MethodDelete, "/sessions/{id}", Operator, "End a session", nil, changes("disconnect", h.disconnect)},
		{http.MethodDelete, "/uploads/{tenant}/{id}", Operator, "Delete an interrupted upload", nil,
			changes("abort_upload", h.abort)},
		{http.MethodPut, "/bans", Operator, "Ban an address, a network or a user", []parameter{name, duration},
			changes("ban", h.ban)},
		{http.MethodDelete, "/bans", Operator, "Lift a ban", []parameter{name}, changes("unban", h.unban)},
		{http.MethodPut, "/debug", Operator, "Log the commands and replies of some sessions for a while", []parameter{
			{name: "address", meaning: "address or network of the clients"},
			{name: "tenant", meaning: "tenant of the users"}, {name: "user", meaning: "name of the user"}, needed,
		}, changes("debug", h.debug)},
		{http.MethodDelete, "/debug", Operator, "Remove all debug rules", nil, changes("debug_off", h.debugOff)},
	}
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

// An Error is an error with the HTTP status to respond with.
type Error struct {
	Status int
	Text   string
}

// Error implements error.
func (e *Error) Error() string { return e.Text }

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

func (h *Handler) disconnect(r *http.Request, action *audit.Action) (string, error) {
	id := r.PathValue("id")
	action.About = []any{"session", id}
	d, err := h.disconnectAnywhere(r.Context(), id)
	if err != nil {
		return "", err
	}
	if d.User != "" {
		action.About = append(action.About, "tenant", d.Tenant, "user", d.User)
	}
	return id, nil
}

func (h *Handler) uploads(r *http.Request) (*Uploads, error) {
	ctx, cancel := context.WithTimeout(r.Context(), storageTimeout)
	defer cancel()
	uploads, err := h.Source.Uploads(ctx, r.FormValue("tenant"))
	if err != nil {
		return nil, storageError(err)
	}
	return uploads, nil
}

func (h *Handler) abort(r *http.Request, action *audit.Action) (string, error) {
	ctx, cancel := context.WithTimeout(r.Context(), storageTimeout)
	defer cancel()
	tenant, id := r.PathValue("tenant"), r.PathValue("id")
	action.About = []any{"tenant", tenant, "upload", id}
	if err := h.Source.Abort(ctx, tenant, id); err != nil {
		return "", storageError(err)
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

func (h *Handler) ban(r *http.Request, action *audit.Action) (bans.Ban, error) {
	action.About = []any{"banned", r.FormValue("name")}
	name, err := bans.Parse(r.FormValue("name"))
	var d time.Duration
	if text := r.FormValue("time"); err == nil && text != "" {
		if d, err = time.ParseDuration(text); err == nil && d <= 0 {
			err = fmt.Errorf("invalid time %s: must be longer than 0", text)
		}
	}
	if err != nil {
		return bans.Ban{}, &Error{http.StatusBadRequest, err.Error()}
	}
	b := h.Bans.Add(name, d)
	action.About = []any{"banned", b.Name, "until", b.Until.UTC()}
	return b, nil
}

func (h *Handler) unban(r *http.Request, action *audit.Action) (string, error) {
	action.About = []any{"banned", r.FormValue("name")}
	name, err := bans.Parse(r.FormValue("name"))
	if err != nil {
		return "", &Error{http.StatusBadRequest, err.Error()}
	}
	if !h.Bans.Remove(name) {
		return "", &Error{http.StatusNotFound, "no ban of " + name + " on this replica: see babelftp bans list"}
	}
	return name, nil
}

func (h *Handler) debug(r *http.Request, action *audit.Action) (sessionlog.Rule, error) {
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
		return rule, &Error{http.StatusBadRequest, err.Error()}
	}
	// The user is not checked, because users of an external directory are not known until they log in.
	if tenants := h.Source.Tenants(nil); rule.Tenant != "" &&
		!slices.ContainsFunc(tenants, func(t Tenant) bool { return t.Name == rule.Tenant }) {
		return rule, errNoTenant(rule.Tenant, tenants)
	}
	h.Debug.Add(rule)
	h.tellReplicas(r.Context(), http.MethodPut, "/debug", rule)
	return rule, nil
}

func (h *Handler) debugOff(r *http.Request, _ *audit.Action) ([]sessionlog.Rule, error) {
	h.tellReplicas(r.Context(), http.MethodDelete, "/debug", nil)
	return h.Debug.Clear(), nil
}
