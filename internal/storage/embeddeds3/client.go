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
	// idleConnections is how many connections to the socket stay open between requests. It is enough for the parts of
	// several transfers. With net/http's default of 2 the others would need a new connection each.
	idleConnections = 64

	// idleTimeout is how long such a connection stays; net/http's default transport has the same.
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

// AWSConfig is what the AWS SDK needs to reach the server. An S3 client made from it must set UsePathStyle.
func (s *Server) AWSConfig() aws.Config {
	return aws.Config{
		BaseEndpoint: aws.String(Endpoint),
		Region:       Region,
		Credentials:  credentials.NewStaticCredentialsProvider(s.AccessKeyID, s.SecretAccessKey, ""),
		HTTPClient:   s.httpClient,
		// What config.LoadDefaultConfig sets, and an aws.Config made by hand lacks.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenSupported,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenSupported,
	}
}

// Client is an S3 client for the server with the SDK's defaults and optFns.
func (s *Server) Client(optFns ...func(*s3.Options)) *s3.Client {
	pathStyle := func(o *s3.Options) { o.UsePathStyle = true }
	return s3.NewFromConfig(s.AWSConfig(), append([]func(*s3.Options){pathStyle}, optFns...)...)
}
