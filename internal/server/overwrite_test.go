package server

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// With "overwrite: deny", no command changes the bytes of an existing file.
func TestDenyOverwrite(t *testing.T) {
	s3test.Run(t, func(t *testing.T, s *s3test.Server) {
		cfg := servicetest.NewConfig(t, s)
		acme := cfg.Tenants["acme"]
		acme.Overwrite = config.DenyOverwrite
		acme.Users["editor"] = &config.User{PasswordHash: servicetest.PasswordHash(), Overwrite: config.AllowOverwrite}
		put(t, s, cfg, "alice/there", "alice/other")
		srv := start(t, cfg, Options{AWS: s.AWSConfig()})

		c := session(t, srv, "alice")
		refused := func(commands ...string) {
			t.Helper()
			conn := c.Data()
			defer conn.Close()
			for _, command := range commands[:len(commands)-1] {
				c.Command(350, command)
			}
			if text := c.Command(550, commands[len(commands)-1]); text !=
				"The file already exists and you may not overwrite it. Please use another name. (there)" {
				t.Error(text)
			}
		}
		refused("STOR there")
		refused("APPE there")
		refused("REST 3", "STOR there")
		refused("RNFR other", "RNTO there")
		c.Command(213, "MFMT 20240102030405 there")
		if entry := c.Command(250, "MLST there"); !strings.Contains(entry, "perm=dfr;") {
			t.Errorf("MLST: %s", entry)
		}
		c.Want("content", "RETR there")

		c.Command(250, "DELE there")
		c.Store("there", "again")
		session(t, srv, "editor").Store("/alice/there", "edited")
		c.Want("edited", "RETR there")
		listed, err := s.Client().ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &acme.Bucket})
		if err != nil || len(listed.Contents) != 2 {
			t.Errorf("got %d objects, %v", len(listed.Contents), err)
		}
	})
}

// With "overwrite: version", an overwritten file can be recovered, so the bucket must have versioning enabled.
func TestVersionOverwrite(t *testing.T) {
	s3test.Run(t, func(t *testing.T, s *s3test.Server) {
		cfg := servicetest.NewConfig(t, s)
		acme := cfg.Tenants["acme"]
		acme.Users["alice"].Overwrite = config.VersionOverwrite
		// users have no write permission there
		acme.Folders = map[string]*config.Folder{"/archive": {Bucket: s.Bucket(t), Permissions: granted("lr")}}
		want := fmt.Sprintf(
			"tenant acme: bucket %q: versioning is not enabled, which overwrite: version requires: "+
				"enable versioning, or set overwrite: deny", acme.Bucket)
		if got := probe(t, cfg, s.AWSConfig()); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if s.Name != "minio" { // the only one with versioning
			return
		}
		_, err := s.Client().PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{
			Bucket:                  &acme.Bucket,
			VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
		})
		must.OK(t, err)
		c := session(t, start(t, cfg, Options{AWS: s.AWSConfig()}), "alice")
		c.Store("f", "first")
		c.Store("f", "second")
		c.Command(250, "DELE f")
		versions, err := s.Client().ListObjectVersions(t.Context(), &s3.ListObjectVersionsInput{Bucket: &acme.Bucket})
		if err != nil || len(versions.Versions) != 2 {
			t.Errorf("got %d versions, %v", len(versions.Versions), err)
		}
		acme.Users["alice"].Overwrite = config.DenyOverwrite
		before := len(versions.Versions) + len(versions.DeleteMarkers)
		if got := probe(t, cfg, s.AWSConfig()); got != "" {
			t.Error(got)
		}
		versions, err = s.Client().ListObjectVersions(t.Context(), &s3.ListObjectVersionsInput{Bucket: &acme.Bucket})
		if after := len(versions.Versions) + len(versions.DeleteMarkers); err != nil || after != before {
			t.Errorf("the check left %d versions, %v", after-before, err)
		}
	})
}

// withoutConditions simulates an S3 server that ignores If-None-Match in one operation, for keys with this suffix.
func withoutConditions(cfg *aws.Config, operation, suffix string) {
	cfg.APIOptions = append(cfg.APIOptions, func(stack *middleware.Stack) error {
		return stack.Build.Add(middleware.BuildMiddlewareFunc("without-conditions", func(
			ctx context.Context, in middleware.BuildInput, next middleware.BuildHandler,
		) (middleware.BuildOutput, middleware.Metadata, error) {
			request, ok := in.Request.(*smithyhttp.Request)
			if ok && middleware.GetOperationName(ctx) == operation && strings.HasSuffix(request.URL.Path, suffix) {
				request.Header.Del("If-None-Match")
			}
			return next.HandleBuild(ctx, in)
		}), middleware.After)
	})
}

// A server that would silently overwrite files is rejected if files must not be overwritten.
func TestServerWithoutConditions(t *testing.T) {
	s := s3test.Start(t, "sim-aws")
	for name, tc := range map[string]struct{ operation, suffix string }{
		"PutObject":               {"PutObject", ""},
		"CompleteMultipartUpload": {"CompleteMultipartUpload", ""},
		// These servers check first and then store: of several simultaneous requests, more than one succeeds.
		"PutObject-checks-first":               {"PutObject", "-puts"},
		"CompleteMultipartUpload-checks-first": {"CompleteMultipartUpload", "-uploads"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := servicetest.NewConfig(t, s)
			acme := cfg.Tenants["acme"]
			acme.Overwrite = config.DenyOverwrite
			reach := s.AWSConfig()
			withoutConditions(reach, tc.operation, tc.suffix)
			want := fmt.Sprintf(
				"tenant acme: bucket %q: its S3 server does not support If-None-Match, which overwrite: deny requires: "+
					"files would be overwritten: use a server that supports it, or set overwrite: allow or "+
					"overwrite: version", acme.Bucket)
			if got := probe(t, cfg, reach); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			left, err := s.Client().ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &acme.Bucket})
			if err != nil || len(left.Contents) != 0 {
				t.Errorf("the check left %d objects, %v", len(left.Contents), err)
			}
		})
	}
}

// STOR after REST keeps the bytes of the file behind the bytes of the client, or truncates the file there.
func TestSTORAfterREST(t *testing.T) {
	s3test.Run(t, func(t *testing.T, s *s3test.Server) {
		for choice, want := range map[config.StorAfterRest]string{"": "coNTent", config.KeepRest: "coNTent",
			config.TruncateRest: "coNT"} {
			cfg := servicetest.NewConfig(t, s)
			cfg.Tenants["acme"].Compatibility.StorAfterRest = choice
			put(t, s, cfg, "alice/there")
			c := session(t, start(t, cfg, Options{AWS: s.AWSConfig()}), "alice")
			c.Command(200, "TYPE I")
			conn := c.Data()
			c.Command(350, "REST 2")
			c.Command(150, "STOR there")
			must.Write(t, conn, "NT")
			_ = conn.Close()
			if r, err := c.Conn.Reply(); err != nil || !strings.HasPrefix(r, "226 ") {
				t.Fatalf("%q: %v, %v", choice, r, err)
			}
			c.Want(want, "RETR there")
		}
	})
}
