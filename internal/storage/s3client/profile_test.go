package s3client

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// checked returns the bucket of the tenant acme after Verify, and the error of Verify.
func checked(t *testing.T, cfg *config.Config, reach *aws.Config) (*Bucket, error) {
	t.Helper()
	must.OK(t, cfg.Validate())
	all, err := verify(t.Context(), cfg, reach)
	if len(all) == 0 {
		return nil, err
	}
	return all[0], err
}

// A server that identifies itself costs one request. For MinIO, Verify also requests the versioning status.
func TestFindProfile(t *testing.T) {
	if testing.Short() {
		t.Skip("-short has simulators only, which do not say what they are")
	}
	s3test.Run(t, func(t *testing.T, s *s3test.Server) {
		want, ok := driver.ProfileNamed(s.Name)
		if !ok {
			t.Fatal(s.Name)
		}
		requests := 1
		if want.GhostPrefixes {
			want.GhostPrefixes, requests = false, 2
		}
		for _, configured := range []config.Profile{"", config.AutoProfile, config.Profile(want.Name)} {
			cfg := servicetest.NewConfig(t, s)
			cfg.S3.Profile, cfg.Tenants["acme"].Resume = configured, config.KeepInterrupted
			reach := s.AWSConfig()
			seen := watch(reach)
			b, err := checked(t, cfg, reach)
			must.OK(t, err)
			if b.Profile != want {
				t.Errorf("%q: got %+v; want %+v", configured, b.Profile, want)
			}
			if len(seen.requests) != requests {
				t.Errorf("%q: got %d requests, want %d", configured, len(seen.requests), requests)
			}
		}
	})
}

// A bucket that keeps versions, or whose versioning status is unknown, may have prefixes with delete markers only.
func TestDeleteMarkersOfBucket(t *testing.T) {
	s := s3test.Start(t, "minio")
	for name, tc := range map[string]struct {
		status types.BucketVersioningStatus
		denied bool
		want   bool
	}{
		"never-kept": {"", false, false},
		"kept":       {types.BucketVersioningStatusEnabled, false, true},
		"suspended":  {types.BucketVersioningStatusSuspended, false, true},
		"denied":     {"", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := servicetest.NewConfig(t, s)
			if tc.status != "" {
				s.SetVersioning(t, cfg.Tenants["acme"].Bucket, tc.status)
			}
			reach := s.AWSConfig()
			watch(reach).answer = func(response *http.Response) {
				if tc.denied && response.Request.URL.Query().Has("versioning") {
					response.StatusCode = http.StatusForbidden
				}
			}
			b, err := checked(t, cfg, reach)
			must.OK(t, err)
			if b.Profile.GhostPrefixes != tc.want {
				t.Errorf("got %t, want %t", b.Profile.GhostPrefixes, tc.want)
			}
		})
	}
}

// When a Watcher checks a usable bucket again, it notices that versioning was enabled. After that it no longer
// requests the status.
func TestNoticeVersions(t *testing.T) {
	s := s3test.Start(t, "minio")
	cfg := servicetest.NewConfig(t, s)
	reach := s.AWSConfig()
	seen := watch(reach)
	b, err := checked(t, cfg, reach)
	must.OK(t, err)
	w := &Watcher{Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	w.Watch([]*Bucket{b})
	look := func() (requests int, ghosts bool) {
		before := len(seen.requests)
		w.check(t.Context(), t.Context(), b)
		return len(seen.requests) - before, b.SessionProfile().GhostPrefixes
	}
	w.check(t.Context(), t.Context(), b) // the first check runs Verify
	if requests, ghosts := look(); requests != 2 || ghosts {
		t.Errorf("got %d requests, ghost prefixes %t", requests, ghosts)
	}
	s.SetVersioning(t, b.Name, types.BucketVersioningStatusEnabled)
	if requests, ghosts := look(); requests != 2 || !ghosts {
		t.Errorf("after versioning was enabled: got %d requests, ghost prefixes %t", requests, ghosts)
	}
	if requests, ghosts := look(); requests != 1 || !ghosts {
		t.Errorf("later: got %d requests, ghost prefixes %t", requests, ghosts)
	}
}

// The configured profile is used at each level of the configuration.
func TestProfileByConfiguration(t *testing.T) {
	s := s3test.Start(t, "sim-aws")
	cfg := servicetest.NewConfig(t, s)
	acme := cfg.Tenants["acme"]
	cfg.S3.Profile, acme.S3.Profile = "ceph", "r2"
	acme.Folders = map[string]*config.Folder{
		"/a": {Prefix: "a/"},
		"/b": {Prefix: "b/", S3: config.S3{Profile: "strict"}},
	}
	cfg.Tenants["other"] = &config.Tenant{Bucket: s.Bucket(t)}
	all, err := verify(t.Context(), cfg, s.AWSConfig())
	must.OK(t, err)
	var got []string
	for _, b := range all {
		got = append(got, b.Tenant+b.Folder+"="+b.Profile.Name)
	}
	if want := []string{"acme=r2", "acme/a=r2", "acme/b=strict", "other=ceph"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A watched records the requests through a transport, and can change requests and responses.
type watched struct {
	s3.HTTPClient
	mu       sync.Mutex
	requests []*http.Request
	request  func(*http.Request)
	answer   func(*http.Response)
}

// watch records the requests of all clients of a configuration.
func watch(cfg *aws.Config) *watched {
	w := &watched{HTTPClient: cfg.HTTPClient, request: func(*http.Request) {}, answer: func(*http.Response) {}}
	if w.HTTPClient == nil {
		w.HTTPClient = http.DefaultClient
	}
	cfg.HTTPClient = w
	return w
}

func (w *watched) Do(request *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.requests = append(w.requests, request.Clone(request.Context()))
	w.request(request)
	w.mu.Unlock()
	response, err := w.HTTPClient.Do(request)
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.answer(response)
	}
	return response, err
}

// If an unknown server is used in a way that matters, experiments find out what it can do. Otherwise it gets the
// strictest profile.
func TestUnknownServer(t *testing.T) { s3test.Run(t, showsItself) }

// The servers in Debian's packages send no Server header, and a proxy may remove other headers.
func TestUnknownPackaged(t *testing.T) { s3test.RunPackaged(t, showsItself) }

func showsItself(t *testing.T, s *s3test.Server) {
	known, _ := driver.ProfileNamed(strings.TrimPrefix(s.Name, "sim-"))
	shown := driver.Profile{
		Name: "strict", ConditionalPut: known.ConditionalPut, ConditionalComplete: known.ConditionalComplete,
		ExclusivePut: known.ConditionalPut, ExclusiveComplete: known.ConditionalComplete,
		UnquotedETags:    known.UnquotedETags,
		UncheckedSources: known.UncheckedSources, PartLimit: known.PartLimit,
		PersistentUploads:    known.PersistentUploads,
		CompletesWithoutETag: known.CompletesWithoutETag,
		ConditionalDelete:    known.ConditionalDelete, ConditionalBatchDelete: known.ConditionalBatchDelete,
		PartCopy: known.PartCopy, MD5ETags: known.MD5ETags, BatchDelete: known.BatchDelete,
	}
	strict, _ := driver.ProfileNamed("strict")
	for name, tc := range map[string]struct {
		set  func(*config.Tenant)
		want driver.Profile
	}{
		"nothing-needed": {func(*config.Tenant) {}, strict},
		"resume":         {func(t *config.Tenant) { t.Resume = config.KeepInterrupted }, shown},
		"deny":           {func(t *config.Tenant) { t.Overwrite = config.DenyOverwrite }, shown},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "deny" && !known.ConditionalComplete || name == "resume" && !known.Resumes() {
				return // Verify fails, see TestUnsupported
			}
			cfg := servicetest.NewConfig(t, s)
			acme := cfg.Tenants["acme"]
			tc.set(acme)
			reach := s.AWSConfig()
			seen := watch(reach)
			seen.answer = func(response *http.Response) {
				response.Header.Set("Server", "nginx")
				response.Header.Del("X-Trans-Id")
				response.Header.Del("X-Amz-Request-Id")
			}
			b, err := checked(t, cfg, reach)
			must.OK(t, err)
			if b.Profile != tc.want {
				t.Errorf("got %+v; want %+v", b.Profile, tc.want)
			}
			if name == "nothing-needed" && len(seen.requests) != 1 {
				t.Errorf("got %d requests", len(seen.requests))
			}
			left, err := s.Client().ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &acme.Bucket})
			if err != nil || len(left.Contents) != 0 {
				t.Errorf("unexpected %d remaining objects, %v", len(left.Contents), err)
			}
			uploads, err := s.Client().ListMultipartUploads(
				t.Context(), &s3.ListMultipartUploadsInput{Bucket: &acme.Bucket})
			if err != nil || len(uploads.Uploads) != 0 {
				t.Errorf("unexpected %d remaining uploads, %v", len(uploads.Uploads), err)
			}
		})
	}
}

// Verify fails if the configuration needs a feature that the server lacks.
func TestUnsupported(t *testing.T) {
	s := s3test.Start(t, "sim-aws")
	tags := config.Objects{Tags: map[string]string{"owner": "acme"}}
	for name, tc := range map[string]struct {
		profile config.Profile
		change  func(*config.Config, *config.Tenant)
		want    string
	}{
		"resume-on-a-directory-bucket": {
			"aws-directory", func(_ *config.Config, t *config.Tenant) { t.Resume = config.KeepInterrupted },
			"cannot resume uploads, which resume: keep requires: set resume: discard, or use a server or " +
				"bucket type that can",
		},
		"resume-on-swift": {
			"swift", func(_ *config.Config, t *config.Tenant) { t.Resume = config.KeepInterrupted },
			"cannot resume uploads, which resume: keep requires: set resume: discard, or use a server or " +
				"bucket type that can",
		},
		"resume-by-default-on-swift": {
			"swift", func(_ *config.Config, t *config.Tenant) {
				t.Resume, t.ResumeByDefault = config.KeepInterrupted, true
			}, "",
		},
		// Reported for Tencent COS: gobackup/gobackup#233
		"path-style-on-tencent": {"tencent", func(*config.Config, *config.Tenant) {},
			"accepts the bucket name only in the host name: set s3.path_style: false"},
		"path-style-of-the-tenant-on-alibaba": {
			"alibaba", func(c *config.Config, t *config.Tenant) { t.S3, c.S3 = c.S3, config.S3{} },
			"accepts the bucket name only in the host name: set tenants.acme.s3.path_style: false",
		},
		"tags-on-backblaze": {"backblaze", func(_ *config.Config, t *config.Tenant) { t.Objects = tags },
			"does not support tags, which objects.tags requires: remove objects.tags"},
		"tags-on-swift": {"swift", func(_ *config.Config, t *config.Tenant) { t.Objects = tags },
			"does not support tags, which objects.tags requires: remove objects.tags"},
		"tags-on-strict": {"strict", func(_ *config.Config, t *config.Tenant) { t.Objects = tags }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := servicetest.NewConfig(t, s)
			cfg.S3.Profile = tc.profile
			acme := cfg.Tenants["acme"]
			tc.change(cfg, acme)
			got := ""
			if _, err := checked(t, cfg, s.AWSConfig()); err != nil {
				got = err.Error()
			}
			want := ""
			if tc.want != "" {
				want = fmt.Sprintf("tenant acme: bucket %q: its S3 server (%s) %s", acme.Bucket, tc.profile, tc.want)
			}
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// MinIO rejects the signature if a proxy rewrote Accept-Encoding, unless the header is not signed.
// Reported for Google Cloud Storage: aws/aws-sdk-go-v2#1816
func TestAcceptEncodingIsNotSigned(t *testing.T) {
	s := s3test.Start(t, "minio")
	for _, name := range []config.Profile{"", "gcs", "strict", "minio", "aws"} {
		t.Run(cmp.Or(string(name), "auto"), func(t *testing.T) {
			cfg := servicetest.NewConfig(t, s)
			cfg.S3.Profile = name
			reach := s.AWSConfig()
			seen := watch(reach)
			accepted := map[string]bool{}
			seen.request = func(request *http.Request) {
				accepted[request.Header.Get("Accept-Encoding")] = true
				request.Header.Set("Accept-Encoding", "identity,gzip(gfe)")
			}
			b, err := checked(t, cfg, reach)
			must.OK(t, err)
			put := &s3.PutObjectInput{Bucket: &b.Name, Key: aws.String("a"), Body: strings.NewReader("content")}
			if _, err := b.Client.PutObject(t.Context(), put); err != nil {
				t.Error(err)
			}
			if accepted["gzip"] != b.Profile.Decompresses || len(accepted) != 1 {
				t.Errorf("unexpected Accept-Encoding %v", accepted)
			}
			for _, request := range seen.requests {
				_, signed, _ := strings.Cut(request.Header.Get("Authorization"), "SignedHeaders=")
				signed, _, _ = strings.Cut(signed, ",")
				if names := strings.Split(signed, ";"); slices.Contains(names, "accept-encoding") ||
					!slices.Contains(names, "host") {
					t.Errorf("%s: unexpected signed headers %s", request.Method, signed)
				}
			}
		})
	}
}
