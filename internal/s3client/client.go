package s3client

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/config/bucket"
	"github.com/babelftp/babelftp/internal/descriptors"
)

const (
	// dialTimeout is how long a connection to S3 may take to open; the SDK's 30 seconds let clients give up first.
	dialTimeout = 10 * time.Second
	// headerTimeout is how long S3 may take to begin an answer. To copy 5 GiB or to complete an upload of 10,000 parts takes some
	// servers minutes.
	headerTimeout = 5 * time.Minute
	// idleConnections is how many connections stay open between requests to one server. It is enough for some dozens of uploads with four
	// parts each. With the SDK's 10 the others would need new connections.
	idleConnections = 256
	// A small object comes and goes with its headers in one read or write.
	readBuffer, writeBuffer = 16 << 10, 16 << 10
	// maxHeaders is what the headers of a request to store a small object may take of writeBuffer.
	maxHeaders = 4 << 10
	// customRegion is the default region of S3 servers other than AWS.
	customRegion = "us-east-1"
)

// LoadAWS reads what the SDK finds in its environment and files, and adds the pool of connections that all clients share.
func LoadAWS(ctx context.Context, log *slog.Logger) (*aws.Config, error) {
	// Not frozen, so that the SDK can add the certificates of AWS_CA_BUNDLE.
	client := awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout, d.Control = dialTimeout, descriptors.Transfers.Control }).
		WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns = 0 // bounded for each server only
			t.MaxIdleConnsPerHost = idleConnections
			t.ResponseHeaderTimeout = headerTimeout
			t.ReadBufferSize, t.WriteBufferSize = readBuffer, writeBuffer
			t.DisableCompression = true // objects are stored and fetched byte for byte
		})
	// What the SDK logs is of use in the search for an error only.
	logger := logging.LoggerFunc(func(_ logging.Classification, format string, args ...any) {
		log.Debug("AWS SDK", "message", fmt.Sprintf(format, args...))
	})
	cfg, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithHTTPClient(client), awsconfig.WithLogger(logger))
	if err != nil {
		return nil, fmt.Errorf("the environment or the files of the AWS SDK are wrong: %w", err)
	}
	return &cfg, nil
}

// An account is an S3 server as one account sees it. Tenants that say the same share one, unless a role is assumed.
type account struct {
	endpoint, region   string
	accessKeyID        string
	secretAccessKey    string
	pathStyle          bool
	checksums          bucket.ChecksumUse
	credentialsFromSDK bool
	role               *role  // nil where the keys themselves reach the server
	profile            string // as far as it is known before the server is asked, and changes what the client sends
}

func accountOf(s bucket.S3) account {
	return account{
		endpoint:           s.Endpoint,
		region:             s.Region,
		accessKeyID:        s.AccessKeyID,
		secretAccessKey:    s.SecretAccessKey.Reveal(),
		pathStyle:          aws.ToBool(s.PathStyle),
		checksums:          s.Checksums,
		credentialsFromSDK: s.AccessKeyID == "",
		profile:            restrictingProfile(s.Profile, s.Endpoint),
	}
}

// A Factory makes clients, one for each account.
type Factory struct {
	base    *aws.Config
	observe func(*middleware.Stack) error
	log     *slog.Logger
	clients map[account]*s3.Client
	roles   map[string]*role            // by all that they depend on
	routes  map[string]*driver.Endpoint // by endpoint
}

// NewFactory makes clients from base, see [LoadAWS]. observe is added to the requests of each; nil adds nothing.
func NewFactory(base *aws.Config, observe func(*middleware.Stack) error, log *slog.Logger) *Factory {
	return &Factory{
		base: base, observe: observe, log: log,
		clients: map[account]*s3.Client{}, roles: map[string]*role{}, routes: map[string]*driver.Endpoint{},
	}
}

// route is what is known of the way to an account's server.
func (f *Factory) route(a account) *driver.Endpoint {
	if f.routes[a.endpoint] == nil {
		f.routes[a.endpoint] = driver.NewEndpoint()
	}
	return f.routes[a.endpoint]
}

// configOf is the SDK's configuration for an account, with the keys and without the role. The region is empty where none is known.
func (f *Factory) configOf(a account) aws.Config {
	cfg := f.base.Copy()
	cfg.Region = cmp.Or(a.region, cfg.Region)
	if a.endpoint != "" {
		cfg.BaseEndpoint = &a.endpoint
		cfg.Region = cmp.Or(cfg.Region, customRegion)
	}
	if !a.credentialsFromSDK {
		cfg.Credentials = credentials.NewStaticCredentialsProvider(a.accessKeyID, a.secretAccessKey, "")
	}
	return cfg
}

// client returns the account's client. The error is errNoRegion.
func (f *Factory) client(a account) (*s3.Client, error) {
	if client, made := f.clients[a]; made {
		return client, nil
	}
	cfg := f.configOf(a)
	cfg.HTTPClient = coalescingClient{cfg.HTTPClient}
	if cfg.Region == "" {
		return nil, errNoRegion
	}
	if a.role != nil {
		cfg.Credentials = a.role.cache
	}
	client := s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle = a.pathStyle
		restrictClient(o, cmp.Or(a.profile, restrictingProfile(bucket.AutoProfile, aws.ToString(cfg.BaseEndpoint))))
		useChecksums(o, a.checksums)
		if f.observe != nil {
			o.APIOptions = append(o.APIOptions, f.observe)
		}
	})
	f.clients[a] = client
	return client, nil
}

// A coalescingClient sends a small body together with the headers. net/http flushes these before any body but of a type that it knows to be in
// memory, which those of the SDK are not, and allocates 32 KiB to copy it.
type coalescingClient struct{ s3.HTTPClient }

// Do implements s3.HTTPClient.
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

// useChecksums makes the SDK send checksums that S3 does not ask for, or not. By default the SDK sends them. Some servers other than
// AWS refuse them, or store a checksum at the end of a body as a part of it.
func useChecksums(o *s3.Options, use bucket.ChecksumUse) {
	switch use {
	case bucket.ChecksumsRequired:
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	case bucket.ChecksumsSupported:
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenSupported
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenSupported
	}
}
