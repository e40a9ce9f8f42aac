package s3client

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// MinIO has its own STS at the address of S3. The temporary credentials give access to the bucket.
func TestAssumeRoleOnMinIO(t *testing.T) {
	s := s3test.Start(t, "minio")
	cfg := servicetest.NewConfig(t, s)
	cfg.S3.AssumeRole = config.AssumeRole{RoleARN: "arn:minio:iam:::role/{tenant}", ExternalID: "ignored",
		SessionTags: map[string]string{"tenant": "{tenant}"}}
	reach := s.AWSConfig()
	seen := watch(reach)
	b, err := checked(t, cfg, reach)
	must.OK(t, err)
	if _, err := b.Client.PutObject(
		t.Context(), &s3.PutObjectInput{Bucket: &b.Name, Key: aws.String("a"),
			Body: strings.NewReader("content")}); err != nil {
		t.Error(err)
	}
	var keys []string
	for _, request := range seen.requests {
		keys = append(keys, accessKeyOf(request.Header.Get("Authorization")))
		if token := request.Header.Get("X-Amz-Security-Token"); (token != "") != (len(keys) > 1) {
			t.Errorf("request %d, %s %s: session token %q", len(keys), request.Method, request.URL, token)
		}
	}
	if len(keys) != 4 || keys[0] != s.AccessKeyID || keys[1] == s.AccessKeyID || keys[2] != keys[1] ||
		keys[3] != keys[1] {
		t.Errorf("AssumeRole, HeadBucket, GetBucketVersioning and PutObject are signed by %v", keys)
	}
}

// accessKeyOf returns the access key ID in an Authorization header (AWS Signature Version 4).
func accessKeyOf(authorization string) string {
	_, id, _ := strings.Cut(authorization, "Credential=")
	id, _, _ = strings.Cut(id, "/")
	return id
}

// withRole returns a configuration with the tenants acme, umbrella and zebra, which assume roles. zebra has its own
// keys and role, and a folder in another bucket.
func withRole(t *testing.T, s *s3test.Server) *config.Config {
	t.Helper()
	cfg := servicetest.NewConfig(t, s)
	cfg.S3.AssumeRole = config.AssumeRole{
		RoleARN: "arn:aws:iam::123456789012:role/ftp", ExternalID: "babelftp/{tenant}",
		SessionTags: map[string]string{"tenant": "{tenant}", "stage": "test"},
	}
	cfg.Tenants["umbrella"] = &config.Tenant{Presign: 2 * time.Hour, Bucket: cfg.Tenants["acme"].Bucket, Users: cfg.Tenants["acme"].Users,
		Hosts: []string{"ftp.umbrella.example"}}
	cfg.Tenants["zebra"] = &config.Tenant{
		Bucket: s.Bucket(t), Users: cfg.Tenants["acme"].Users, Hosts: []string{"ftp.zebra.example"},
		S3: config.S3{
			AccessKeyID: s.AccessKeyID, SecretAccessKey: cfg.S3.SecretAccessKey,
			AssumeRole: config.AssumeRole{RoleARN: "arn:aws:iam::210987654321:role/{tenant}",
				SessionTags: map[string]string{}},
		},
		Folders: map[string]*config.Folder{"/a": {Prefix: "a/"},
			"/b": {Bucket: s.Bucket(t), S3: config.S3{AssumeRole: config.AssumeRole{ExternalID: "of-the-folder"}}}},
	}
	return cfg
}

// The request contains all configured values, and the credentials of a tenant are never used for another tenant.
func TestAssumeRole(t *testing.T) {
	s := s3test.Start(t, "minio")
	sts := s3test.StartSTS(t, s)
	cfg := withRole(t, s)
	must.OK(t, cfg.Validate())
	reach := sts.Config(t, s.AWSConfig())
	seen := watch(reach)
	all, err := verify(t.Context(), cfg, reach)
	must.OK(t, err)
	for i, want := range []map[string]string{
		{
			"RoleArn": "arn:aws:iam::123456789012:role/ftp", "ExternalId": "babelftp/acme",
			"RoleSessionName": "babelftp-acme", "DurationSeconds": "3600",
			"Tags.member.1.Key": "stage", "Tags.member.1.Value": "test", "Tags.member.2.Key": "tenant",
			"Tags.member.2.Value": "acme",
		},
		{
			"RoleArn": "arn:aws:iam::123456789012:role/ftp", "ExternalId": "babelftp/umbrella",
			"RoleSessionName": "babelftp-umbrella", "DurationSeconds": "7500",
			"Tags.member.1.Key": "stage", "Tags.member.1.Value": "test", "Tags.member.2.Key": "tenant",
			"Tags.member.2.Value": "umbrella",
		},
		{"RoleArn": "arn:aws:iam::210987654321:role/zebra", "ExternalId": "babelftp/zebra",
			"RoleSessionName": "babelftp-zebra", "DurationSeconds": "3600"},
		{"RoleArn": "arn:aws:iam::210987654321:role/zebra", "ExternalId": "of-the-folder",
			"RoleSessionName": "babelftp-zebra", "DurationSeconds": "3600"},
	} {
		requests := sts.Requests()
		if len(requests) != 4 {
			t.Fatalf("got %d AssumeRole requests", len(requests))
		}
		got := map[string]string{}
		for key := range requests[i].Values {
			got[key] = requests[i].Get(key)
		}
		want["Action"], want["Version"] = "AssumeRole", "2011-06-15"
		if !maps.Equal(got, want) {
			t.Errorf("request %d\ngot  %v\nwant %v", i, got, want)
		}
		if id := accessKeyOf(requests[i].Authorization); id != s.AccessKeyID {
			t.Errorf("request %d is signed by %s", i, id)
		}
	}
	issued := func(i int) string { return sts.Requests()[i].Issued }
	// The folder /a shares the role of its tenant.
	for i, want := range []string{issued(0), issued(1), issued(2), issued(2), issued(3)} {
		b := all[i]
		seen.requests = nil
		if err := b.Check(t.Context()); err != nil {
			t.Error(err)
		}
		if len(seen.requests) != 1 || accessKeyOf(seen.requests[0].Header.Get("Authorization")) != want {
			t.Errorf(
				"%s %s: got %d requests, or other credentials than those the role has", b.Tenant, b.Folder, len(seen.requests))
		}
	}
}

// Two tenants with roles never share a client, even if all of their settings are equal.
func TestRolesAreNotShared(t *testing.T) {
	cfg := servicetest.NewConfig(t, s3test.Start(t, "sim-aws"))
	cfg.S3.AssumeRole = config.AssumeRole{RoleARN: "arn:aws:iam::123456789012:role/ftp"}
	cfg.Tenants["umbrella"] = &config.Tenant{Bucket: "umbrella", Presign: 30 * time.Minute,
		Folders: map[string]*config.Folder{"/a": {Prefix: "a/"}}}
	all, err := open(t.Context(), cfg, nil)
	must.OK(t, err)
	if all[0].Client == all[1].Client || all[0].account.role.cache == all[1].account.role.cache {
		t.Error("two tenants share credentials")
	}
	if acme, umbrella := all[0].account.role.renewed.Before,
		all[1].account.role.renewed.Before; acme != config.RoleRenewBefore || umbrella != 30*time.Minute {
		t.Errorf("credentials are renewed %s and %s before they expire, which is too late for links", acme, umbrella)
	}
	if all[1].Client != all[2].Client {
		t.Error("the folder of a tenant does not share the client")
	}
}

// Credentials are renewed before they expire. If STS does not renew them, they are used until they expire, and then
// the error says what to do.
func TestRenewedRole(t *testing.T) {
	s := s3test.Start(t, "minio")
	sts := s3test.StartSTS(t, s)
	cfg := withRole(t, s)
	b, err := checked(t, cfg, sts.Config(t, s.AWSConfig()))
	must.OK(t, err)
	role := b.account.role
	check := func(wantRequests int) error {
		t.Helper()
		before := len(sts.Requests())
		role.cache.Invalidate() // simulates the time of renewal
		err := b.Check(t.Context())
		if n := len(sts.Requests()) - before; n != wantRequests {
			t.Errorf("got %d AssumeRole requests, want %d", n, wantRequests)
		}
		return err
	}
	if c, err := role.cache.Retrieve(t.Context()); err != nil ||
		role.renewed.Expires.Sub(c.Expires) != config.RoleRenewBefore {
		t.Errorf("credentials that expire at %s: got renewal at %s, %v", role.renewed.Expires, c.Expires, err)
	}
	if err := check(1); err != nil {
		t.Error(err)
	}
	ends := time.Now().Add(2 * time.Minute)
	sts.Respond(func(url.Values) s3test.STSResponse { return s3test.STSResponse{Expires: ends} })
	if err := check(1); err != nil {
		t.Error(err)
	}
	c, err := role.cache.Retrieve(t.Context())
	if err != nil || time.Until(c.Expires) > renewRetry || time.Until(c.Expires) <= 0 {
		t.Errorf("credentials that expire soon: got renewal at %s, %v", c.Expires, err)
	}

	sts.Respond(func(url.Values) s3test.STSResponse {
		return s3test.STSResponse{Status: http.StatusForbidden, Code: "AccessDenied"}
	})
	if last, err := role.renewed.HandleFailToRefresh(t.Context(), c, fmt.Errorf("refused")); err != nil ||
		last.AccessKeyID != c.AccessKeyID ||
		last.Expires.After(role.renewed.Expires) {
		t.Errorf("unexpected previous credentials %v, %v", last.AccessKeyID, err)
	}
	role.renewed.Expires = time.Now()
	want := fmt.Sprintf("tenant acme: bucket %q: ", b.Name) + denied(sts.URL, "")
	if err := check(1); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// Each failure of STS gives a one-line error that says what to do.
func TestAssumeRoleErrors(t *testing.T) {
	s := s3test.Start(t, "minio")
	sts := s3test.StartSTS(t, s)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	nobody := closed.Addr().String()
	_ = closed.Close()
	const role = "arn:aws:iam::123456789012:role/ftp"
	for name, tc := range map[string]struct {
		change func(*config.Config)
		answer s3test.STSResponse
		want   string // follows the tenant and the bucket
	}{
		"unreachable": {
			func(*config.Config) {}, s3test.STSResponse{},
			"cannot reach STS at http://" + nobody + " for the role " + role + ": dial tcp " + nobody +
				": connect: connection refused: " +
				"start that server, or correct AWS_ENDPOINT_URL_STS",
		},
		"wrong-keys": {
			func(*config.Config) {}, s3test.STSResponse{Status: http.StatusForbidden, Code: "InvalidClientTokenId"},
			"STS at " + sts.URL + " refuses AssumeRole for the role " + role +
				" (InvalidClientTokenId): " +
				"correct s3.access_key_id and its secret, or the credentials of the AWS SDK",
		},
		"too-long": {
			func(*config.Config) {}, s3test.STSResponse{Status: http.StatusBadRequest, Code: "ValidationError",
				Message: "DurationSeconds exceeds\nthe maximum"},
			"STS at " + sts.URL + " refuses AssumeRole for the role " + role +
				" (ValidationError: DurationSeconds exceeds the maximum): correct s3.assume_role",
		},
		"of-the-tenant": {
			func(c *config.Config) { c.Tenants["acme"].S3.AssumeRole.RoleARN = role + "2" },
			s3test.STSResponse{Status: http.StatusBadRequest, Code: "PackedPolicyTooLarge", Message: "tags"},
			"STS at " + sts.URL + " refuses AssumeRole for the role " + role +
				"2 (PackedPolicyTooLarge: tags): correct tenants.acme.s3.assume_role",
		},
		"another-code": {
			func(*config.Config) {},
			s3test.STSResponse{Status: http.StatusNotFound, Code: "Nothing"},
			"STS at " + sts.URL + " refuses AssumeRole for the role " + role +
				" (Nothing)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := withRole(t, s)
			for _, other := range slices.Collect(maps.Keys(cfg.Tenants)) {
				if other != "acme" {
					delete(cfg.Tenants, other)
				}
			}
			tc.change(cfg)
			at := sts.URL
			if name == "unreachable" {
				at = "http://" + nobody
			}
			sts.Respond(func(url.Values) s3test.STSResponse { return tc.answer })
			b, err := checked(t, cfg, s3test.STSAt(t, s.AWSConfig(), at))
			if want := fmt.Sprintf("tenant acme: bucket %q: %s", b.Name, tc.want); err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

// Real servers refuse as well: MinIO rejects a wrong key, and versitygw, which has no STS, rejects the request.
func TestAssumeRoleIsRefused(t *testing.T) {
	s3test.Run(t, func(t *testing.T, s *s3test.Server) {
		cfg := servicetest.NewConfig(t, s)
		cfg.S3.AssumeRole.RoleARN = "arn:aws:iam::123456789012:role/ftp"
		if s.Name == "minio" {
			cfg.S3.SecretAccessKey = value.NewSecret("wrong")
		}
		b, err := checked(t, cfg, s.AWSConfig())
		want := fmt.Sprintf(
			"tenant acme: bucket %q: no STS found at %s for the role %s (HTTP status 4", b.Name, s.Endpoint,
			cfg.S3.AssumeRole.RoleARN)
		if s.Name == "minio" {
			want = fmt.Sprintf("tenant acme: bucket %q: ", b.Name) + denied(s.Endpoint, ": The request signature we calculated "+
				"does not match the signature you provided. Check your key and signing method.")
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	})
}

// denied returns the error if STS refuses the role with this message.
func denied(server, message string) string {
	return "STS at " + server +
		" refuses AssumeRole for the role arn:aws:iam::123456789012:role/ftp (AccessDenied" + message + "): allow " +
		"sts:AssumeRole, and sts:TagSession for session tags, in the trust policy of the role and to the credentials that assume it; " +
		"compare s3.assume_role.external_id and s3.access_key_id"
}

// If S3 denies a request of a role, the error names the role and the request.
func TestBucketRefusedToRole(t *testing.T) {
	s := s3test.Start(t, "minio")
	sts := s3test.StartSTS(t, s)
	cfg := withRole(t, s)
	reach := sts.Config(t, s.AWSConfig())
	seen := watch(reach)
	seen.answer = func(response *http.Response) {
		if response.Request.Method != http.MethodPost { // AssumeRole
			response.StatusCode = http.StatusForbidden
			response.Body = io.NopCloser(strings.NewReader("<Error><Code>AccessDenied</Code></Error>"))
		}
	}
	b, err := checked(t, cfg, reach)
	want := fmt.Sprintf(
		"tenant acme: bucket %q: %s does not let the role arn:aws:iam::123456789012:role/ftp use it: ListObjectsV2 (AccessDenied): allow s3:",
		b.Name, s.Endpoint)
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
