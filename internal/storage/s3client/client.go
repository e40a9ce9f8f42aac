package s3client

import (
	"cmp"
	"log/slog"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/base/s3error"
	"github.com/babelftp/babelftp/internal/config"
)

// customRegion is the default region of S3 servers other than AWS.
const customRegion = "us-east-1"

// An account identifies an S3 server and the credentials for it. Tenants with equal accounts share a client, unless
// they assume roles.
type account struct {
	endpoint, region   string
	accessKeyID        string
	secretAccessKey    string
	pathStyle          bool
	credentialsFromSDK bool
	role               *role  // nil if the keys are used directly
	profile            string // as configured; empty for "auto"
}

func accountOf(s config.S3) account {
	return account{
		endpoint:           s.Endpoint,
		region:             s.Region,
		accessKeyID:        s.AccessKeyID,
		secretAccessKey:    s.SecretAccessKey.Reveal(),
		pathStyle:          aws.ToBool(s.PathStyle),
		credentialsFromSDK: s.AccessKeyID == "",
		profile:            configuredProfile(s.Profile),
	}
}

// A Factory makes clients, one for each account.
type Factory struct {
	base    *aws.Config
	observe func(*middleware.Stack) error
	log     *slog.Logger
	clients map[account]client
	roles   map[string]*role            // by the JSON of all values that a role depends on
	routes  map[string]*driver.Endpoint // by endpoint
}

// NewFactory returns a factory whose clients are copies of base, which [LoadEnvironment] returns. If observe is not
// nil, it is added to the middleware of each client.
func NewFactory(base *aws.Config, observe func(*middleware.Stack) error, log *slog.Logger) *Factory {
	return &Factory{
		base: base, observe: observe, log: log,
		clients: map[account]client{}, roles: map[string]*role{}, routes: map[string]*driver.Endpoint{},
	}
}

// route returns the endpoint of an account, which all accounts at the same address share.
func (f *Factory) route(a account) *driver.Endpoint {
	if f.routes[a.endpoint] == nil {
		f.routes[a.endpoint] = driver.NewEndpoint()
	}
	return f.routes[a.endpoint]
}

// configOf returns the configuration of the SDK for an account, with its keys and without its role. The region is
// empty if it is unknown.
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

// A client sends the requests of one account. It sends checksums as soon as a bucket has found a profile with
// checksums.
type client struct {
	*s3.Client
	checksums *atomic.Bool
}

// client returns the client of an account, and creates it on the first call. It returns errNoRegion if the region is
// unknown.
func (f *Factory) client(a account) (client, error) {
	if client, made := f.clients[a]; made {
		return client, nil
	}
	cfg := f.configOf(a)
	cfg.HTTPClient = coalescingClient{cfg.HTTPClient}
	if cfg.Region == "" {
		return client{}, errNoRegion
	}
	if a.role != nil {
		cfg.Credentials = a.role.cache
	}
	made := client{checksums: new(atomic.Bool)}
	made.Client = s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle = a.pathStyle
		o.ContinueHeaderThresholdBytes = -1 // no "Expect: 100-continue", to which some proxies respond with 417
		o.APIOptions = append(o.APIOptions, s3error.DetectForeign, withoutAcceptEncoding)
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			if made.checksums.Load() {
				return nil
			}
			return driver.WithoutChecksums(stack)
		})
		name := cmp.Or(a.profile, profileOfEndpoint(aws.ToString(o.BaseEndpoint), ""))
		if known, _ := driver.ProfileNamed(name); known.Decompresses {
			o.APIOptions = append(o.APIOptions, acceptGzip)
		}
		RetryUnstored(name)(o)
		o.APIOptions = append(o.APIOptions, tolerant, Region(cfg.Region).Explain)
		if f.observe != nil {
			o.APIOptions = append(o.APIOptions, f.observe)
		}
	})
	f.clients[a] = made
	return made, nil
}
