package servicetest

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A Span is a received span in a form that tests can compare.
type Span struct {
	Name, Kind           string
	Trace, ID, Parent    string   // in hex; Parent is empty for a root span
	Links                []string // span IDs
	Events               []string
	Failed               bool
	Attributes, Resource map[string]string
	Begin, End           time.Time
}

// A Collector receives OTLP over HTTP and keeps the spans.
type Collector struct {
	URL string // for OTEL_EXPORTER_OTLP_ENDPOINT

	tb      testing.TB
	mu      sync.Mutex
	status  int // status of the next responses
	spans   []Span
	header  http.Header
	refused int
	grown   chan struct{} // closed by the next request
}

// StartCollector starts a collector, which stops at the end of the test.
func StartCollector(tb testing.TB) *Collector {
	c := &Collector{tb: tb, status: http.StatusOK, grown: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(c.serve))
	tb.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

func (c *Collector) serve(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() {
		close(c.grown)
		c.grown = make(chan struct{})
	}()
	if c.status != http.StatusOK {
		c.refused++
		w.WriteHeader(c.status)
		return
	}
	c.header = r.Header
	spans, err := decode(r)
	if err != nil {
		c.tb.Errorf("invalid request to the collector: %v", err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.spans = append(c.spans, spans...)
}

func decode(r *http.Request) ([]Span, error) {
	if r.URL.Path != "/v1/traces" || r.Method != http.MethodPost ||
		r.Header.Get("Content-Type") != "application/x-protobuf" {
		return nil, fmt.Errorf("%s %s of %s is not OTLP", r.Method, r.URL, r.Header.Get("Content-Type"))
	}
	message, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var request otlp.TracesData
	if err := proto.Unmarshal(message, &request); err != nil {
		return nil, err
	}
	var spans []Span
	for _, of := range request.ResourceSpans {
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				spans = append(spans, span(s, attributes(of.Resource.Attributes)))
			}
		}
	}
	return spans, nil
}

func span(s *otlp.Span, resource map[string]string) Span {
	found := Span{
		Name: s.Name, Kind: strings.ToLower(strings.TrimPrefix(s.Kind.String(), "SPAN_KIND_")),
		Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId),
		Parent: hex.EncodeToString(s.ParentSpanId),
		Failed: s.Status.GetCode() == otlp.Status_STATUS_CODE_ERROR, Attributes: attributes(s.Attributes),
		Resource: resource,
		Begin:    time.Unix(0, int64(s.StartTimeUnixNano)), End: time.Unix(0, int64(s.EndTimeUnixNano)),
	}
	for _, l := range s.Links {
		found.Links = append(found.Links, hex.EncodeToString(l.SpanId))
	}
	for _, e := range s.Events {
		found.Events = append(found.Events, e.Name)
	}
	return found
}

func attributes(all []*common.KeyValue) map[string]string {
	found := map[string]string{}
	for _, a := range all {
		switch v := a.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			found[a.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			found[a.Key] = strconv.FormatInt(v.IntValue, 10)
		default:
			found[a.Key] = a.Value.String()
		}
	}
	return found
}

// Respond sets the status of the next responses. With any status except 200, spans are discarded.
func (c *Collector) Respond(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = status
}

// Spans returns the spans received so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Header returns the header of the last accepted request.
func (c *Collector) Header() http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.header.Clone()
}

// Await waits until holds returns true for the received spans and the number of refused requests.
func (c *Collector) Await(what string, holds func(spans []Span, refused int) bool) {
	c.tb.Helper()
	deadline := time.After(time.Minute)
	for {
		c.mu.Lock()
		spans, refused, grown := slices.Clone(c.spans), c.refused, c.grown
		c.mu.Unlock()
		if holds(spans, refused) {
			return
		}
		select {
		case <-grown:
		case <-deadline:
			c.tb.Fatalf("timed out waiting for %s; got %+v", what, spans)
		}
	}
}
