package server

import (
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// If STS does not renew the credentials of a tenant, its clients get 451, and other tenants are not affected.
func TestRoleIsNotRenewed(t *testing.T) {
	s := s3test.Start(t, "minio")
	sts := s3test.StartSTS(t, s)
	cfg := servicetest.NewConfig(t, s)
	cfg.S3.AssumeRole = config.AssumeRole{RoleARN: "arn:aws:iam::123456789012:role/ftp", ExternalID: "{tenant}"}
	cfg.Tenants["umbrella"] = &config.Tenant{Bucket: s.Bucket(t),
		Users: map[string]*config.User{"bob": {PasswordHash: servicetest.PasswordHash()}}}
	var refuse atomic.Bool
	sts.Respond(func(request url.Values) s3test.STSResponse {
		if request.Get("ExternalId") != "acme" {
			return s3test.STSResponse{}
		}
		if refuse.Load() {
			return s3test.STSResponse{Status: http.StatusForbidden, Code: "AccessDenied"}
		}
		return s3test.STSResponse{Expires: time.Now().Add(-time.Second)} // each request needs new credentials
	})
	srv := start(t, cfg, Options{AWS: sts.Config(t, s.AWSConfig())})
	acme, umbrella := ftptest.Dial(t, srv.Addr().String()), ftptest.Dial(t, srv.Addr().String())
	acme.Login("alice", servicetest.Password)
	umbrella.Login("bob", servicetest.Password)
	acme.Store("before", "content")

	refuse.Store(true)
	acme.Command(451, "MKD directory")
	acme.Command(451, "SIZE before")
	upload := acme.Data()
	acme.Command(150, "STOR during")
	_ = upload.Close()
	acme.Reply(451)
	umbrella.Store("during", "content")
	umbrella.Want("during\r\n", "NLST")

	refuse.Store(false)
	acme.Want("before\r\n", "NLST")
	acme.Store("after", "content")
	if _, body := get(t, srv, "/metrics"); !strings.Contains(
		body, `babelftp_s3_requests_total{operation="AssumeRole",status="403"`) {
		t.Error("/metrics lacks the refusals of STS")
	}
}
