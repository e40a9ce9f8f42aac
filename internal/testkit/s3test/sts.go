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

// An STS is a Security Token Service that looks at each request for AssumeRole, as AWS does. MinIO, which has a
// service of its own, ignores the role, the external ID and the tags. The credentials come from MinIO, so that they
// are good there.
type STS struct {
	URL string

	mu       sync.Mutex
	requests []STSRequest
	answer   func(url.Values) STSAnswer
}

// An STSRequest is a request for AssumeRole or AssumeRoleWithWebIdentity.
type STSRequest struct {
	url.Values
	Authorization string // header
	Issued        string // access key ID of the answer; empty for a refusal
}

// An STSAnswer is how an STS answers. The zero value issues credentials that are good for as long as the request says.
type STSAnswer struct {
	Status        int // of a refusal
	Code, Message string
	Expires       time.Time // of the credentials, whatever MinIO says
}

// StartSTS starts an STS in front of MinIO, until the end of the test.
func StartSTS(tb testing.TB, minio *Server) *STS {
	tb.Helper()
	s := &STS{}
	s.Answer(func(url.Values) STSAnswer { return STSAnswer{} })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.serve(w, r, minio)
	}))
	tb.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// stsReady reports whether MinIO's own STS issues credentials. MinIO loads its users after it opens the port and lists
// buckets, and refuses AssumeRole until then ("Server not initialized", status 400, which the SDK does not retry).
func stsReady(ctx context.Context, minio *Server) error {
	_, err := assumeRole(ctx, minio, "")
	return err
}

// assumeRole gets credentials from MinIO's STS. A policy, if not empty, restricts them.
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

// Config is how the AWS SDK is configured where AWS_ENDPOINT_URL_STS names an STS, until the end of the test.
func (s *STS) Config(tb testing.TB, cfg *aws.Config) *aws.Config {
	tb.Helper()
	return STSAt(tb, cfg, s.URL)
}

// STSAt is [STS.Config] with any URL.
func STSAt(tb testing.TB, cfg *aws.Config, url string) *aws.Config {
	tb.Helper()
	tb.Setenv("AWS_ENDPOINT_URL_STS", url)
	env, err := awsconfig.NewEnvConfig()
	must.OK(tb, err)
	next := cfg.Copy()
	next.ConfigSources = append(next.ConfigSources, env)
	return &next
}

// Answer sets how requests are answered.
func (s *STS) Answer(answer func(url.Values) STSAnswer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// Requests are those so far.
func (s *STS) Requests() []STSRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]STSRequest(nil), s.requests...)
}

func (s *STS) serve(w http.ResponseWriter, r *http.Request, minio *Server) {
	_ = r.ParseForm()
	action := r.Form.Get("Action")
	if action != "AssumeRole" && action != "AssumeRoleWithWebIdentity" {
		http.Error(w, "this is no AssumeRole", http.StatusBadRequest)
		return
	}
	request := STSRequest{Values: r.Form, Authorization: r.Header.Get("Authorization")}
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := s.answer(r.Form)
	defer func() { s.requests = append(s.requests, request) }()
	w.Header().Set("Content-Type", "text/xml")
	var c *types.Credentials
	if answer.Status == 0 {
		var err error
		if c, err = assumeRole(r.Context(), minio, ""); err != nil {
			answer = STSAnswer{Status: http.StatusBadGateway, Code: "InternalFailure", Message: err.Error()}
		}
	}
	if answer.Status != 0 {
		w.WriteHeader(answer.Status)
		_, _ = fmt.Fprintf(
			w,
			`<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>%s</Code>`+
				`<Message>%s</Message></Error><RequestId>1</RequestId></ErrorResponse>`, answer.Code, answer.Message)
		return
	}
	if !answer.Expires.IsZero() {
		c.Expiration = &answer.Expires
	}
	request.Issued = *c.AccessKeyId
	_, _ = fmt.Fprintf(
		w,
		`<%[1]sResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><%[1]sResult><Credentials><AccessKeyId>%[2]s</AccessKeyId>`+
			`<SecretAccessKey>%[3]s</SecretAccessKey><SessionToken>%[4]s</SessionToken><Expiration>%[5]s</Expiration></Credentials></%[1]sResult>`+
			`<ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></%[1]sResponse>`,
		action, *c.AccessKeyId, *c.SecretAccessKey, *c.SessionToken, c.Expiration.UTC().Format(time.RFC3339))
}
