package admin

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/babelftp/babelftp/internal/report/sessionlog"
	"github.com/babelftp/babelftp/internal/report/tracing"
	"github.com/babelftp/babelftp/internal/users/account"
)

// requestMetrics counts requests to S3. It is a middleware of the AWS SDK.
type requestMetrics struct {
	total, retries *TenantCounter
	durations      *prometheus.HistogramVec
	failures       atomic.Int64 // requests with a status of 5xx or without a response
}

func newRequestMetrics(tenants *tenantMetrics) *requestMetrics {
	return &requestMetrics{
		total: tenants.NewCounter("s3_requests_total",
			"Requests to S3, and to STS for roles, retries included. Their status is of HTTP, or error without an answer.",
			"operation", "status"),
		retries: tenants.NewCounter(
			"s3_retries_total", "Requests to S3 that are repeated because one failed.",
			"operation"),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "s3_request_duration_seconds",
			Help:    "Time until S3 began to answer a request.",
			Buckets: prometheus.ExponentialBuckets(0.002, 2, 15), // up to 33 seconds
		}, []string{"operation"}),
	}
}

// Collectors returns the collectors to register.
func (m *requestMetrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.total, m.retries, m.durations}
}

// Observe adds the middleware to a client of the SDK. It comes last in the deserialize step, so that it sees
// each attempt and not only the last one.
func (m *requestMetrics) Observe(stack *middleware.Stack) error {
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("babelftp-metrics", m.attempt), middleware.After)
}

func (m *requestMetrics) attempt(
	ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler,
) (middleware.DeserializeOutput, middleware.Metadata, error) {
	r := &sessionlog.Request{
		Service: awsmiddleware.GetServiceID(ctx), Operation: awsmiddleware.GetOperationName(ctx),
		Status: sessionlog.NoResponse, Begin: time.Now(),
	}
	out, metadata, err := next.HandleDeserialize(ctx, in)
	r.Duration = time.Since(r.Begin)
	// The SDK also passes a response with status 0 if there was none.
	if response, ok := out.RawResponse.(*smithyhttp.Response); ok && response != nil && response.Response != nil &&
		response.StatusCode != 0 {
		r.Status, r.ID = strconv.Itoa(response.StatusCode), response.Header.Get("X-Amz-Request-Id")
	}
	if err != nil && errors.Is(err, context.Canceled) {
		r.Status = "canceled" // the client has disconnected
	}
	if request, ok := in.Request.(*smithyhttp.Request); ok {
		r.Retry = retry(request.Header.Get("Amz-Sdk-Request"))
	}
	sessionlog.LogRequest(ctx, r)
	tracing.AddRequest(ctx, r)
	m.durations.WithLabelValues(r.Operation).Observe(r.Duration.Seconds())
	tenant := account.TenantOf(ctx)
	m.total.Add(1, tenant, r.Operation, r.Status)
	if r.Status == sessionlog.NoResponse || strings.HasPrefix(r.Status, "5") {
		m.failures.Add(1)
	}
	if r.Retry > 0 {
		m.retries.Add(1, tenant, r.Operation)
	}
	return out, metadata, err
}

// retry returns how often a request was repeated before, from the header with its attempt number: "attempt=1;
// max=3".
func retry(header string) int {
	attempt, _, _ := strings.Cut(strings.TrimPrefix(header, "attempt="), ";")
	n, err := strconv.Atoi(attempt)
	if err != nil {
		return 0
	}
	return n - 1
}
