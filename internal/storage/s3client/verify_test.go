package s3client

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

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
	p.ExclusivePut, p.ExclusiveComplete = p.PutsOn(true), p.CompletesOn(true)
	x := newSample(newScratch(client, bucket), "", &p)
	must.OK(t, x.putAgain(t.Context()))
	for _, promise := range x.promises() {
		if kept, err := promise.kept(t.Context()); err != nil || kept != promise.made {
			t.Errorf("%s: %t, %v; the table says %t", promise.what, kept, err, promise.made)
		}
	}
	shown, err := probeProfile(t.Context(), newScratch(client, bucket), "", driver.Profile{})
	if err != nil || shown.UnquotedETags != p.UnquotedETags {
		t.Errorf("conditions without quotes: %t, %v; the table says %t", shown.UnquotedETags, err, p.UnquotedETags)
	}
}
