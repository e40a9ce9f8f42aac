package server

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// granted parses letters for permissions: l(ist) r(ead) w(rite) d(elete) n(ame, rename) m(kdir).
func granted(text string) []config.Permission {
	permissions := []config.Permission{}
	for i, p := range config.FilePermissions() {
		if strings.Contains(text, "lrwdnm"[i:i+1]) {
			permissions = append(permissions, p)
		}
	}
	return permissions
}

// permitted returns a user with permissions in the letters of [granted].
func permitted(t *testing.T, everywhere string, byPath map[string]string) *config.User {
	t.Helper()
	u := &config.User{PasswordHash: servicetest.PasswordHash(), Permissions: granted(everywhere),
		PathPermissions: map[string][]config.Permission{}}
	for pattern, letters := range byPath {
		u.PathPermissions[pattern] = granted(letters)
	}
	return u
}

// put stores objects under the prefix of the tenant acme.
func put(t *testing.T, s *s3test.Server, cfg *config.Config, keys ...string) {
	t.Helper()
	const atOnce = 16
	acme, client := cfg.Tenants["acme"], s.Client()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(atOnce)
	for _, key := range keys {
		group.Go(func() error {
			_, err := client.PutObject(ctx, &s3.PutObjectInput{
				Bucket: &acme.Bucket, Key: aws.String(acme.Prefix + key), Body: strings.NewReader("content"),
			})
			return err
		})
	}
	must.OK(t, group.Wait())
}

// session logs in as a user of the tenant acme.
func session(t *testing.T, srv *Server, user string) *ftptest.Client {
	t.Helper()
	c := ftptest.Dial(t, srv.Addr().String())
	c.Login(user+"@acme", servicetest.Password)
	return c
}
