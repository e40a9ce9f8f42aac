package s3test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/aws-sdk-go-v2/service/sts/types"
	"github.com/aws/smithy-go"
)

// An STS is a Security Token Service that looks at each request for AssumeRole, as AWS does. MinIO, which has a
// service of its own, ignores the role, the external ID and the tags. The credentials come from MinIO, so that they
// are good there. Tokens of AssumeRoleWithWebIdentity are judged by MinIO.
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
	client := sts.NewFromConfig(*minio.AWSConfig())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.serve(w, r, client)
	}))
	tb.Cleanup(server.Close)
	s.URL = server.URL
	return s
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

func (s *STS) serve(w http.ResponseWriter, r *http.Request, minio *sts.Client) {
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
		if c, err = issue(r, minio); err != nil {
			answer = STSAnswer{Status: http.StatusBadGateway, Code: "InternalFailure", Message: err.Error()}
			if refusal, ok := errors.AsType[smithy.APIError](err); ok {
				answer = STSAnswer{Status: http.StatusBadRequest, Code: refusal.ErrorCode(),
					Message: refusal.ErrorMessage()}
			}
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

// issue has MinIO answer a request.
func issue(r *http.Request, minio *sts.Client) (*types.Credentials, error) {
	if r.Form.Get("Action") == "AssumeRole" {
		issued, err := minio.AssumeRole(
			r.Context(), &sts.AssumeRoleInput{RoleArn: aws.String("arn:any:any:any:any:any"),
				RoleSessionName: aws.String("any")})
		if err != nil {
			return nil, err
		}
		return issued.Credentials, nil
	}
	return identify(r.Context(), minio, r.Form.Get("WebIdentityToken"))
}

// identify has MinIO answer AssumeRoleWithWebIdentity.
func identify(ctx context.Context, minio *sts.Client, token string) (*types.Credentials, error) {
	issued, err := minio.AssumeRoleWithWebIdentity(ctx, &sts.AssumeRoleWithWebIdentityInput{
		RoleArn: aws.String("arn:minio:iam:::role/any"), RoleSessionName: aws.String("any"), WebIdentityToken: &token,
	}, func(o *sts.Options) { o.RetryMaxAttempts = 1 })
	if err != nil {
		return nil, err
	}
	return issued.Credentials, nil
}

// StartWithIssuer starts a MinIO of the test's own. It gives credentials for the tokens of an issuer of OpenID
// Connect, whose certificate is in a file. The claim "policy" of a token says what they allow, such as "readwrite".
// MinIO asks the issuer after it has begun to serve, so StartWithIssuer waits until it takes a token. With -short it
// skips the test.
func StartWithIssuer(tb testing.TB, issuer, caFile, audience, token string) *Server {
	tb.Helper()
	if testing.Short() {
		tb.Skip("-short has no S3 servers but simulators; this test needs minio")
	}
	shared.mu.Lock()
	root := shared.root
	shared.mu.Unlock()
	if root == "" {
		tb.Fatal("call s3test.Main from TestMain")
	}
	ca, err := os.ReadFile(caFile)
	if err != nil {
		tb.Fatal(err)
	}
	place := workspace{binary: filepath.Join(root, ".tools", "bin", "minio"), data: tb.TempDir()}
	trusted := filepath.Join(place.data, ".certs", "CAs")
	if err := os.MkdirAll(trusted, 0o700); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(trusted, "issuer.crt"), ca, 0o600); err != nil {
		tb.Fatal(err)
	}
	minio := processes()[0]
	plain := minio.command
	minio.command = func(data, address string, c login) (args, env []string) {
		args, env = plain(data, address, c)
		return args, append(
			env, "MINIO_IDENTITY_OPENID_CONFIG_URL="+issuer+"/.well-known/openid-configuration",
			"MINIO_IDENTITY_OPENID_CLIENT_ID="+audience)
	}
	s, stop, err := startProcess(tb.Context(), minio, place)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := stop(); err != nil {
			tb.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(tb.Context(), startTimeout)
	defer cancel()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for client := sts.NewFromConfig(*s.AWSConfig()); ; {
		_, err := identify(ctx, client, token)
		if err == nil {
			return s
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			tb.Fatalf("MinIO takes no token: %v", err)
		}
	}
}
