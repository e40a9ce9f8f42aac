package kubeapi

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

// maxBody limits the body of a request; the real server has the same limit.
const maxBody = 3 << 20

// A handler serves a store.
type handler struct {
	store *store
	admit func(path string, r Request) bool // nil admits everything
}

// A call is a request that was understood.
type call struct {
	Request
	kind  *kind
	query url.Values
	http  *http.Request
}

func (c *call) key() key { return key{c.kind, c.Namespace, c.Name} }

// ServeHTTP implements [http.Handler].
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, err := h.parse(r)
	if err != nil {
		fail(w, err)
		return
	}
	if h.admit != nil && !h.admit(r.URL.Path, c.Request) {
		fail(w, apierrors.NewForbidden(c.kind.resource(), c.Name, fmt.Errorf("%s is not allowed", c.Verb)))
		return
	}
	switch c.Verb {
	case "watch":
		err = h.watch(w, c)
	case "list":
		err = h.list(w, c)
	case "deletecollection":
		err = h.deleteAll(w, c)
	default:
		err = h.one(w, c)
	}
	if err != nil {
		fail(w, err)
	}
}

// parse finds out what a request wants.
func (h *handler) parse(r *http.Request) (*call, error) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var group, version string
	switch {
	case len(parts) > 2 && parts[0] == "api":
		version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		group, version, parts = parts[1], parts[2], parts[3:]
	default:
		return nil, apierrors.NewNotFound(schema.GroupResource{}, r.URL.Path)
	}
	c := &call{query: r.URL.Query(), http: r}
	if len(parts) > 2 && parts[0] == "namespaces" {
		c.Namespace, parts = parts[1], parts[2:]
	}
	for _, k := range h.store.kinds {
		if k.group == group && k.version == version && k.plural == parts[0] {
			c.kind = k
		}
	}
	if c.kind == nil || len(parts) > 3 {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, r.URL.Path)
	}
	c.Resource = parts[0]
	if len(parts) > 1 {
		c.Name = parts[1]
	}
	if len(parts) > 2 {
		c.Subresource = parts[2]
		if c.Subresource != "status" || !c.kind.custom {
			return nil, apierrors.NewNotFound(c.kind.resource(), c.Name+"/"+c.Subresource)
		}
	}
	one, watching := c.Name != "", c.query.Get("watch") == "true" || c.query.Get("watch") == "1"
	c.Verb = map[string]string{
		"GET": "list", "POST": "create", "DELETE": "deletecollection",
		"GET one": "get", "PUT one": "update", "PATCH one": "patch", "DELETE one": "delete",
	}[r.Method+map[bool]string{true: " one"}[one]]
	if watching && c.Verb == "list" {
		c.Verb = "watch"
	}
	if c.Verb == "" {
		return nil, apierrors.NewMethodNotSupported(c.kind.resource(), r.Method)
	}
	return c, nil
}

// one handles the verbs for one object.
func (h *handler) one(w http.ResponseWriter, c *call) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, c.http.Body, maxBody))
	if err != nil {
		return apierrors.NewRequestEntityTooLargeError(err.Error())
	}
	if c.http.Header.Get("Content-Type") == runtime.ContentTypeProtobuf {
		if body, err = fromProtobuf(body); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
	}
	var o *object
	code := http.StatusOK
	switch c.Verb {
	case "get":
		o, err = h.store.get(c.key())
	case "create":
		code = http.StatusCreated
		o, err = h.create(c, body)
	case "update":
		o, err = h.update(c, body)
	case "patch":
		o, err = h.patch(c, body)
	case "delete":
		o, err = h.delete(c, body)
	}
	if err != nil {
		return err
	}
	respond(w, code, o.raw)
	return nil
}

// fromProtobuf returns the JSON of an object in the encoding that client-go prefers for the kinds of Kubernetes itself.
func fromProtobuf(body []byte) ([]byte, error) {
	o, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil, err
	}
	return json.Marshal(o)
}

func (h *handler) create(c *call, body []byte) (*object, error) {
	o, err := decode(body)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	meta := metadata(o)
	c.Name, _ = meta["name"].(string)
	if prefix, _ := meta["generateName"].(string); c.Name == "" && prefix != "" {
		c.Name = prefix + strconv.FormatInt(time.Now().UnixNano(), 36)
	}
	if c.Name == "" {
		return nil, apierrors.NewBadRequest("metadata.name is required")
	}
	if namespace, _ := meta["namespace"].(string); namespace != "" && namespace != c.Namespace {
		return nil, apierrors.NewBadRequest("the namespace of the object does not match the namespace of the request")
	}
	return h.store.put(c.key(), func(old map[string]any) (map[string]any, error) {
		if old != nil {
			return nil, apierrors.NewAlreadyExists(c.kind.resource(), c.Name)
		}
		return c.merged(nil, o), nil
	})
}

func (h *handler) update(c *call, body []byte) (*object, error) {
	o, err := decode(body)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return h.store.put(c.key(), func(old map[string]any) (map[string]any, error) {
		if old == nil {
			return nil, apierrors.NewNotFound(c.kind.resource(), c.Name)
		}
		return c.merged(old, o), nil
	})
}

// merged returns what a write may change: of custom resources either everything except the status, or only the status.
// It names the writer as a field manager.
func (c *call) merged(old, next map[string]any) map[string]any {
	if c.kind.custom && c.Subresource == "" {
		delete(next, "status")
		if status, has := old["status"]; has {
			next["status"] = status
		}
	}
	if c.Subresource == "status" {
		status, has := next["status"]
		version := metadata(next)["resourceVersion"]
		uid := metadata(next)["uid"]
		next = old
		delete(next, "status")
		if has {
			next["status"] = status
		}
		metadata(next)["resourceVersion"], metadata(next)["uid"] = version, uid
	}
	manager := c.query.Get("fieldManager")
	if manager == "" {
		manager, _, _ = strings.Cut(c.http.UserAgent(), "/")
	}
	metadata(next)["managedFields"] = []any{map[string]any{"manager": manager, "operation": "Update"}}
	return next
}

func (h *handler) delete(c *call, body []byte) (*object, error) {
	var options metav1.DeleteOptions
	if len(body) > 0 {
		if err := json.Unmarshal(body, &options); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	return h.store.delete(c.key(), func(o *object) error {
		if options.Preconditions == nil {
			return nil
		}
		meta := metadata(o.decode())
		uid, version := options.Preconditions.UID, options.Preconditions.ResourceVersion
		if uid != nil && string(*uid) != meta["uid"] || version != nil && *version != meta["resourceVersion"] {
			return apierrors.NewConflict(c.kind.resource(), c.Name, errors.New("precondition failed"))
		}
		return nil
	})
}

func (h *handler) deleteAll(w http.ResponseWriter, c *call) error {
	sel, err := c.selection()
	if err != nil {
		return err
	}
	objects, _ := h.store.list(sel, "")
	for _, o := range objects {
		_, err := h.store.delete(o.key, func(*object) error { return nil })
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	respond(w, http.StatusOK, []byte(`{"kind":"Status","apiVersion":"v1","status":"Success"}`))
	return nil
}

// selection returns the objects that a list or watch asks for.
func (c *call) selection() (*selection, error) {
	byLabel, err := labels.Parse(c.query.Get("labelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(c.query.Get("fieldSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return &selection{c.kind, c.Namespace, byLabel, byField}, nil
}

// A position is the content of a continue token.
type position struct {
	Version int64
	After   string
}

// list sends the selected objects. The pages of a list have one version, but later pages show later changes too.
func (h *handler) list(w http.ResponseWriter, c *call) error {
	sel, err := c.selection()
	if err != nil {
		return err
	}
	var from position
	if token := c.query.Get("continue"); token != "" {
		raw, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil || json.Unmarshal(raw, &from) != nil {
			return apierrors.NewBadRequest("invalid continue token")
		}
		if err := h.store.expired(from.Version); err != nil {
			return err
		}
	}
	objects, version := h.store.list(sel, from.After)
	if from.Version != 0 {
		version = from.Version
	}
	meta := metav1.ListMeta{ResourceVersion: strconv.FormatInt(version, 10)}
	if limit, err := strconv.Atoi(c.query.Get("limit")); err == nil && limit > 0 && len(objects) > limit {
		left := int64(len(objects) - limit)
		objects = objects[:limit]
		token, err := json.Marshal(position{version, objects[limit-1].path()})
		if err != nil {
			return err
		}
		meta.Continue, meta.RemainingItemCount = base64.RawURLEncoding.EncodeToString(token), &left
	}
	items := make([]json.RawMessage, len(objects))
	for i, o := range objects {
		items[i] = o.raw
	}
	raw, err := json.Marshal(map[string]any{
		"kind": c.kind.name + "List", "apiVersion": c.kind.apiVersion(), "metadata": meta, "items": items,
	})
	if err != nil {
		return err
	}
	respond(w, http.StatusOK, raw)
	return nil
}

// watch sends the initial objects if the client wants them, and changes until the client or the timeout ends it.
func (h *handler) watch(w http.ResponseWriter, c *call) error {
	sel, err := c.selection()
	if err != nil {
		return err
	}
	h.store.mu.Lock()
	ended := h.store.ended
	h.store.mu.Unlock()
	stream := &stream{w: w, out: http.NewResponseController(w), kind: c.kind}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	initial := c.query.Get("sendInitialEvents") == "true"
	from, err := strconv.ParseInt("0"+c.query.Get("resourceVersion"), 10, 64)
	switch {
	case err != nil:
		return stream.fail(apierrors.NewBadRequest("invalid resourceVersion"))
	case initial || from == 0:
		objects, version := h.store.list(sel, "")
		for _, o := range objects {
			stream.send(watch.Added, o.raw)
		}
		if initial && c.query.Get("allowWatchBookmarks") == "true" {
			stream.bookmark(version)
		}
		from = version
	default:
		if err := h.store.expired(from); err != nil {
			return stream.fail(err)
		}
	}
	var timeout <-chan time.Time
	if seconds, err := strconv.Atoi(c.query.Get("timeoutSeconds")); err == nil && seconds > 0 {
		timeout = time.After(time.Duration(seconds) * time.Second)
	}
	for stream.flush() {
		changes, version, changed := h.store.since(sel, from)
		if len(changes) > 0 {
			for _, change := range changes {
				stream.send(change.typ, change.object.raw)
			}
			from = version
			continue
		}
		from = version
		select {
		case <-changed:
		case <-ended:
			return nil
		case <-timeout:
			return nil
		case <-c.http.Context().Done():
			return nil
		}
	}
	return nil
}

// A stream sends the events of a watch.
type stream struct {
	w      io.Writer
	out    *http.ResponseController
	kind   *kind
	broken bool
}

func (s *stream) send(typ watch.EventType, raw []byte) {
	_, err := fmt.Fprintf(s.w, `{"type":%q,"object":%s}`+"\n", typ, raw)
	s.broken = s.broken || err != nil
}

// bookmark ends the initial objects.
func (s *stream) bookmark(version int64) {
	s.send(watch.Bookmark, fmt.Appendf(nil,
		`{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d","annotations":{%q:"true"}}}`,
		s.kind.name, s.kind.apiVersion(), version, metav1.InitialEventsAnnotationKey))
}

// fail sends an error as an event: the status of the response was sent before.
func (s *stream) fail(err error) error {
	_, raw := status(err)
	s.send(watch.Error, raw)
	s.flush()
	return nil
}

// flush sends what was written, and reports whether the client may still read.
func (s *stream) flush() bool { return s.out.Flush() == nil && !s.broken }

func respond(w http.ResponseWriter, code int, raw []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(raw)
}

func fail(w http.ResponseWriter, err error) {
	code, raw := status(err)
	respond(w, code, raw)
}

// status returns an error as the API sends it.
func status(err error) (int, []byte) {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	s := known.Status()
	s.Kind, s.APIVersion = "Status", "v1"
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err) // a Status can be encoded
	}
	return int(s.Code), raw
}
