package server

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// probe returns a line for each bucket that is not usable.
func probe(t *testing.T, cfg *config.Config, reach *aws.Config) string {
	t.Helper()
	srv, err := New(t.Context(), cfg, Options{AWS: reach})
	must.OK(t, err)
	var problems []string
	srv.ProbeBuckets(t.Context(), func(r *s3client.Report) {
		if !r.OK() {
			problems = append(problems, r.String())
		}
	})
	return strings.Join(problems, "\n")
}

// enforce makes the clients that are created from reach obey a policy, according to the table of needs. It replaces
// AWS, because MinIO requires fewer permissions. Objects have the tags and the KMS key of the tenant.
func enforce(reach *aws.Config, policy s3client.Policy, t *config.Tenant) *aws.Config {
	region := s3client.Region(reach.Region)
	return before(reach, func(in any) error {
		for _, need := range region.Needs(in) {
			switch {
			case need.Case == s3client.Missing, need.Case == s3client.Tagged && t.Objects.Tags == nil,
				need.Case == s3client.KMS && t.Objects.KMSKeyID == "":
				continue
			case need.Case == s3client.KMS:
				need.Resource, _ = region.KeyARN(t.Objects.KMSKeyID)
			}
			if !allows(policy, need.Permission) {
				return accessDenied()
			}
		}
		return nil
	})
}

// accessDenied returns the error of S3 for a missing permission.
func accessDenied() error {
	return &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusForbidden}},
		Err:      &smithy.GenericAPIError{Code: "AccessDenied", Message: "Access Denied"},
	}
}

// without returns the policy without one action of one statement.
func without(p s3client.Policy, statement int, action string) s3client.Policy {
	p.Statement = slices.Clone(p.Statement)
	s := &p.Statement[statement]
	s.Action = slices.DeleteFunc(slices.Clone(s.Action), func(a string) bool { return a == action })
	if len(s.Action) == 0 {
		p.Statement = slices.Delete(p.Statement, statement, statement+1)
	}
	return p
}

// A probe names exactly the actions that a policy lacks.
func TestProbeNamesTheMissingAction(t *testing.T) {
	works := workOf(t)
	works["aws"] = tenantWork{configure: func(cfg *config.Config, t *config.Tenant) {
		cfg.S3.Profile, t.Resume = "aws", config.KeepInterrupted
		t.Objects = config.Objects{Tags: map[string]string{"owner": "acme"}, ACL: "private",
			Encryption: config.EncryptionKMS, KMSKeyID: s3test.KMSKey, Checksum: "crc32c"}
	}}
	for name, work := range works {
		for _, enforced := range []string{"minio", "table"} {
			switch {
			case name == "aws" && enforced == "minio":
				continue // MinIO rejects policies with actions on KMS keys
			case enforced == "table" && slices.Contains([]string{"tags-and-acl", "kms", "quota-and-folder"}, name):
				// The policy is for MinIO. The policy of the last tenant has two statements for the bucket, which
				// differ in the prefix.
				continue
			}
			t.Run(name+"/by-"+enforced, func(t *testing.T) {
				t.Parallel()
				s := s3test.Start(t, "minio")
				cfg := servicetest.NewConfig(t, s)
				acme := cfg.Tenants["acme"]
				work.prepare(t, s, cfg, acme)
				policy := policyOf(t, cfg, s)
				before := s3test.Objects(t, s.Client(), acme.Bucket)
				try := func(policy s3client.Policy) string {
					reach := s.AWSConfig()
					if enforced == "minio" {
						reach = s.Restricted(t, policy).AWSConfig()
					} else {
						enforce(reach, policy, acme)
					}
					problems := strings.Split(probe(t, cfg, reach), "; ")
					// This MinIO uses the AWS profile.
					return strings.Join(slices.DeleteFunc(problems, func(problem string) bool {
						return strings.Contains(problem, "promises: Delete") ||
							strings.Contains(problem, "promises: CopyObject")
					}), "; ")
				}
				if got := try(policy); got != "" {
					t.Errorf("with the whole policy: %s", got)
				}
				// Without the permission to delete versions, delete markers hide the objects of the probe.
				if after := s3test.Objects(t, s.Client(), acme.Bucket); len(after) != len(before) {
					t.Errorf("the probe left %d objects, %d before", len(after), len(before))
				}
				for i, statement := range policy.Statement {
					for _, action := range statement.Action {
						if enforced == "minio" && (action == s3client.PutObjectTagging || action == s3client.ListBucketVersions) {
							continue // MinIO does not require it, or accepts s3:ListBucket instead
						}
						reads := []string{s3client.GetObject, s3client.GetObjectVersion, s3client.GetVersionTagging}
						if enforced == "minio" && acme.VersionsDirectory != "" && slices.Contains(reads, action) {
							continue // MinIO accepts another action instead
						}
						if action == s3client.GetBucketVersioning && acme.Overwrite != config.VersionOverwrite {
							continue // in the policy because the server may turn out to need it
						}
						if action == s3client.GetBucketObjectLock {
							continue // the probe works without it; see TestProbeNotesObjectLock
						}
						got := try(without(policy, i, action))
						if want := action + " on " + statement.Resource[0]; !strings.Contains(got, want) ||
							strings.Count(got, " on arn:") != strings.Count(got, want) {
							t.Errorf("without %s: got %s", want, got)
						}
					}
				}
				if after := s3test.Objects(t, s.Client(), acme.Bucket); !slices.Equal(after, before) {
					t.Errorf("the probes left %q, %q before", after, before)
				}
				if open := s3test.OpenUploads(t, s.Client(), acme.Bucket); len(open) > 0 {
					t.Errorf("the probes left the uploads %q", open)
				}
			})
		}
	}
}

// countVersions counts the versions and the delete markers in a bucket.
func countVersions(t *testing.T, s *s3test.Server, bucket string) int {
	t.Helper()
	out, err := s.Client().ListObjectVersions(t.Context(), &s3.ListObjectVersionsInput{Bucket: &bucket})
	must.OK(t, err)
	return len(out.Versions) + len(out.DeleteMarkers)
}

// On every S3 server, a probe finds no problem and leaves nothing behind.
func TestProbe(t *testing.T) {
	s3test.RunAll(t, func(t *testing.T, s *s3test.Server) {
		cfg := servicetest.NewConfig(t, s)
		acme := cfg.Tenants["acme"]
		acme.Prefix = "café + a/"
		if s.Name == "minio-tls" {
			acme.Objects = config.Objects{Encryption: config.EncryptionCustomer,
				CustomerKey: value.NewSecret(base64.StdEncoding.EncodeToString(make([]byte, 32)))}
		}
		if got := probe(t, cfg, s.AWSConfig()); got != "" {
			t.Error(got)
		}
		if left := leftBehind(t, s, acme.Bucket); len(left) > 0 {
			t.Errorf("the probe left %q", left)
		}
	})
}

// before calls do before each request of the clients that are created from reach. An error of do fails the request.
func before(reach *aws.Config, do func(in any) error) *aws.Config {
	reach.APIOptions = append(reach.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("before", func(
			ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
		) (out middleware.InitializeOutput, metadata middleware.Metadata, err error) {
			if err := do(in.Parameters); err != nil {
				return out, metadata, err
			}
			return next.HandleInitialize(ctx, in)
		}), middleware.After)
	})
	return reach
}

// A probe leaves nothing behind if it is interrupted at any point, or if S3 performs a request and the response is
// lost. If it cannot know what to abort, it reports that.
func TestInterruptedProbe(t *testing.T) {
	for name, is := range map[string]func(in any) bool{
		"put":      func(in any) bool { _, ok := in.(*s3.PutObjectInput); return ok },
		"copy":     func(in any) bool { _, ok := in.(*s3.CopyObjectInput); return ok },
		"begin":    func(in any) bool { _, ok := in.(*s3.CreateMultipartUploadInput); return ok },
		"part":     func(in any) bool { _, ok := in.(*s3.UploadPartInput); return ok },
		"complete": func(in any) bool { _, ok := in.(*s3.CompleteMultipartUploadInput); return ok },
	} {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s-lost-%t", name, lost), func(t *testing.T) {
				s := s3test.Start(t, "minio")
				cfg := servicetest.NewConfig(t, s)
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				reach := before(s.AWSConfig(), func(in any) error {
					if !lost && is(in) {
						stop()
					}
					return nil
				})
				reach.APIOptions = append(reach.APIOptions, func(stack *middleware.Stack) error {
					return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("lose", func(
						ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
					) (middleware.InitializeOutput, middleware.Metadata, error) {
						out, metadata, err := next.HandleInitialize(ctx, in)
						if err == nil && lost && is(in.Parameters) {
							err = errors.New("the answer is lost")
						}
						return out, metadata, err
					}), middleware.After)
				})
				srv, err := New(ctx, cfg, Options{AWS: reach})
				must.OK(t, err)
				want := ": the check was stopped, or took longer than 1m0s"
				if lost {
					want = "the answer is lost"
				}
				told := ""
				srv.ProbeBuckets(ctx, func(r *s3client.Report) { told += r.String() })
				if !strings.Contains(told, want) {
					t.Errorf("unexpected report of the probe: %s", told)
				}
				if name == "begin" && lost { // the ID is unknown
					if !strings.Contains(told, "a multipart upload of this check may stay at ") {
						t.Errorf("unexpected report of the probe: %s", told)
					}
					return
				}
				if left := leftBehind(t, s, cfg.Tenants["acme"].Bucket); len(left) > 0 {
					t.Errorf("the probe left %q", left)
				}
			})
		}
	}
}

// leftBehind returns the objects and the unfinished uploads in a bucket.
func leftBehind(t *testing.T, s *s3test.Server, bucket string) []string {
	t.Helper()
	return append(s3test.Objects(t, s.Client(), bucket), s3test.OpenUploads(t, s.Client(), bucket)...)
}

// A report has the error code if S3 refuses a request for another reason. It also names broken promises of the
// profile, and leftover objects.
func TestProbeProblems(t *testing.T) {
	refuse := func(code string) error {
		return &smithyhttp.ResponseError{
			Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusBadRequest}},
			Err:      &smithy.GenericAPIError{Code: code, Message: "no\nway"},
		}
	}
	for name, tc := range map[string]struct {
		server string
		do     func(in any) error
		want   string
	}{
		"acl": {"minio", func(in any) error {
			if in, ok := in.(*s3.PutObjectInput); ok && in.ACL != "" {
				return refuse("AccessControlListNotSupported")
			}
			return nil
		}, "S3 refuses PutObject: AccessControlListNotSupported: no way"},
		"deny-of-both": {"minio", func(in any) error {
			if in, ok := in.(*s3.PutObjectInput); ok && in.ACL != "" && in.Tagging != nil {
				return refuse("AccessDenied")
			}
			return nil
		},
			"S3 denies a request, although it allows each action elsewhere: check for a Deny in the policies of " +
				"the bucket"},
		"no-condition": {"minio", func(in any) error {
			switch in := in.(type) {
			case *s3.PutObjectInput:
				in.IfNoneMatch = nil
			case *s3.CompleteMultipartUploadInput:
				in.IfNoneMatch = nil
			}
			return nil
		},
			"its S3 server does not support what the profile minio promises: PutObject with If-None-Match: set another " +
				"s3.profile"},
		"no-answer": {"minio", func(in any) error {
			if _, ok := in.(*s3.CopyObjectInput); ok {
				return errors.New("no route")
			}
			return nil
		}, "CopyObject got no response: "},
		"cannot-clean": {"minio", func(in any) error {
			if in, ok := in.(*s3.DeleteObjectInput); ok && strings.HasSuffix(*in.Key, "-copy") {
				return refuse("AccessDenied")
			}
			return nil
		}, "-copy\" of this check stays: delete it"},
		"cannot-abort": {"minio", func(in any) error {
			if in, ok := in.(*s3.AbortMultipartUploadInput); ok && *in.UploadId != "none" {
				return refuse("InternalError")
			}
			return nil
		}, "the multipart upload of this check stays at "},
	} {
		t.Run(name, func(t *testing.T) {
			s := s3test.Start(t, tc.server)
			cfg := servicetest.NewConfig(t, s)
			cfg.Tenants["acme"].Objects = config.Objects{ACL: "private", Tags: map[string]string{"owner": "acme"}}
			got := probe(t, cfg, before(s.AWSConfig(), tc.do))
			if !strings.Contains(got, tc.want) || strings.Contains(got, "\n") {
				t.Errorf("%s\nwant %s", got, tc.want)
			}
		})
	}
}

// AWS blocks SSE-C in new buckets, and responds as if a permission were missing. The probe names the cause, and leaves
// nothing behind.
func TestProbeNamesBlockedCustomerKeys(t *testing.T) {
	s, cfg := simulated(t)
	cfg.Tenants["acme"].Objects = config.Objects{
		Encryption:  config.EncryptionCustomer,
		CustomerKey: value.NewSecret(base64.StdEncoding.EncodeToString(make([]byte, 32))),
	}
	got := probe(t, cfg, before(s.AWSConfig(), func(in any) error {
		switch in := in.(type) {
		case *s3.PutObjectInput:
			if in.SSECustomerKey != nil {
				return accessDenied()
			}
		case *s3.CreateMultipartUploadInput:
			return accessDenied()
		}
		return nil
	}))
	if !strings.Contains(got, "refuses encryption: customer (SSE-C)") || strings.Contains(got, "s3:PutObject") {
		t.Errorf("unexpected report of the probe: %s", got)
	}
	if left := leftBehind(t, s, cfg.Tenants["acme"].Bucket); len(left) > 0 {
		t.Errorf("the probe left %q", left)
	}
}

// In a versioned bucket, a probe without the permission to delete versions leaves nothing that a listing shows.
func TestProbeThatMayDeleteNoVersion(t *testing.T) {
	s := s3test.Start(t, "minio")
	cfg := servicetest.NewConfig(t, s)
	acme := cfg.Tenants["acme"]
	tenantWork{configure: func(_ *config.Config, t *config.Tenant) {
		t.Overwrite = config.VersionOverwrite
	}}.prepare(t, s, cfg, acme)
	acme.Overwrite = config.DenyOverwrite
	if got := probe(t, cfg, s.Restricted(t, policyOf(t, cfg, s)).AWSConfig()); got != "" {
		t.Error(got)
	}
	if left := s3test.Objects(t, s.Client(), acme.Bucket); len(left) > 0 {
		t.Errorf("the probe left %q", left)
	}
	if countVersions(t, s, acme.Bucket) == 0 {
		t.Error("the credentials may delete versions")
	}
}

// The probe of a usable bucket notes how long Object Lock keeps each version, or that the policy does not allow it to
// find out.
func TestProbeNotesObjectLock(t *testing.T) {
	s := s3test.Start(t, "minio")
	cfg := servicetest.NewConfig(t, s)
	acme := cfg.Tenants["acme"]
	tenantWork{}.prepare(t, s, cfg, acme)
	acme.Bucket = s.LockedBucket(t)
	policy := policyOf(t, cfg, s)
	blind := policy
	for i, statement := range policy.Statement {
		if slices.Contains(statement.Action, s3client.GetBucketObjectLock) {
			blind = without(policy, i, s3client.GetBucketObjectLock)
		}
	}
	for want, allowed := range map[string]s3client.Policy{
		": ok; Object Lock keeps each version for 1 day(s) (GOVERNANCE)": policy,
		": ok; unknown whether Object Lock keeps versions: the IAM policy lacks " +
			"s3:GetBucketObjectLockConfiguration on arn:aws:s3:::" + acme.Bucket: blind,
	} {
		srv, err := New(t.Context(), cfg, Options{AWS: s.Restricted(t, allowed).AWSConfig()})
		must.OK(t, err)
		srv.ProbeBuckets(t.Context(), func(r *s3client.Report) {
			if text := r.String(); !r.OK() || !strings.Contains(text, want) {
				t.Errorf("got  %s\nwant %s", text, want)
			}
		})
	}
}

// In a bucket with a default Object Lock retention, S3 rejects bytes without a Content-MD5 or checksum, even if the
// profile has no checksums. The probe has the same result as for other buckets.
func TestProbeUnderDefaultRetention(t *testing.T) {
	s3test.RunLocked(t, func(t *testing.T, s *s3test.Server) {
		for _, tc := range []struct {
			profile   config.Profile
			overwrite config.Overwrite
		}{
			{config.AutoProfile, config.AllowOverwrite},
			{config.AutoProfile, config.VersionOverwrite},
			{"strict", config.AllowOverwrite},
		} {
			t.Run(fmt.Sprintf("%s-%s", tc.profile, tc.overwrite), func(t *testing.T) {
				cfg := servicetest.NewConfig(t, s)
				cfg.S3.Profile = tc.profile
				acme := cfg.Tenants["acme"]
				acme.Bucket, acme.Prefix, acme.Overwrite = s.LockedBucket(t), "inbox/", tc.overwrite
				if got := probe(t, cfg, requireSums(s.AWSConfig())); got != "" {
					t.Error(got)
				}
				if left := leftBehind(t, s, acme.Bucket); len(left) > 0 {
					t.Errorf("the probe left %q", left)
				}
			})
		}
	})
}

// requireSums rejects what AWS rejects in a bucket with a default retention, and other servers accept: bytes without a
// Content-MD5 and without a checksum.
func requireSums(reach *aws.Config) *aws.Config {
	reach.APIOptions = append(reach.APIOptions, func(stack *middleware.Stack) error {
		return stack.Finalize.Add(middleware.FinalizeMiddlewareFunc("requireSums", func(
			ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
		) (out middleware.FinalizeOutput, metadata middleware.Metadata, err error) {
			r := in.Request.(*smithyhttp.Request)
			summed := !slices.Contains([]string{"PutObject", "UploadPart", "DeleteObjects"}, stack.ID())
			for name := range r.Header {
				name = strings.ToLower(name)
				summed = summed || name == "content-md5" || name == "x-amz-trailer" ||
					strings.HasPrefix(name, "x-amz-checksum-")
			}
			if !summed {
				return out, metadata, &smithyhttp.ResponseError{
					Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusBadRequest}},
					Err: &smithy.GenericAPIError{Code: "InvalidRequest",
						Message: "Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests"},
				}
			}
			return next.HandleFinalize(ctx, in)
		}), middleware.After)
	})
	return reach
}

// The probe reports a profile that promises more than its server does, and accepts the correct profile.
func TestProbeVerifiesTheProfile(t *testing.T) {
	for _, tc := range []struct{ server, profile, want string }{
		{"minio", "minio", ""},
		{"minio", "aws", "DeleteObject with If-Match"},
		{"sim-strict", "r2", "PutObject with If-None-Match"},
		{"sim-strict", "gcs", "sorted listings"},
		{"minio", "versitygw", "DeleteObject with If-Match"},
	} {
		t.Run(tc.server+"/"+tc.profile, func(t *testing.T) {
			s := s3test.Start(t, tc.server)
			cfg := servicetest.NewConfig(t, s)
			cfg.S3.Profile = config.Profile(tc.profile)
			if got := probe(t, cfg, s.AWSConfig()); (got == "") != (tc.want == "") || got != "" &&
				!strings.Contains(got, "promises: "+tc.want) {
				t.Errorf("got report %s, want %q", got, tc.want)
			}
		})
	}
}
