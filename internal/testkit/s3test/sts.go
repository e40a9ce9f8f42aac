package s3test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/aws-sdk-go-v2/service/sts/types"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// An STS is a Security Token Service that lets a test check each AssumeRole request. It is needed because MinIO's
// own STS ignores the role, the external ID and the tags. It obtains the credentials from MinIO, so they are valid
// there.
type STS struct {
	URL string

	mu       sync.Mutex
	requests []STSRequest
	respond  func(url.Values) STSResponse
}

// An STSRequest is an AssumeRole or AssumeRoleWithWebIdentity request.
type STSRequest struct {
	url.Values
	Authorization string // header
	Issued        string // access key ID in the response; empty after an error
}

// An STSResponse is the response of an STS. The zero value issues credentials that are valid for the requested
// time.
type STSResponse struct {
	Status        int // HTTP status of an error
	Code, Message string
	Expires       time.Time // overrides the expiration set by MinIO
}

// StartSTS starts an STS in front of MinIO. It stops at the end of the test.
func StartSTS(tb testing.TB, minio *Server) *STS {
	tb.Helper()
	s := &STS{}
	s.Respond(func(url.Values) STSResponse { return STSResponse{} })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.serve(w, r, minio)
	}))
	tb.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// stsReady reports whether MinIO's own STS issues credentials. MinIO loads its users after it opens the port and
// lists buckets, and rejects AssumeRole until then ("Server not initialized", status 400, which the SDK does not
// retry).
func stsReady(ctx context.Context, minio *Server) error {
	_, err := assumeRole(ctx, minio, "")
	return err
}

// assumeRole gets credentials from MinIO's STS. A non-empty policy restricts them.
func assumeRole(ctx context.Context, minio *Server, policy string) (*types.Credentials, error) {
	input := &sts.AssumeRoleInput{RoleArn: aws.String("arn:any:any:any:any:any"), RoleSessionName: aws.String("any")}
	if policy != "" {
		input.Policy = &policy
	}
	issued, err := sts.NewFromConfig(*minio.AWSConfig()).AssumeRole(ctx, input)
	if err != nil {
		return nil, err
	}
	return issued.Credentials, nil
}

// Config sets AWS_ENDPOINT_URL_STS to the URL of the STS until the end of the test, and returns cfg with this
// setting.
func (s *STS) Config(tb testing.TB, cfg *aws.Config) *aws.Config {
	tb.Helper()
	return STSAt(tb, cfg, s.URL)
}

// STSAt is like [STS.Config] with any URL.
func STSAt(tb testing.TB, cfg *aws.Config, url string) *aws.Config {
	tb.Helper()
	tb.Setenv("AWS_ENDPOINT_URL_STS", url)
	env, err := awsconfig.NewEnvConfig()
	must.OK(tb, err)
	next := cfg.Copy()
	next.ConfigSources = append(next.ConfigSources, env)
	return &next
}

// Respond sets the function that responds to requests.
func (s *STS) Respond(respond func(url.Values) STSResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.respond = respond
}

// Requests returns all requests so far.
func (s *STS) Requests() []STSRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]STSRequest(nil), s.requests...)
}

func (s *STS) serve(w http.ResponseWriter, r *http.Request, minio *Server) {
	_ = r.ParseForm()
	action := r.Form.Get("Action")
	if action != "AssumeRole" && action != "AssumeRoleWithWebIdentity" {
		http.Error(w, "not an AssumeRole request", http.StatusBadRequest)
		return
	}
	request := STSRequest{Values: r.Form, Authorization: r.Header.Get("Authorization")}
	s.mu.Lock()
	defer s.mu.Unlock()
	response := s.respond(r.Form)
	defer func() { s.requests = append(s.requests, request) }()
	w.Header().Set("Content-Type", "text/xml")
	var c *types.Credentials
	if response.Status == 0 {
		var err error
		if c, err = assumeRole(r.Context(), minio, ""); err != nil {
			response = STSResponse{Status: http.StatusBadGateway, Code: "InternalFailure", Message: err.Error()}
		}
	}
	if response.Status != 0 {
		w.WriteHeader(response.Status)
		_, _ = fmt.Fprintf(
			w,
			`<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>%s</Code>`+
				`<Message>%s</Message></Error><RequestId>1</RequestId></ErrorResponse>`, response.Code, response.Message)
		return
	}
	if !response.Expires.IsZero() {
		c.Expiration = &response.Expires
	}
	request.Issued = *c.AccessKeyId
	_, _ = fmt.Fprintf(
		w,
		`<%[1]sResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><%[1]sResult><Credentials><AccessKeyId>%[2]s</AccessKeyId>`+
			`<SecretAccessKey>%[3]s</SecretAccessKey><SessionToken>%[4]s</SessionToken><Expiration>%[5]s</Expiration></Credentials></%[1]sResult>`+
			`<ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></%[1]sResponse>`,
		action, *c.AccessKeyId, *c.SecretAccessKey, *c.SessionToken, c.Expiration.UTC().Format(time.RFC3339))
}
