package s3client

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// The table of profiles says of MinIO and versitygw what they do.
func TestProfilesOfServers(t *testing.T) { s3test.Run(t, serverKeepsPromises) }

// The table of profiles says of the servers that Debian's packages bring what they do.
func TestProfilesOfPackaged(t *testing.T) { s3test.RunPackaged(t, serverKeepsPromises) }

func serverKeepsPromises(t *testing.T, s *s3test.Server) {
	p, known := driver.ProfileNamed(strings.TrimPrefix(s.Name, "sim-"))
	if !known {
		t.Fatal(s.Name)
	}
	keepsPromises(t, p, s.Client(), s.Bucket(t))
}

// A simulator does what its profile says, so that the tests on it meet what they would meet on such a server.
func TestProfilesOfSimulators(t *testing.T) {
	for _, name := range driver.ProfileNames() {
		t.Run(name, func(t *testing.T) {
			p, _ := driver.ProfileNamed(name)
			server := s3sim.New(s3sim.Options{Profile: p})
			server.CreateBucket("bucket")
			p.Checksums, p.UntoldETags = true, false // what every simulator does
			keepsPromises(t, p, server.Client(nil, func(o *s3.Options) {
				o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenSupported
			}), "bucket")
		})
	}
}

// keepsPromises wants a server to do all that its profile promises, and nothing else that a profile may promise.
func keepsPromises(t *testing.T, p driver.Profile, client *s3.Client, bucket string) {
	t.Helper()
	x := newSample(newScratch(client, bucket), "", &p)
	must.OK(t, x.putAgain(t.Context()))
	for _, e := range x.experiments() {
		if kept, err := e.kept(t.Context()); err != nil || kept != e.promised() {
			t.Errorf("%s: %t, %v; the table says %t", e.name, kept, err, e.promised())
		}
	}
}

// The policy of a bucket allows each request of each experiment.
func TestPolicyOfExperiments(t *testing.T) {
	server := s3sim.New(s3sim.Options{Profile: driver.Profile{}})
	server.CreateBucket("bucket")
	p, _ := driver.ProfileNamed("aws")
	b := &Bucket{Name: "bucket", Prefix: "in/", Client: server.Client(nil), Profile: p, resumable: true,
		use: Use{Write: true, Delete: true}}
	dry := newProber(b, b.Prefix, &Report{Bucket: b})
	dry.dry = true
	dry.run(t.Context(), nil)
	asked := 0
	s := newScratch(server.Client(nil, func(o *s3.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("needs", func(
				ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
			) (middleware.InitializeOutput, middleware.Metadata, error) {
				for _, need := range dry.needs(dry.region.Needs(in.Parameters), false) {
					asked++
					if !dry.allowed[need] && !dry.covered(need, func(o Permission) bool { return dry.allowed[o] }) {
						t.Errorf("%T needs %s, which the policy does not allow", in.Parameters, need)
					}
				}
				return next.HandleInitialize(ctx, in)
			}), middleware.After)
		})
	}), b.Name)
	x := newSample(s, b.Prefix, &p)
	must.OK(t, x.putAgain(t.Context()))
	for _, e := range x.experiments() {
		before := asked
		if _, err := e.kept(t.Context()); err != nil || asked == before {
			t.Errorf("%s: %d requests, %v", e.name, asked-before, err)
		}
	}
}
