package s3client

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// The profiles of MinIO and versitygw are correct.
func TestProfilesOfServers(t *testing.T) { s3test.Run(t, serverKeepsPromises) }

// The profiles of the servers in Debian's packages are correct.
func TestProfilesOfPackaged(t *testing.T) { s3test.RunPackaged(t, serverKeepsPromises) }

func serverKeepsPromises(t *testing.T, s *s3test.Server) {
	p, known := driver.ProfileNamed(strings.TrimPrefix(s.Name, "sim-"))
	if !known {
		t.Fatal(s.Name)
	}
	keepsPromises(t, p, s.Client(), s.Bucket(t))
}

// A simulator behaves as its profile says, so that tests with it match the real servers.
func TestProfilesOfSimulators(t *testing.T) {
	for _, name := range driver.ProfileNames() {
		t.Run(name, func(t *testing.T) {
			p, _ := driver.ProfileNamed(name)
			server := s3sim.New(s3sim.Options{Profile: p})
			server.CreateBucket("bucket")
			p.Checksums, p.CompletesWithoutETag = true, false // all simulators support this
			keepsPromises(t, p, server.Client(nil, func(o *s3.Options) {
				o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenSupported
			}), "bucket")
		})
	}
}

// keepsPromises checks that a server does everything that its profile promises, and nothing else that a profile can
// promise.
func keepsPromises(t *testing.T, p driver.Profile, client *s3.Client, bucket string) {
	t.Helper()
	x := newSample(newScratch(client, bucket), "", &p)
	must.OK(t, x.putAgain(t.Context()))
	for _, e := range x.experiments() {
		if kept, err := e.kept(t.Context()); err != nil || kept != e.promised() {
			t.Errorf("%s: got %t, %v; want %t as in the profile", e.name, kept, err, e.promised())
		}
	}
}

// The policy of a bucket with write permission allows all requests of the experiments, except those listed here.
func TestPolicyOfExperiments(t *testing.T) {
	everything := Use{Write: true, Delete: true, Past: true, Restore: true, Events: true, Quarantine: "refused/"}
	for name, tc := range map[string]struct {
		bucket *Bucket
		lacks  map[string][]string // actions missing in the policy, and the experiments that need them
	}{
		"everything":   {bucket: &Bucket{Prefix: "in/", resumable: true, use: everything}},
		"whole-bucket": {bucket: &Bucket{resumable: true, use: everything}},
		"drop-box":     {bucket: &Bucket{Prefix: "in/", resumable: true, use: Use{Write: true}}},
		"no-resume": {bucket: &Bucket{Prefix: "in/", use: Use{Write: true}},
			lacks: map[string][]string{ListUploadParts: {"multipart uploads that no longer exist once completed"}}},
	} {
		t.Run(name, func(t *testing.T) {
			lacking := map[string][]string{}
			row, asked := "", 0
			var mu sync.Mutex // some experiments send requests in parallel
			server := s3sim.New(s3sim.Options{Profile: driver.Profile{}})
			server.CreateBucket("bucket")
			p, _ := driver.ProfileNamed("aws")
			b := tc.bucket
			b.Name, b.Client, b.Profile = "bucket", server.Client(nil), p
			dry := newProber(b, b.Prefix, &Report{Bucket: b})
			dry.dry = true
			dry.run(t.Context(), nil)
			allowed := func(need Permission) bool { return dry.allowed[need] }
			s := newScratch(server.Client(nil, func(o *s3.Options) {
				o.APIOptions = append(o.APIOptions, beforeEach(func(in any) {
					mu.Lock()
					defer mu.Unlock()
					for _, need := range dry.needs(dry.region.Needs(in), false) {
						asked++
						permitted := allowed(need) || dry.covered(need, allowed)
						if !permitted && !slices.Contains(lacking[need.Action], row) {
							lacking[need.Action] = append(lacking[need.Action], row)
						}
					}
				}))
			}), b.Name)
			x := newSample(s, b.Prefix, &p)
			must.OK(t, x.putAgain(t.Context()))
			for _, e := range x.experiments() {
				before := asked
				row = e.name
				if _, err := e.kept(t.Context()); err != nil || asked == before {
					t.Errorf("%s: %d requests, %v", e.name, asked-before, err)
				}
			}
			if !maps.EqualFunc(lacking, tc.lacks, slices.Equal) {
				t.Errorf("the policy lacks actions of these experiments: got %q; want %q", lacking, tc.lacks)
			}
		})
	}
}

// beforeEach calls request with the input of each request of a client.
func beforeEach(request func(in any)) func(*middleware.Stack) error {
	return func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("before", func(
			ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
		) (middleware.InitializeOutput, middleware.Metadata, error) {
			request(in.Parameters)
			return next.HandleInitialize(ctx, in)
		}), middleware.After)
	}
}
