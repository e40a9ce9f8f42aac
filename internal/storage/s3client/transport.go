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
	// dialTimeout limits opening a connection to S3. With the SDK's 30 seconds, FTP clients would give up first.
	dialTimeout = 10 * time.Second
	// headerTimeout limits the wait for the header of a response. Some servers take minutes to copy 5 GiB or to
	// complete an upload of 10,000 parts.
	headerTimeout = 5 * time.Minute
	// idleConnections is the number of connections to one server that stay open between requests. It is enough for
	// some dozens of uploads with four parts each. With the SDK's default of 10, the others would need new
	// connections.
	idleConnections = 256
	// A small object and its headers fit into one read or write.
	readBuffer, writeBuffer = 16 << 10, 16 << 10
	// maxHeaders is the part of writeBuffer that is left for the headers of a request that stores a small object.
	maxHeaders = 4 << 10
)

// LoadEnvironment reads the environment variables and files of the AWS SDK, and adds the connection pool that all
// clients share.
func LoadEnvironment(ctx context.Context, log *slog.Logger) (*aws.Config, error) {
	// The client is not frozen, so that the SDK can add the certificates of AWS_CA_BUNDLE.
	client := awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout, d.Control = dialTimeout, control }).
		WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns = 0 // limited per server only
			t.MaxIdleConnsPerHost = idleConnections
			t.ResponseHeaderTimeout = headerTimeout
			t.ReadBufferSize, t.WriteBufferSize = readBuffer, writeBuffer
			t.DisableCompression = true // objects are stored and fetched byte for byte
			t.OnProxyConnectResponse = checkConnect
		})
	// Log messages of the SDK only help with debugging.
	logger := logging.LoggerFunc(func(_ logging.Classification, format string, args ...any) {
		log.Debug("AWS SDK", "message", fmt.Sprintf(format, args...))
	})
	cfg, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithHTTPClient(client), awsconfig.WithLogger(logger))
	if err != nil {
		return nil, fmt.Errorf("invalid environment or files of the AWS SDK: %w", err)
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

// A coalescingClient sends a small body in the same write as the headers. net/http flushes the headers before the body
// unless the body has a type that is known to be in memory. The bodies of the SDK have other types, and net/http would
// also allocate 32 KiB to copy them.
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

// variant creates a client from the options of another one, which may be in use. It resets the credentials of
// directory buckets. Otherwise the SDK would change the sessions of directory buckets that both clients share, and
// request all of them through the new client.
func variant(o s3.Options, changes ...func(*s3.Options)) *s3.Client {
	o.ExpressCredentials = nil
	return s3.New(o, changes...)
}
