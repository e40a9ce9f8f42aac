// Package kubeapi is an API server of Kubernetes for tests, in the process of the test. It serves the resources that
// babelftp uses over HTTP, to the real client-go: list with pages, watch (with initial events and bookmarks, and 410
// Gone for forgotten versions), get, create, update, patch (merge, JSON, strategic and apply), delete, and the status
// of custom resources.
//
//	api := kubeapi.New(t)
//	api.Apply(`{apiVersion: babelftp.io/v1alpha1, kind: FTPTenant, metadata: {namespace: a, name: acme}, spec: {...}}`)
//	source, err := kubernetes.New(api.Config(), kubernetes.Options{})
//
// Objects are not validated: there are no schemas, and a namespace need not exist. There is no garbage collection, and
// there are no users; [Server.Forbid] refuses paths instead of RBAC. An apply does not report conflicts of field
// managers, and replaces lists as a whole. make kube runs tests on the real API server.
package kubeapi

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/babelftp/babelftp/internal/testkit/kubeserver"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// A Server is an API server. It ends with the test.
type Server struct {
	// Client is an administrator's client. It works also while the server is stopped for others, and when its
	// paths are forbidden.
	*kubeserver.Client

	tb      testing.TB
	address string
	store   *store

	mu        sync.Mutex
	listening *httptest.Server // nil while stopped
	forbidden []string
	requests  []Request
}

// A Request is a request of a client, except the administrator's.
type Request struct {
	Verb        string // get, list, watch, create, update, patch, delete or deletecollection
	Resource    string // plural
	Subresource string
	Namespace   string
	Name        string
}

// New starts a server.
func New(tb testing.TB) *Server {
	tb.Helper()
	s := &Server{tb: tb, address: "127.0.0.1:0", store: newStore()}
	admin := httptest.NewServer(&handler{store: s.store})
	tb.Cleanup(admin.Close)
	s.Client = kubeserver.NewClient(tb, admin.URL, "", "")
	tb.Cleanup(admin.CloseClientConnections)
	s.Start()
	tb.Cleanup(s.Stop)
	return s
}

// Start listens again after Stop, on the same address and with the same objects.
func (s *Server) Start() {
	s.tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listening != nil {
		return
	}
	var config net.ListenConfig
	listener, err := config.Listen(s.tb.Context(), "tcp", s.address)
	must.OK(s.tb, err)
	s.address = listener.Addr().String()
	s.listening = httptest.NewUnstartedServer(&handler{store: s.store, admit: s.admit})
	_ = s.listening.Listener.Close()
	s.listening.Listener = listener
	s.listening.Start()
}

// Stop ends all connections and refuses new ones.
func (s *Server) Stop() {
	s.mu.Lock()
	listening := s.listening
	s.listening = nil
	s.mu.Unlock()
	if listening != nil {
		listening.CloseClientConnections()
		listening.Close()
	}
}

// Config returns the configuration of a client.
func (s *Server) Config() *rest.Config { return &rest.Config{Host: "http://" + s.address} }

// Forbid rejects requests to these paths and everything below with 403, and ends running watches. Each call replaces
// the paths of the previous one.
func (s *Server) Forbid(paths ...string) {
	s.mu.Lock()
	s.forbidden = paths
	s.mu.Unlock()
	s.store.endWatches()
}

// Compact forgets the history, and ends running watches. A watch from an older version gets 410 Gone.
func (s *Server) Compact() {
	s.store.compact()
	s.store.endWatches()
}

// Requests returns the requests with this verb for this resource so far.
func (s *Server) Requests(verb, resource string) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []Request
	for _, r := range s.requests {
		if r.Verb == verb && r.Resource == resource {
			found = append(found, r)
		}
	}
	return found
}

// admit counts a request, and reports whether the client may send it.
func (s *Server) admit(path string, r Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	for _, forbidden := range s.forbidden {
		if rest, below := strings.CutPrefix(path, forbidden); below && (rest == "" || rest[0] == '/') {
			return false
		}
	}
	return true
}

var _ http.Handler = (*handler)(nil)
