package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// A token is one that a service account of Kubernetes has in a file.
type token struct{}

func (token) GetIdentityToken() ([]byte, error) { return []byte("token"), nil }

// A failingProvider has no credentials, or some that S3 refuses, for a reason that the log must have.
type failingProvider struct {
	aws.CredentialsProvider
	reason string
}

// failingProviders are by what is wrong.
func failingProviders(t *testing.T, good *aws.Config) map[string]failingProvider {
	t.Helper()
	refusal := func(status int, code string) *sts.Client {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/xml")
			w.WriteHeader(status)
			_, _ = w.Write(
				[]byte(`<ErrorResponse><Error><Code>` + code + `</Code><Message>no</Message></Error></ErrorResponse>`))
		}))
		t.Cleanup(server.Close)
		return sts.New(
			sts.Options{BaseEndpoint: &server.URL, Region: "us-east-1", Credentials: aws.AnonymousCredentials{}})
	}
	role := func(client *sts.Client, token stscreds.IdentityTokenRetriever) aws.CredentialsProvider {
		return stscreds.NewWebIdentityRoleProvider(client, "arn:aws:iam::123456789012:role/ftp", token)
	}
	metadata := httptest.NewServer(http.NotFoundHandler()) // of a machine without a role
	t.Cleanup(metadata.Close)
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata.URL)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	machine, err := awsconfig.LoadDefaultConfig(t.Context())
	must.OK(t, err)
	key, err := good.Credentials.Retrieve(t.Context())
	must.OK(t, err)
	return map[string]failingProvider{
		"no-token-file": {role(refusal(http.StatusForbidden, "AccessDenied"), stscreds.IdentityTokenFile("none")),
			"unable to read file at none"},
		"role-refused": {role(refusal(http.StatusForbidden, "AccessDenied"), token{}), "AssumeRoleWithWebIdentity"},
		"token-expired": {role(refusal(http.StatusBadRequest, "ExpiredTokenException"), token{}),
			"ExpiredTokenException"},
		"no-machine-role": {machine.Credentials, "request to EC2 IMDS failed"},
		"unknown-key": {credentials.NewStaticCredentialsProvider("UNKNOWN", key.SecretAccessKey, ""),
			"InvalidAccessKeyId"},
		"unknown-session": {credentials.NewStaticCredentialsProvider(key.AccessKeyID, key.SecretAccessKey, "unknown"),
			"InvalidTokenId"},
	}
}

// Where the credentials of the server fail in the middle of a session, all that needs S3 gets 451, and nothing is
// taken for missing or forbidden. The log has the reason. With credentials the session continues.
func TestCredentialsFail(t *testing.T) {
	s := s3test.Start(t, "minio")
	cfg := servicetest.NewConfig(t, s)
	cfg.S3.AccessKeyID, cfg.S3.SecretAccessKey = "", value.Secret{}
	cfg.Tenants["acme"].Users["alice"].Home = "/"
	base := s.AWSConfig()
	var provider atomic.Pointer[aws.CredentialsProvider]
	good := base.Credentials
	provider.Store(&good)
	failing := failingProviders(t, base)
	base.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		return (*provider.Load()).Retrieve(ctx)
	})
	log := &servicetest.Log{}
	srv := start(t, cfg, Options{AWS: base, Logger: log.Logger()})
	c := session(t, srv, "alice")
	c.Store("file", "content")
	c.Command(257, "MKD directory")
	c = session(t, srv, "alice") // which remembers nothing of the file
	c.Command(200, "TYPE I")
	for name, fails := range failing {
		t.Run(name, func(t *testing.T) {
			log.Take()
			provider.Store(&fails.CredentialsProvider)
			const unavailable = "The storage is not available right now. Please try again later."
			for _, command := range []string{
				"SIZE file", "MDTM file", "MLST file", "DELE file", "MKD other", "RMD directory", "CWD directory",
				"HASH file", "MFMT 20240102030405 file",
				"SITE COPY file copy", "SITE RMDIR directory",
			} {
				if text := c.Command(451, command); text != unavailable {
					t.Errorf("%s: %q", command, text)
				}
			}
			for _, command := range []string{"RETR file", "STOR file", "APPE file", "NLST", "MLSD directory"} {
				data := c.Data()
				reply, err := c.Send(command)
				if err == nil && strings.HasPrefix(reply, "150 ") {
					_ = data.Close()
					reply, err = c.Conn.Reply()
				}
				_ = data.Close()
				if err != nil || reply != "451 "+unavailable {
					t.Errorf("%s: %q, %v", command, reply, err)
				}
			}
			if log.Has("IAM policy") || !log.Has(fails.reason) {
				t.Errorf("the log asks for rights, or lacks %q:\n%s", fails.reason, log)
			}
			provider.Store(&good)
			if got := c.Transfer("RETR file"); got != "content" {
				t.Errorf("the file has %q", got)
			}
		})
	}
}
