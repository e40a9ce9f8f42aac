package driver_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

func TestMain(m *testing.M) { s3test.Main(m) }

func TestConformance(t *testing.T) {
	t.Parallel()
	s3test.RunAll(t, func(t *testing.T, s *s3test.Server) {
		t.Parallel()
		conform(t, s)
	})
}

// conform runs the given groups of the suite on a server, or all groups if none are given.
func conform(t *testing.T, s *s3test.Server, groups ...string) {
	t.Helper()
	drivertest.Run(t, drivertest.Harness{
		PartSize: int(s.SmallestPart),
		New: func(c driver.Client, bucket string, opts *driver.Options) (*driver.Fs, error) {
			return driver.New(c, bucket, opts.WithSmallestPart(s.SmallestPart))
		},
		Bucket: func(tb testing.TB) (*s3.Client, string) {
			return s.Client(s3client.RetryUnstored("")), s.Bucket(tb)
		},
		Limits:      limits(s),
		Profile:     profile(t, s),
		OnlyProfile: s.Name == "sim-r2" || s.Name == "sim-strict",
		Groups:      groups,
	})
}

// profile returns the profile of a server. The names of simulators contain the name of their profile.
func profile(tb testing.TB, s *s3test.Server) driver.Profile {
	name := strings.TrimPrefix(strings.TrimSuffix(strings.TrimSuffix(s.Name, "-tls"), "-versions"), "sim-")
	p, known := driver.ProfileNamed(name)
	if !known {
		tb.Fatalf("unknown profile %q", name)
	}
	p.GhostPrefixes = false // the server sets it this way for a bucket that never had versioning
	return p
}

// limits returns what a server does not support, with the reasons. The suite fails if the server does support it.
func limits(s *s3test.Server) drivertest.Limits {
	l := drivertest.Limits{}
	switch s.Name {
	case "ceph":
		l[drivertest.EncryptionRequests] = "there is no server of keys"
		l[drivertest.StorageClasses] = "the zone has one"
	case "swift":
		l[drivertest.EncryptionRequests] = "501 NotImplemented"
		l[drivertest.StorageClasses] = "400 InvalidStorageClass"
		l[drivertest.Tags] = "501 NotImplemented"
		l[drivertest.Redirections] = "501 NotImplemented"
		l[drivertest.ChecksumsOfParts] = "400 MalformedXML"
	case "sim-r2":
		l[drivertest.Versions] = "R2 keeps no versions"
	case "minio":
		l[drivertest.LongSegments] = "a segment is the name of a folder on its drive"
		l[drivertest.ListFileBesideDirectory] = "everything under a/ is hidden while a exists"
		l[drivertest.LongDirectories] = "the folder of a marker has a name 11 bytes longer"
	case "versitygw":
		l[drivertest.FileBesideDirectory] = "an object is a file and a prefix a folder"
		l[drivertest.LongSegments] = "a segment is the name of a file"
		l[drivertest.ListControlCharacters] = "it does not know EncodingType, and lists U+FFFD for the character"
		l[drivertest.Encryption] = "the headers are ignored"
		l[drivertest.Versions] = "the gateway was given no place for them"
		l[drivertest.ReasonOfRefusal] = "500 InternalError for a marker and for a multipart upload"
	}
	return l
}

// simulated returns a simulated server with the named profile and an empty bucket "bucket". It accepts parts of
// journalPart and more.
func simulated(t *testing.T, name string) (driver.Profile, *s3sim.Server) {
	t.Helper()
	p, known := driver.ProfileNamed(name)
	if !known {
		t.Fatalf("unknown profile %q", name)
	}
	server := s3sim.New(s3sim.Options{Profile: p, MinPartSize: journalPart})
	server.CreateBucket("bucket")
	return p, server
}
