package admin

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/base/web"
	"github.com/babelftp/babelftp/internal/report/audit"
	"github.com/babelftp/babelftp/internal/report/sessionlog"
)

// A Replica is a replica of the server, as it was seen a few seconds ago.
type Replica struct {
	Replica int           `json:"replica"`
	Self    bool          `json:"self"` // the replica that sends the response
	Version string        `json:"version"`
	Up      bool          `json:"up"`
	Reason  string        `json:"reason"`           // why the replica could not be asked
	Server  *Server       `json:"server,omitempty"` // nil unless Up
	Totals  ReplicaTotals `json:"totals"`

	history  *History
	problems []Problem
	since    time.Time // when it was asked successfully the last time
}

// ReplicaTotals are numbers of a replica.
type ReplicaTotals struct {
	Sessions  int `json:"sessions"`
	Transfers int `json:"transfers"`
	Bans      int `json:"bans"`
	Problems  int `json:"problems"`
}

// peerState is the state that a replica sends to another one.
type peerState struct {
	Server   Server        `json:"server"`
	Totals   ReplicaTotals `json:"totals"`
	History  *History      `json:"history"`
	Problems []Problem     `json:"problems"`
}

// peerSearch is a search that a replica does for another one.
type peerSearch struct {
	Query  audit.Query `json:"query"`
	Cursor string      `json:"cursor"`
}

const (
	// peerAge is the time for which the state of a replica is cached.
	peerAge = 3 * time.Second
	// peerTimeout limits the wait for the state of a replica.
	peerTimeout = 4 * time.Second
	// maxPeerProblems limits the problems that a replica tells another one.
	maxPeerProblems = 200
	// maxPeerResponse limits the bytes of a response of another replica.
	maxPeerResponse = 16 << 20
)

// Peers asks the other replicas. Requests go over TLS through relay connections. Each side proves that it knows the
// same secret from the configuration: both use the same key pair, which is derived from it.
type Peers struct {
	number, count int
	dial          func(ctx context.Context, replica int) (net.Conn, error)
	secret        func() ([]byte, error)
	log           *slog.Logger

	server  *web.Server
	accept  chan net.Conn
	closed  chan struct{}
	closing sync.Once
}

// PeerOptions are the dependencies of [Peers]. All are required.
type PeerOptions struct {
	Number, Count int // number of this replica, and of all replicas
	// Dial connects to another replica, which passes the connection to Serve.
	Dial func(ctx context.Context, replica int) (net.Conn, error)
	// Secret returns a secret that all replicas have in their configuration, or an error that says what to configure.
	Secret func() ([]byte, error)
	Log    *slog.Logger
}

// NewPeers returns the peers of a replica.
func NewPeers(o PeerOptions) *Peers {
	return &Peers{
		number: o.Number, count: o.Count, dial: o.Dial, secret: o.Secret, log: o.Log,
		accept: make(chan net.Conn), closed: make(chan struct{}),
	}
}

// Start handles the requests of other replicas until Stop.
func (p *Peers) Start(h *Handler) {
	if p == nil {
		return
	}
	p.server = web.NewServer(h.peerHandler(), web.Options{Log: p.log, Wrap: p.wrap})
	panics.Go(func() { _ = p.server.Serve((*peerListener)(p)) }) // ends with Stop
}

// Serve handles the requests on a connection of another replica, without waiting for them.
func (p *Peers) Serve(conn net.Conn) {
	select {
	case p.accept <- conn:
	case <-p.closed:
		_ = conn.Close()
	}
}

// Stop ends all connections.
func (p *Peers) Stop() {
	if p == nil {
		return
	}
	_ = (*peerListener)(p).Close()
	if p.server != nil {
		_ = p.server.Close()
	}
}

// A peerListener has the connections of other replicas, for the HTTP server.
type peerListener Peers

// Accept implements [net.Listener].
func (l *peerListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.accept:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Addr implements [net.Listener].
func (l *peerListener) Addr() net.Addr { return &net.TCPAddr{} }

// Close implements [net.Listener].
func (l *peerListener) Close() error {
	l.closing.Do(func() { close(l.closed) })
	return nil
}

// wrap returns the TLS connection on a connection of another replica.
func (p *Peers) wrap(conn net.Conn) net.Conn {
	cfg, err := p.encryption()
	if err != nil {
		_ = conn.Close()
		return conn
	}
	return tls.Server(conn, cfg)
}

// peerName is the name in the certificates of replicas.
const peerName = "replica.babelftp.internal"

// errOtherSecret reports that a replica has another secret.
var errOtherSecret = errors.New("the replicas have different secrets: use the same state.keys or admin.users on all")

// encryption returns the configuration of TLS for both sides. Each side accepts only its own public key.
func (p *Peers) encryption() (*tls.Config, error) {
	secret, err := p.secret()
	if err != nil {
		return nil, err
	}
	seed, err := hkdf.Key(sha256.New, secret, nil, "babelftp replicas 1", ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	key := ed25519.NewKeyFromSeed(seed)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{peerName},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<32, 0),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}},
		MinVersion:   tls.VersionTLS13, ServerName: peerName, SessionTicketsDisabled: true,
		ClientAuth:         tls.RequireAnyClientCert,
		InsecureSkipVerify: true, // VerifyConnection compares the key, which no other certificate has
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 1 && key.Public().(ed25519.PublicKey).Equal(s.PeerCertificates[0].PublicKey) {
				return nil
			}
			return errOtherSecret
		},
	}, nil
}

// Do sends a request to another replica, and decodes the response. An error of the other replica is an [Error].
func (p *Peers) Do(ctx context.Context, replica int, method, path string, body, into any) error {
	cfg, err := p.encryption()
	if err != nil {
		return err
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := p.dial(ctx, replica)
		if err != nil {
			return nil, err
		}
		encrypted := tls.Client(conn, cfg)
		if err := encrypted.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return encrypted, nil
	}
	client := web.NewClient(&http.Transport{DialTLSContext: dial, DisableKeepAlives: true}, requestTimeout)
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, "https://"+peerName+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("replica %d does not respond: %w", replica, web.WithoutURL(err))
	}
	defer response.Body.Close()
	in := json.NewDecoder(io.LimitReader(response.Body, maxPeerResponse))
	if response.StatusCode != http.StatusOK {
		var failed struct {
			Error string `json:"error"`
		}
		_ = in.Decode(&failed)
		return &Error{response.StatusCode, cmp.Or(failed.Error, response.Status)}
	}
	if err := in.Decode(into); err != nil {
		return fmt.Errorf("invalid response of replica %d, which may run another version: %w", replica, err)
	}
	return nil
}

// peerHandler returns the handler of the requests of other replicas.
func (h *Handler) peerHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /state", func(w http.ResponseWriter, _ *http.Request) { sendResult(w, h.ownState(), nil) })
	mux.HandleFunc("GET /usage", func(w http.ResponseWriter, _ *http.Request) { sendResult(w, h.ownUsage(), nil) })
	mux.HandleFunc("POST /search", func(w http.ResponseWriter, r *http.Request) {
		var search peerSearch
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&search); err != nil {
			Fail(w, &Error{http.StatusBadRequest, err.Error()})
			return
		}
		v, err := h.searchReplica(r.Context(), h.self(), search.Query, search.Cursor)
		sendResult(w, v, err)
	})
	mux.HandleFunc("PUT /debug", func(w http.ResponseWriter, r *http.Request) {
		var rule sessionlog.Rule
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&rule)
		if err == nil {
			h.Debug.Add(rule)
		}
		sendResult(w, rule, err)
	})
	mux.HandleFunc("DELETE /debug", func(w http.ResponseWriter, _ *http.Request) {
		sendResult(w, h.Debug.Clear(), nil)
	})
	mux.HandleFunc("DELETE /sessions/{id}", func(w http.ResponseWriter, r *http.Request) {
		v, err := h.disconnectOwn(r.PathValue("id"))
		sendResult(w, v, err)
	})
	return mux
}

// sendResult sends a value, or an error if there is one.
func sendResult(w http.ResponseWriter, v any, err error) {
	if err != nil {
		Fail(w, err)
		return
	}
	send(w, http.StatusOK, v)
}

// self returns the number of this replica.
func (h *Handler) self() int {
	if h.Peers == nil {
		return 0
	}
	return h.Peers.number
}

// replicas returns the numbers of all replicas.
func (h *Handler) replicas() []int {
	if h.Peers == nil {
		return []int{0}
	}
	numbers := make([]int, h.Peers.count)
	for n := range numbers {
		numbers[n] = n
	}
	return numbers
}

// ownState returns the state of this replica.
func (h *Handler) ownState() *peerState {
	sessions := h.Source.Sessions()
	problems := h.ownProblems()
	s := &peerState{
		Server: h.Source.Server(), History: h.History.History(),
		Problems: problems[:min(len(problems), maxPeerProblems)],
	}
	s.Totals = ReplicaTotals{
		Sessions: len(sessions), Transfers: len(transfersOf(sessions)), Bans: len(h.Bans.All()),
		Problems: len(problems),
	}
	return s
}

// A peerCache has the last known state of the other replicas.
type peerCache struct {
	mu      sync.Mutex
	at      time.Time
	all     map[int]Replica
	running chan struct{} // closed when the running requests have ended; nil without them
}

// otherReplicas returns the other replicas, sorted by number. It asks them again if their state is older than peerAge,
// and waits for that only if it is twice as old, so that replicas that do not respond delay few requests.
func (h *Handler) otherReplicas(ctx context.Context) []Replica {
	if h.Peers == nil {
		return nil
	}
	c := &h.peerStates
	c.mu.Lock()
	age := time.Since(c.at)
	if age > peerAge && c.running == nil {
		c.running = make(chan struct{})
		ctx := context.WithoutCancel(ctx)
		panics.Go(func() { h.askReplicas(ctx) })
	}
	running := c.running
	c.mu.Unlock()
	if running != nil && age > 2*peerAge {
		select {
		case <-running:
		case <-ctx.Done():
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Values(c.all), func(a, b Replica) int { return a.Replica - b.Replica })
}

// askReplicas asks all other replicas for their state.
func (h *Handler) askReplicas(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	c := &h.peerStates
	now := time.Now()
	var mu sync.Mutex
	var asking sync.WaitGroup
	found := map[int]Replica{}
	for _, n := range h.replicas() {
		if n == h.self() {
			continue
		}
		asking.Go(func() {
			s := &peerState{}
			err := panics.Catch(func() error { return h.Peers.Do(ctx, n, http.MethodGet, "/state", nil, s) })
			r := Replica{
				Replica: n, Up: true, Version: s.Server.Version, Server: &s.Server, Totals: s.Totals,
				history: s.History, problems: s.Problems, since: now.UTC(),
			}
			if err == nil && s.History == nil {
				err = fmt.Errorf("invalid response of replica %d, which may run another version", n)
			}
			mu.Lock()
			defer mu.Unlock()
			if found[n] = r; err != nil {
				found[n] = Replica{Replica: n, Reason: err.Error(), since: c.all[n].since}
			}
		})
	}
	asking.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.all = now, found
	close(c.running)
	c.running = nil
}

// listReplicas returns all replicas, sorted by number.
func (h *Handler) listReplicas(r *http.Request) ([]Replica, error) {
	s := h.ownState()
	all := append([]Replica{{
		Replica: h.self(), Self: true, Up: true, Version: s.Server.Version, Server: &s.Server, Totals: s.Totals,
	}}, h.otherReplicas(r.Context())...)
	slices.SortFunc(all, func(a, b Replica) int { return a.Replica - b.Replica })
	return all, nil
}

// listHistory returns the sum of the histories of all replicas that respond.
func (h *Handler) listHistory(r *http.Request) (*History, error) {
	sum := h.History.History()
	for _, other := range h.otherReplicas(r.Context()) {
		if other.history != nil {
			sum.add(other.history)
		}
	}
	return sum, nil
}

// tellReplicas sends a request to all other replicas, and logs which of them do not respond.
func (h *Handler) tellReplicas(ctx context.Context, method, path string, body any) {
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	var telling sync.WaitGroup
	for _, n := range h.replicas() {
		if n == h.self() {
			continue
		}
		telling.Go(func() {
			err := panics.Catch(func() error { return h.Peers.Do(ctx, n, method, path, body, new(json.RawMessage)) })
			if err != nil {
				h.Log.Warn("request not passed on to a replica", "replica", n, "method", method, "path", path, "err", err)
			}
		})
	}
	telling.Wait()
}

// A disconnected is a session that was ended.
type disconnected struct {
	Session string `json:"session"`
	Tenant  string `json:"tenant"`
	User    string `json:"user"` // empty before the login
}

// disconnectOwn ends a session of this replica.
func (h *Handler) disconnectOwn(id string) (*disconnected, error) {
	d := &disconnected{Session: id}
	for _, s := range h.Source.Sessions() {
		if s.ID == id {
			d.Tenant, d.User = s.Tenant, s.User
		}
	}
	if !h.Source.Disconnect(id) {
		return nil, &Error{http.StatusNotFound, "session " + id + " not found: it may have ended"}
	}
	return d, nil
}

// disconnectAnywhere ends a session of any replica.
func (h *Handler) disconnectAnywhere(ctx context.Context, id string) (*disconnected, error) {
	d, err := h.disconnectOwn(id)
	if err == nil {
		return d, nil
	}
	for _, n := range h.replicas() {
		if n == h.self() {
			continue
		}
		asking, cancel := context.WithTimeout(ctx, peerTimeout)
		d, failed := &disconnected{}, error(nil)
		failed = h.Peers.Do(asking, n, http.MethodDelete, "/sessions/"+url.PathEscape(id), nil, d)
		cancel()
		if failed == nil {
			return d, nil
		}
		if e, ok := errors.AsType[*Error](failed); !ok || e.Status != http.StatusNotFound {
			err = &Error{http.StatusBadGateway, "session " + id + " not found here, and " + failed.Error()}
		}
	}
	return nil, err
}
