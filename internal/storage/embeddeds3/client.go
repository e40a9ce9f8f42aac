package embeddeds3

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

const (
	// idleConnections is the number of connections to the socket that stay open between requests. It is enough for the
	// parts of several transfers. With net/http's default of 2, the others would each need a new connection.
	idleConnections = 64

	// idleTimeout is how long an idle connection stays open, as in net/http's default transport.
	idleTimeout = 90 * time.Second
)

// newHTTPClient returns a client that reaches the server over its socket, whatever host a request names.
func newHTTPClient(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
		DisableCompression:  true, // objects are stored and fetched byte for byte
		MaxIdleConns:        idleConnections,
		MaxIdleConnsPerHost: idleConnections,
		IdleConnTimeout:     idleTimeout,
	}}
}

// AWSConfig returns the configuration of the AWS SDK for this server. An S3 client created from it must set
// UsePathStyle.
func (s *Server) AWSConfig() aws.Config {
	return aws.Config{
		BaseEndpoint: aws.String(Endpoint),
		Region:       Region,
		Credentials:  credentials.NewStaticCredentialsProvider(s.AccessKeyID, s.SecretAccessKey, ""),
		HTTPClient:   s.httpClient,
		// config.LoadDefaultConfig would set these.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenSupported,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenSupported,
	}
}

// Client returns an S3 client for the server with the SDK's defaults and optFns.
func (s *Server) Client(optFns ...func(*s3.Options)) *s3.Client {
	pathStyle := func(o *s3.Options) { o.UsePathStyle = true }
	return s3.NewFromConfig(s.AWSConfig(), append([]func(*s3.Options){pathStyle}, optFns...)...)
}
