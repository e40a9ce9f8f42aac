package server

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// If S3 rejects the credentials in the middle of a session, every command that needs S3 gets 451. Nothing is reported
// as missing or forbidden, although the responses to HEAD have no error code. The log has the reason. With valid
// credentials, the session continues.
func TestCredentialsFail(t *testing.T) {
	s := s3test.Start(t, "minio")
	cfg := servicetest.NewConfig(t, s)
	cfg.S3.AccessKeyID, cfg.S3.SecretAccessKey = "", value.Secret{}
	cfg.Tenants["acme"].Users["alice"].Home = "/"
	base := s.AWSConfig()
	var provider atomic.Pointer[aws.CredentialsProvider]
	good := base.Credentials
	provider.Store(&good)
	key, err := good.Retrieve(t.Context())
	must.OK(t, err)
	base.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		return (*provider.Load()).Retrieve(ctx)
	})
	log := &servicetest.Log{}
	srv := start(t, cfg, Options{AWS: base, Logger: log.Logger()})
	c := session(t, srv, "alice")
	c.Store("file", "content")
	c.Command(257, "MKD directory")
	c = session(t, srv, "alice") // a session without cached metadata
	c.Command(200, "TYPE I")
	for reason, unknown := range map[string]aws.CredentialsProvider{
		"InvalidAccessKeyId": credentials.NewStaticCredentialsProvider("UNKNOWN", key.SecretAccessKey, ""),
		"InvalidTokenId":     credentials.NewStaticCredentialsProvider(key.AccessKeyID, key.SecretAccessKey, "unknown"),
	} {
		t.Run(reason, func(t *testing.T) {
			log.Take()
			provider.Store(&unknown)
			const unavailable = "The storage is not available right now. Please try again later."
			for _, command := range []string{
				"SIZE file", "MDTM file", "MLST file", "DELE file", "MKD other", "RMD directory", "CWD directory",
				"HASH file", "MFMT 20240102030405 file",
				"SITE COPY file copy", "SITE RMDIR directory",
			} {
				c.WantReply(451, unavailable, command)
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
			if log.Has("IAM policy") || !log.Has(reason) {
				t.Errorf("the log mentions permissions, or lacks %q:\n%s", reason, log)
			}
			provider.Store(&good)
			c.Want("content", "RETR file")
		})
	}
}
