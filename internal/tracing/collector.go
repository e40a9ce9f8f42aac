package tracing

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/babelftp/babelftp/internal/limits"
)

const (
	// requestTimeout is how long the collector may take to answer.
	requestTimeout = 10 * time.Second
	// firstRetry is how long a collector that fails is left alone first. Each time it is twice as long.
	firstRetry = time.Second
	// maxAnswer is how much of an answer is read so that its connection can be used again, in bytes.
	maxAnswer = 64 << 10
)

// A collector takes spans by POST (OTLP/HTTP with binary protobuf). The exporter of OpenTelemetry for that links gRPC, of which this needs nothing.
type collector struct {
	url      string
	header   http.Header
	client   *http.Client
	log      *slog.Logger
	failures limits.Sampler[string] // that the log shows
	retry    time.Duration          // firstRetry, or less in tests
	sent     atomic.Int64           // spans
	stopping chan struct{}          // closed when there is no time to try again
}

var _ otlptrace.Client = (*collector)(nil)

func newCollector(o Options) *collector {
	c := &collector{
		url: strings.TrimSuffix(o.Endpoint, "/") + "/v1/traces", header: o.Header.Clone(), log: o.Log, retry: firstRetry, stopping: make(chan struct{}),
		client: &http.Client{
			Transport: &http.Transport{
				Proxy: http.ProxyFromEnvironment, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.Authorities},
			},
			Timeout:       requestTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // another server must not get the header
		},
	}
	if c.header == nil {
		c.header = http.Header{}
	}
	c.header.Set("Content-Type", "application/x-protobuf")
	c.header.Set("Content-Encoding", "gzip")
	return c
}

// Start implements [otlptrace.Client].
func (c *collector) Start(context.Context) error { return nil }

// Stop implements [otlptrace.Client].
func (c *collector) Stop(context.Context) error { return nil }

// UploadTraces implements [otlptrace.Client]. Its error is in the log, once a minute.
func (c *collector) UploadTraces(ctx context.Context, spans []*otlp.ResourceSpans) error {
	n := 0
	for _, of := range spans {
		for _, scope := range of.ScopeSpans {
			n += len(scope.Spans)
		}
	}
	// The request of OTLP, ExportTraceServiceRequest, has the same fields, and its package needs gRPC.
	message, err := proto.Marshal(&otlp.TracesData{ResourceSpans: spans})
	if err == nil {
		err = c.send(ctx, message)
	}
	if err == nil {
		c.sent.Add(int64(n))
		return nil
	}
	if more, first := c.failures.Pass(""); first {
		c.log.Warn("traces: the collector does not take spans, and they are lost; look at traces.endpoint; the log shows one failure a minute",
			"err", err, "spans", n, "more", more)
	}
	return nil
}

// send posts a request until the collector answers, or says that it never takes it.
func (c *collector) send(ctx context.Context, message []byte) error {
	var body bytes.Buffer
	zip := gzip.NewWriter(&body)
	_, _ = zip.Write(message) // to memory
	_ = zip.Close()
	for wait := c.retry; ; wait *= 2 {
		again, err := c.post(ctx, body.Bytes())
		if err == nil || !again {
			return err
		}
		select {
		case <-time.After(wait):
		case <-c.stopping:
			return err
		case <-ctx.Done():
			return err
		}
	}
}

// post sends a request once, and tells whether a failure may pass.
func (c *collector) post(ctx context.Context, body []byte) (again bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	request.Header = c.header.Clone()
	response, err := c.client.Do(request)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // without the URL
		}
		return true, err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer))
	if response.StatusCode/100 == 2 {
		return false, nil
	}
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		again = true
	}
	return again, fmt.Errorf("the collector answers %s", response.Status)
}
