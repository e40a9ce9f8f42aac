package server

import (
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// A podIdentity is the way in which EKS gives a role to a pod: environment variables, and a file with a token that
// kubelet replaces.
type podIdentity struct {
	storage *s3test.Server
	file    string

	// last returns the token of the last request for credentials.
	last func() string

	// ends sets the expiry of the credentials for later requests.
	ends func(time.Time)
}

// webIdentity is IAM Roles for Service Accounts: an STS accepts the token (operation AssumeRoleWithWebIdentity).
func webIdentity(t *testing.T) podIdentity {
	s := s3test.Start(t, "minio")
	service := s3test.StartSTS(t, s)
	p := podIdentity{storage: s, file: filepath.Join(t.TempDir(), "token")}
	p.ends = func(end time.Time) {
		service.Respond(func(request url.Values) s3test.STSResponse {
			if strings.HasPrefix(request.Get("WebIdentityToken"), "old") {
				return s3test.STSResponse{Status: http.StatusBadRequest, Code: "ExpiredTokenException",
					Message: "the token has expired"}
			}
			return s3test.STSResponse{Expires: end}
		})
	}
	p.last = func() string {
		all := service.Requests()
		last := all[len(all)-1]
		if got := last.Get("Action") + " " +
			last.Get("RoleArn"); got != "AssumeRoleWithWebIdentity arn:aws:iam::123456789012:role/babelftp" {
			t.Errorf("unexpected request %s", got)
		}
		return last.Get("WebIdentityToken")
	}
	t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/babelftp")
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", p.file)
	t.Setenv("AWS_ENDPOINT_URL_STS", service.URL)
	return p
}

// agentIdentity is EKS Pod Identity: the agent of the node accepts the token, and returns credentials.
func agentIdentity(t *testing.T) podIdentity {
	s := s3test.Start(t, "minio")
	p := podIdentity{storage: s, file: filepath.Join(t.TempDir(), "token")}
	client := sts.NewFromConfig(*s.AWSConfig())
	var last, ends atomic.Value
	p.ends = func(end time.Time) { ends.Store(end) }
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := r.Header.Get("Authorization")
		last.Store(token)
		if strings.HasPrefix(token, "old") {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(
				map[string]string{"code": "ExpiredTokenException", "message": "the token has expired"})
			return
		}
		issued, err := client.AssumeRole(
			r.Context(), &sts.AssumeRoleInput{RoleArn: aws.String("arn:any:any:any:any:any"),
				RoleSessionName: aws.String("any")})
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		c := issued.Credentials
		_ = json.NewEncoder(w).Encode(map[string]any{
			"AccessKeyId": c.AccessKeyId, "SecretAccessKey": c.SecretAccessKey, "Token": c.SessionToken,
			"Expiration": ends.Load().(time.Time).UTC().Format(time.RFC3339),
		})
	}))
	t.Cleanup(agent.Close)
	p.last = func() string { return last.Load().(string) }
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", agent.URL+"/v1/credentials")
	t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", p.file)
	return p
}

// The role of an EKS pod gives access to the bucket. A session survives new tokens. If a token is rejected, its client
// gets 451.
func TestPodIdentity(t *testing.T) {
	identities := map[string]func(*testing.T) podIdentity{"web-identity": webIdentity, "agent": agentIdentity}
	for name, identity := range identities {
		t.Run(name, func(t *testing.T) { testPodIdentity(t, identity(t)) })
	}
}

// use clears the other environment variables of the SDK, and writes a token.
func (p *podIdentity) use(t *testing.T) (token string) {
	t.Helper()
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	none := filepath.Join(t.TempDir(), "none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", none)
	t.Setenv("AWS_CONFIG_FILE", none)
	t.Setenv("AWS_REGION", p.storage.Region)
	token = rand.Text()
	must.ReplaceFile(t, p.file, token)
	return token
}

// renewBefore is how long before their expiry credentials are renewed, so that S3 never receives expired ones.
const renewBefore = 5 * time.Minute

func testPodIdentity(t *testing.T, p podIdentity) {
	token := p.use(t)
	end := time.Now().Add(time.Hour).Truncate(time.Second)
	p.ends(end)
	found, err := s3client.LoadEnvironment(t.Context(), slog.New(slog.DiscardHandler))
	must.OK(t, err)
	if c, err := found.Credentials.Retrieve(t.Context()); err != nil || end.Sub(c.Expires) != renewBefore {
		t.Errorf("credentials that expire at %s: got renewal at %s, %v", end, c.Expires, err)
	}

	p.ends(time.Now().Add(-time.Hour)) // each request needs new credentials
	cfg := servicetest.NewConfig(t, p.storage)
	cfg.S3.AccessKeyID, cfg.S3.SecretAccessKey = "", value.Secret{}
	log := &servicetest.Log{}
	c := session(t, start(t, cfg, Options{Logger: log.Logger()}), "alice")
	c.Store("file", "content")
	if p.last() != token {
		t.Error("the request for credentials has a different token")
	}

	token = rand.Text()
	must.ReplaceFile(t, p.file, token)
	c.Command(200, "TYPE I")
	c.Command(213, "SIZE file")
	if p.last() != token {
		t.Error("the request for credentials has the previous token")
	}

	must.ReplaceFile(t, p.file, "old"+rand.Text())
	log.Take()
	c.Command(451, "SIZE file")
	const reason = "ExpiredTokenException: the token has expired"
	if log.Has("IAM policy") || !log.Has(reason) {
		t.Errorf("the log mentions permissions, or lacks %q:\n%s", reason, log)
	}

	must.ReplaceFile(t, p.file, rand.Text())
	c.Want("content", "RETR file")
}
