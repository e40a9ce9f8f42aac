package s3client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"

	"github.com/babelftp/babelftp/internal/base/limits"
)

const (
	// dialTimeout is how long a connection to S3 may take to open; the SDK's 30 seconds let clients give up first.
	dialTimeout = 10 * time.Second
	// headerTimeout is how long S3 may take to begin an answer. To copy 5 GiB or to complete an upload of 10,000
	// parts takes some servers minutes.
	headerTimeout = 5 * time.Minute
	// idleConnections is how many connections stay open between requests to one server. It is enough for some dozens
	// of uploads with four parts each. With the SDK's 10 the others would need new connections.
	idleConnections = 256
	// A small object comes and goes with its headers in one read or write.
	readBuffer, writeBuffer = 16 << 10, 16 << 10
	// maxHeaders is what the headers of a request to store a small object may take of writeBuffer.
	maxHeaders = 4 << 10
)

// LoadEnvironment reads what the SDK finds in its environment and files, and adds the pool of connections that all
// clients share.
func LoadEnvironment(ctx context.Context, log *slog.Logger) (*aws.Config, error) {
	// Not frozen, so that the SDK can add the certificates of AWS_CA_BUNDLE.
	client := awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout, d.Control = dialTimeout, control }).
		WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns = 0 // bounded for each server only
			t.MaxIdleConnsPerHost = idleConnections
			t.ResponseHeaderTimeout = headerTimeout
			t.ReadBufferSize, t.WriteBufferSize = readBuffer, writeBuffer
			t.DisableCompression = true // objects are stored and fetched byte for byte
			t.OnProxyConnectResponse = checkConnect
		})
	// What the SDK logs is of use in the search for an error only.
	logger := logging.LoggerFunc(func(_ logging.Classification, format string, args ...any) {
		log.Debug("AWS SDK", "message", fmt.Sprintf(format, args...))
	})
	cfg, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithHTTPClient(client), awsconfig.WithLogger(logger))
	if err != nil {
		return nil, fmt.Errorf("the environment or the files of the AWS SDK are wrong: %w", err)
	}
	cfg.Credentials = named(renewTokens(cfg.Credentials, log), cfg.Credentials)
	return &cfg, nil
}

// control prepares the socket of a new connection.
func control(network, address string, conn syscall.RawConn) error {
	if err := limits.TransferReserve.Control(network, address, conn); err != nil {
		return err
	}
	return setUserTimeout(conn)
}

// A coalescingClient sends a small body together with the headers. net/http flushes these before any body but of a
// type that it knows to be in memory, which those of the SDK are not, and allocates 32 KiB to copy it.
type coalescingClient struct{ aws.HTTPClient }

// Do implements aws.HTTPClient.
func (c coalescingClient) Do(request *http.Request) (*http.Response, error) {
	if request.Body == nil || request.ContentLength <= 0 || request.ContentLength > writeBuffer-maxHeaders {
		return c.HTTPClient.Do(request)
	}
	body := make([]byte, request.ContentLength)
	_, err := io.ReadFull(request.Body, body)
	if closeErr := request.Body.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, err
	}
	request.Body = io.NopCloser(bytes.NewReader(body))
	return c.HTTPClient.Do(request)
}

// variant makes a client from the options of another one, which may be in use. Without it the SDK would write to the
// sessions of directory buckets that both clients then share, and ask for all of them through the newer client.
func variant(o s3.Options, changes ...func(*s3.Options)) *s3.Client {
	o.ExpressCredentials = nil
	return s3.New(o, changes...)
}
