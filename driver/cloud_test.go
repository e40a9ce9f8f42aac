package driver_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// A cloud describes a bucket in which the suite may use a prefix. It comes from the environment of make cloud.
type cloud struct {
	Endpoint                     string // "aws" for AWS
	Region, Bucket               string
	Prefix                       string // the suite creates another prefix below it
	AccessKeyID, SecretAccessKey string
	PathStyle                    bool
	Profile                      config.Profile
	Limits                       []string // limits of drivertest
	Groups                       []string // groups of drivertest; empty for all
}

// cloudFrom parses the variables of make cloud. The error names all missing or invalid variables.
func cloudFrom(env func(string) string) (cloud, error) {
	var problems []string
	needed := func(name string) string {
		if env(name) == "" {
			problems = append(problems, name+" is missing")
		}
		return env(name)
	}
	list := func(name string) []string {
		return strings.FieldsFunc(env(name), func(r rune) bool { return r == ',' || r == ' ' })
	}
	c := cloud{
		Endpoint: needed("CLOUD_ENDPOINT"), Bucket: needed("CLOUD_BUCKET"),
		AccessKeyID: needed("CLOUD_ACCESS_KEY_ID"), SecretAccessKey: needed("CLOUD_SECRET_ACCESS_KEY"),
		Region: cmp.Or(env("CLOUD_REGION"), "us-east-1"), Prefix: env("CLOUD_PREFIX"),
		Profile:   config.Profile(cmp.Or(env("CLOUD_PROFILE"), string(config.AutoProfile))),
		PathStyle: env("CLOUD_PATH_STYLE") != "false",
		Limits:    list("CLOUD_LIMITS"), Groups: list("CLOUD_GROUPS"),
	}
	if _, known := driver.ProfileNamed(string(c.Profile)); !known && c.Profile != config.AutoProfile {
		problems = append(problems, fmt.Sprintf("CLOUD_PROFILE %q is unknown: want auto or one of %s", c.Profile,
			strings.Join(driver.ProfileNames(), ", ")))
	}
	if c.Prefix != "" && !strings.HasSuffix(c.Prefix, "/") {
		c.Prefix += "/"
	}
	if len(problems) > 0 {
		return c, errors.New(strings.Join(problems, "\n"))
	}
	return c, nil
}

// open connects to the server and detects its profile, as babelftp does.
func (c cloud) open(ctx context.Context, prefix string) (*s3client.Bucket, error) {
	cfg := config.Default()
	cfg.S3 = config.S3{
		Endpoint: c.Endpoint, Region: c.Region, PathStyle: aws.Bool(c.PathStyle), Profile: c.Profile,
		AccessKeyID: c.AccessKeyID, SecretAccessKey: value.NewSecret(c.SecretAccessKey),
	}
	if c.Endpoint == "aws" {
		cfg.S3.Endpoint = ""
	}
	cfg.Tenants = map[string]*config.Tenant{"cloud": {Bucket: c.Bucket, Prefix: prefix, Resume: config.DiscardInterrupted}}
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64, Proxy: http.ProxyFromEnvironment}
	base := &aws.Config{
		Region:                     c.Region,
		HTTPClient:                 &http.Client{Transport: transport},
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenSupported,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenSupported,
	}
	log := slog.New(slog.DiscardHandler)
	buckets, err := s3client.NewFactory(base, nil, log).Buckets(cfg)
	if err != nil {
		return nil, err
	}
	b := buckets["cloud"]
	if err := b.Verify(ctx, log); err != nil {
		return nil, errors.New(strings.NewReplacer(
			"tenant cloud: ", "", "tenants.cloud.bucket", "CLOUD_BUCKET", "s3.access_key_id", "CLOUD_ACCESS_KEY_ID",
			"s3.secret_access_key", "CLOUD_SECRET_ACCESS_KEY", "s3.endpoint", "CLOUD_ENDPOINT",
			"s3.region", "CLOUD_REGION", "s3.path_style: ", "CLOUD_PATH_STYLE=",
		).Replace(err.Error()))
	}
	return b, nil
}

// conform runs the suite below a new prefix, and removes the prefix at the end.
func (c cloud) conform(t *testing.T) {
	t.Helper()
	prefix := c.Prefix + "babelftp-cloud-" + strings.ToLower(rand.Text()[:8]) + "/"
	b, err := c.open(t.Context(), prefix)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("cloud: endpoint=%s profile=%s bucket=%s prefix=%s", c.Endpoint, b.Profile.Name, c.Bucket, prefix)
	t.Cleanup(func() {
		if err := s3test.RemoveBelow(context.WithoutCancel(t.Context()), b.Client, c.Bucket, prefix); err != nil {
			t.Errorf("objects below %s may stay in the bucket %s: %v", prefix, c.Bucket, err)
		}
	})
	var made atomic.Int64
	all := limits(&s3test.Server{Name: b.Profile.Name})
	all[drivertest.Versions] = "the bucket has other users"
	all[drivertest.FullKeys] = "the prefix takes some of the bytes"
	for _, limit := range c.Limits {
		all[drivertest.Limit(limit)] = "CLOUD_LIMITS"
	}
	p := b.Profile
	p.GhostPrefixes = false // as for a bucket that never had versioning
	client := s3test.Below(b.Client, c.Bucket, prefix)
	drivertest.Run(t, drivertest.Harness{
		Bucket: func(testing.TB) (*s3.Client, string) { return client, strconv.FormatInt(made.Add(1), 10) },
		Limits: all, Profile: p, Groups: c.Groups,
	})
}

// The suite must not touch anything outside of its prefix, such as keys with a similar prefix, and must remove its
// prefix.
func TestCloudLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	s3test.Run(t, func(t *testing.T, s *s3test.Server) {
		bucket, client := s.Bucket(t), s.Client()
		for _, key := range []string{
			"a", "dir/a", "team/other", "babelftp-cloud-/a", "1/a", "team/1/a", "team/babelftp-cloud",
		} {
			_, err := client.PutObject(t.Context(), &s3.PutObjectInput{
				Bucket: &bucket, Key: &key, Body: strings.NewReader("of others"),
			})
			must.OK(t, err)
		}
		upload, err := client.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{
			Bucket: &bucket, Key: aws.String("open"),
		})
		must.OK(t, err)
		state := func() (all []string) {
			out, err := client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &bucket})
			must.OK(t, err)
			for _, o := range out.Contents {
				all = append(all, fmt.Sprintf("%s %s %s", *o.Key, *o.ETag, o.LastModified))
			}
			return all
		}
		before := state()
		t.Run("suite", func(t *testing.T) {
			cloud{
				Endpoint: s.Endpoint, Region: s.Region, Bucket: bucket, Prefix: "team/", PathStyle: true,
				AccessKeyID: s.AccessKeyID, SecretAccessKey: s.SecretAccessKey, Profile: config.AutoProfile,
				Groups: []string{"stat", "remove", "other-bucket"}, // groups that delete objects
			}.conform(t)
		})
		if after := state(); !slices.Equal(after, before) {
			t.Errorf("got keys %q, want %q", after, before)
		}
		_, err = client.ListParts(t.Context(), &s3.ListPartsInput{
			Bucket: &bucket, Key: aws.String("open"), UploadId: upload.UploadId,
		})
		if err != nil {
			t.Errorf("unexpected error for the upload of another client: %v", err)
		}
	})
}

// The error names each missing or invalid variable.
func TestCloudVariables(t *testing.T) {
	t.Parallel()
	good := map[string]string{
		"CLOUD_ENDPOINT": "http://127.0.0.1:1", "CLOUD_BUCKET": "data", "CLOUD_ACCESS_KEY_ID": "a",
		"CLOUD_SECRET_ACCESS_KEY": "b",
	}
	for name, tc := range map[string]struct {
		change map[string]string
		want   string // empty for success
	}{
		"complete":       {nil, ""},
		"missing-secret": {map[string]string{"CLOUD_SECRET_ACCESS_KEY": ""}, "CLOUD_SECRET_ACCESS_KEY is missing"},
		"two-missing": {
			map[string]string{"CLOUD_ENDPOINT": "", "CLOUD_BUCKET": ""},
			"CLOUD_ENDPOINT is missing\nCLOUD_BUCKET is missing",
		},
		"unknown-profile": {
			map[string]string{"CLOUD_PROFILE": "azure"}, `CLOUD_PROFILE "azure" is unknown: want auto or one of aws, `,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := cloudFrom(func(name string) string {
				if changed, ok := tc.change[name]; ok {
					return changed
				}
				return good[name]
			})
			if (err == nil) != (tc.want == "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("unexpected error: %v", err)
			}
		})
	}
}
