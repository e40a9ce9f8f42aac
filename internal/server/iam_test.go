package server

import (
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/internal/base/bytesize"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// A permissionLog records the permissions that the requests of clients need.
type permissionLog struct {
	region s3client.Region
	mu     sync.Mutex
	needs  map[s3client.Need]string // operation by need
}

// watch records the requests of all clients that are created from reach.
func (l *permissionLog) watch(reach *aws.Config) *aws.Config {
	return before(reach, func(in any) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, need := range l.region.Needs(in) {
			l.needs[need] = fmt.Sprintf("%T", in)
		}
		return nil
	})
}

// allows reports whether a policy grants a permission. Patterns have one wildcard, at the end.
func allows(p s3client.Policy, want s3client.Permission) bool {
	return slices.ContainsFunc(p.Statement, func(s s3client.Statement) bool {
		return slices.Contains(s.Action, want.Action) && slices.ContainsFunc(s.Resource, func(pattern string) bool {
			prefix, open := strings.CutSuffix(pattern, "*")
			return pattern == want.Resource || open && strings.HasPrefix(want.Resource, prefix)
		})
	})
}

// A tenantWork is the configuration of a tenant and the work of its users.
type tenantWork struct {
	configure func(cfg *config.Config, t *config.Tenant)
	before    []string // existing keys, below the prefix
	work      func(t *testing.T, c *ftptest.Client)
	idle      []string // actions that are only needed after failures, which this work does not cause
}

// prepare creates the bucket and the configuration, whose credentials come from the SDK.
func (w tenantWork) prepare(t *testing.T, s *s3test.Server, cfg *config.Config, acme *config.Tenant) {
	t.Helper()
	acme.Users["alice"].Home = "/"
	if w.configure != nil {
		w.configure(cfg, acme)
	}
	if acme.Overwrite == config.VersionOverwrite || acme.VersionsDirectory != "" {
		if _, err := s.Client().PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{
			Bucket:                  &acme.Bucket,
			VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range w.before {
		if _, err := s.Client().PutObject(t.Context(), &s3.PutObjectInput{
			Bucket: &acme.Bucket, Key: aws.String(path.Join(acme.Prefix, key)), Body: strings.NewReader("content"),
		}); err != nil {
			t.Fatal(err)
		}
	}
	cfg.S3.AccessKeyID, cfg.S3.SecretAccessKey = "", value.Secret{}
}

// workOf returns tenants of all kinds.
func workOf(t *testing.T) map[string]tenantWork {
	const part = 5 << 20
	big := strings.Repeat("0123456789abcdef", (2*part+100)/16)
	permissions := func(all ...config.Permission) func(*config.Config, *config.Tenant) {
		return func(_ *config.Config, t *config.Tenant) { t.Permissions = all }
	}
	read := func(_ *testing.T, c *ftptest.Client) {
		c.Want("content", "RETR file")
		c.Command(213, "SIZE file")
		c.Command(550, "SIZE missing")
		c.Transfer("MLSD")
	}
	interruptLarge := func(t *testing.T, c *ftptest.Client) {
		interrupt(t, c, "large", big, func() {
			for !strings.Contains(c.Command(211, "STAT"), "10 Mi") { // rounded, so at least one part is complete
			}
		})
	}
	write := func(t *testing.T, c *ftptest.Client) {
		interruptLarge(t, c)
		c.Store("small", "content")
		c.Store("large", big)
		upload := c.Data()
		c.Command(150, "APPE large")
		_, _ = io.WriteString(upload, "end")
		_ = upload.Close()
		c.Reply(226)
		c.Command(213, "MFMT 20200102030405 small")
		c.Command(257, "MKD directory")
	}
	change := func(t *testing.T, c *ftptest.Client) {
		write(t, c)
		c.Command(350, "RNFR large")
		c.Command(250, "RNTO larger")
		c.Command(350, "SITE CPFR small")
		c.Command(250, "SITE CPTO directory/copy")
		c.Command(350, "RNFR directory")
		c.Command(250, "RNTO renamed")
		c.Command(250, "DELE larger")
		c.Command(250, "DELE renamed/copy")
		c.Command(250, "RMD renamed")
		c.Command(250, "DELE small")
	}
	return map[string]tenantWork{
		"all": {before: []string{"file"}, work: func(t *testing.T, c *ftptest.Client) { read(t, c); change(t, c) }},
		"kms": {
			configure: func(_ *config.Config, t *config.Tenant) {
				t.Objects = config.Objects{Encryption: config.EncryptionKMS, KMSKeyID: s3test.KMSKey}
			},
			work: change,
		},
		"whole-bucket": {
			configure: func(_ *config.Config, t *config.Tenant) { t.Prefix = "" },
			work:      change,
		},
		"quarantine": {
			configure: func(_ *config.Config, acme *config.Tenant) {
				acme.Inspect = inspectedBy(t, refuseBad)
				acme.Inspect.Quarantine = "held/"
			},
			work: func(t *testing.T, c *ftptest.Client) {
				change(t, c)
				for name, content := range map[string]string{"small": "is bad", "large": big + "bad"} {
					if reply, err := c.Upload("STOR "+name, content); err != nil || !strings.HasPrefix(reply, "550 ") {
						t.Errorf("got %q, %v", reply, err)
					}
				}
			},
		},
		"read-only": {configure: permissions(config.List, config.Read), before: []string{"file"}, work: read},
		"drop-box": {configure: permissions(config.Write), work: func(t *testing.T, c *ftptest.Client) {
			c.Store("large", big)
		}, idle: []string{s3client.AbortMultipartUpload, s3client.GetObject}},
		"no-delete": {
			configure: permissions(config.List, config.Read, config.Write, config.Mkdir), before: []string{"file"},
			work: func(t *testing.T, c *ftptest.Client) {
				read(t, c)
				write(t, c)
				c.Command(550, "DELE small")
			},
		},
		"delete-only": {
			configure: permissions(config.List, config.Delete), before: []string{"directory/file", "directory/other"},
			work: func(t *testing.T, c *ftptest.Client) {
				c.Command(250, "DELE directory/file")
				c.Command(250, "DELE directory/other")
			},
		},
		"resumed": {
			configure: func(_ *config.Config, t *config.Tenant) { t.Resume = config.KeepInterrupted },
			work: func(t *testing.T, c *ftptest.Client) {
				interruptLarge(t, c)
				c.Command(350, "REST "+c.Command(213, "SIZE large"))
				c.Store("large", "end")
				change(t, c)
			},
			idle: []string{s3client.AbortMultipartUpload}, // for removing replaced versions later
		},
		"tags-and-acl": {
			configure: func(_ *config.Config, t *config.Tenant) {
				t.Objects = config.Objects{Tags: map[string]string{"owner": "acme"}, ACL: "private"}
			},
			work: change,
		},
		"versions": {
			configure: func(_ *config.Config, t *config.Tenant) { t.Overwrite = config.VersionOverwrite },
			work:      change,
		},
		"versions-directory": {
			configure: func(_ *config.Config, t *config.Tenant) {
				t.VersionsDirectory, t.Restore.Days = ".versions", 3
			},
			work: func(t *testing.T, c *ftptest.Client) {
				change(t, c)
				c.Store("file", "content")
				c.Command(250, "DELE file")
				c.Want("content", "RETR /.versions/deleted/file")
				c.Transfer("MLSD /.versions/deleted")
				c.Command(350, "RNFR /.versions/deleted/file")
				c.Command(250, "RNTO file")
			},
			idle: []string{s3client.GetVersionTagging, s3client.GetObjectTagging, s3client.PutObjectTagging,
				s3client.RestoreObject},
		},
		"no-overwrite": {
			configure: func(_ *config.Config, t *config.Tenant) { t.Overwrite = config.DenyOverwrite },
			work:      func(t *testing.T, c *ftptest.Client) { c.Store("small", "content"); c.Store("large", big) },
		},
		"quota-and-folder": {
			configure: func(_ *config.Config, t *config.Tenant) {
				t.Quota = bytesize.Size(100 << 20)
				t.Folders = map[string]*config.Folder{"/folder": {Bucket: t.Bucket, Prefix: "elsewhere/"}}
			},
			work: func(t *testing.T, c *ftptest.Client) {
				change(t, c)
				c.Store("/folder/small", "content")
				c.Command(350, "RNFR /folder/small")
				c.Command(250, "RNTO moved")
				c.Command(250, "DELE moved")
			},
		},
	}
}

// On a server that enforces the printed policy of a tenant, all of the tenant's work succeeds. The policy contains the
// permissions of each request, and no unused action.
func TestPolicySuffices(t *testing.T) {
	for name, tc := range workOf(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := s3test.Start(t, "minio")
			cfg := servicetest.NewConfig(t, s)
			acme := cfg.Tenants["acme"]
			tc.prepare(t, s, cfg, acme)
			policy := policyOf(t, cfg, s)

			used := &permissionLog{region: s3client.Region(s.Region), needs: map[s3client.Need]string{}}
			log := &servicetest.Log{}
			srv := start(
				t, cfg, Options{AWS: used.watch(s.Restricted(t, policy).AWSConfig()),
					Logger: log.Logger()})
			c := ftptest.Dial(t, srv.Addr().String())
			c.Login("alice", servicetest.Password)
			c.Command(200, "TYPE I")
			tc.work(t, c)

			if log.Has("denies it") || log.Has("AccessDenied") {
				t.Errorf("S3 denied a request:\n%s", log)
			}
			used.mu.Lock()
			defer used.mu.Unlock()
			actions := map[string]bool{}
			for need, operation := range used.needs {
				switch {
				case need.Case == s3client.Tagged && acme.Objects.Tags == nil:
					continue
				case need.Case == s3client.KMS || strings.HasPrefix(need.Action, "kms:") ||
					need.Action == s3client.PutObjectACL:
					continue // unknown to MinIO
				case strings.HasSuffix(operation, "HeadBucketInput") && acme.Prefix != "":
					continue // denied to clients that may only list a prefix; the server then lists the prefix
				}
				actions[need.Action] = true
				if !allows(policy, need.Permission) {
					t.Errorf("%s needs %v, which the policy does not allow", operation, need.Permission)
				}
			}
			for _, statement := range policy.Statement {
				for _, action := range statement.Action {
					// The probe needs GetBucketObjectLock.
					if !actions[action] && !slices.Contains(tc.idle, action) && action != s3client.GetBucketObjectLock {
						t.Errorf(
							"no request needs %s on %v; requests need %v", action, statement.Resource,
							slices.Sorted(maps.Keys(actions)))
					}
				}
			}
		})
	}
}

// interrupt sends a file, and aborts the transfer when received returns.
func interrupt(t *testing.T, c *ftptest.Client, name, content string, received func()) {
	t.Helper()
	data := begin(t, c, "STOR "+name, content)
	received()
	c.Command(426, "ABOR")
	c.Reply(226)
	_ = data.Close()
}

// policyOf returns the policy of the tenant acme.
func policyOf(t *testing.T, cfg *config.Config, s *s3test.Server) s3client.Policy {
	t.Helper()
	srv, err := New(t.Context(), cfg, Options{AWS: s.AWSConfig()})
	must.OK(t, err)
	b, ok := srv.Bucket("acme")
	if !ok {
		t.Fatal("missing bucket of acme")
	}
	return s3client.PolicyFor(t.Context(), append(b.Folders, b)...)
}
