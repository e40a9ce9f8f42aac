package s3test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// Server is a running S3 server.
type Server struct {
	// Name is what Start calls it, such as "minio".
	Name string

	// Endpoint, Region, AccessKeyID and SecretAccessKey are what a client is configured with, in path style. The
	// account may do everything.
	Endpoint, Region, AccessKeyID, SecretAccessKey string

	// SessionToken belongs to the credentials of Restricted. It is empty elsewhere.
	SessionToken string

	// HTTPClient reaches the endpoint, as any other does unless that is https.
	HTTPClient *http.Client

	// Folder is where a server over a file system has a folder for each bucket. It is empty for others.
	Folder string

	// SmallestPart is the fewest bytes of a part that is not the last one, of a simulator: less than S3 takes, so that
	// tests send fewer bytes. It is 0 for other servers.
	SmallestPart int64

	forget   func(bucket string)                                     // of a simulator
	restrict func(ctx context.Context, policy string) (login, error) // nil for a server with an STS
}

// maxBackoff is the longest time between two attempts of a client. It is short, because a server that a test breaks
// needs no rest.
const maxBackoff = 20 * time.Millisecond

// AWSConfig is what the AWS SDK needs to reach the server, with the defaults of config.LoadDefaultConfig but for the
// time between two attempts. An S3 client made from it must set UsePathStyle.
func (s *Server) AWSConfig() *aws.Config {
	return &aws.Config{
		BaseEndpoint: aws.String(s.Endpoint),
		Region:       s.Region,
		Credentials: credentials.NewStaticCredentialsProvider(
			s.AccessKeyID, s.SecretAccessKey, s.SessionToken),
		HTTPClient:                 s.HTTPClient,
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenSupported,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenSupported,
		Retryer: func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = maxBackoff })
		},
	}
}

// Client is an S3 client for the server with the configuration of AWSConfig and optFns.
func (s *Server) Client(optFns ...func(*s3.Options)) *s3.Client {
	pathStyle := func(o *s3.Options) { o.UsePathStyle = true }
	return s3.NewFromConfig(*s.AWSConfig(), append([]func(*s3.Options){pathStyle}, optFns...)...)
}

// Restricted returns the same server for credentials that may do no more than an IAM policy allows, given as a value
// for JSON. MinIO and Ceph can do that.
func (s *Server) Restricted(tb testing.TB, policy any) *Server {
	tb.Helper()
	text, err := json.Marshal(policy)
	must.OK(tb, err)
	if s.restrict != nil {
		user, err := s.restrict(tb.Context(), string(text))
		if err != nil {
			tb.Fatalf("S3 server %s: %v\n%s", s.Name, err, text)
		}
		restricted := *s
		restricted.AccessKeyID, restricted.SecretAccessKey = user.accessKeyID, user.secretAccessKey
		return &restricted
	}
	issued, err := assumeRole(tb.Context(), s, string(text))
	if err != nil {
		tb.Fatalf("S3 server %s: %v\n%s", s.Name, err, text)
	}
	restricted := *s
	restricted.AccessKeyID, restricted.SecretAccessKey = *issued.AccessKeyId, *issued.SecretAccessKey
	restricted.SessionToken = *issued.SessionToken
	return &restricted
}

// Bucket makes a bucket with a name of its own and returns the name. Main removes it with the server's data, and a
// simulator, whose data are in memory, forgets it at the end of the test.
func (s *Server) Bucket(tb testing.TB) string {
	tb.Helper()
	name := "test-" + strings.ToLower(rand.Text())
	if _, err := s.Client().CreateBucket(tb.Context(), &s3.CreateBucketInput{Bucket: &name}); err != nil {
		tb.Fatalf("S3 server %s: %v", s.Name, err)
	}
	if s.forget != nil {
		tb.Cleanup(func() { s.forget(name) })
	}
	return name
}

// VersionedBucket makes a bucket that keeps versions. So can the servers of [RunVersioned].
func (s *Server) VersionedBucket(tb testing.TB) string {
	tb.Helper()
	name := s.Bucket(tb)
	s.SetVersioning(tb, name, types.BucketVersioningStatusEnabled)
	return name
}

// SetVersioning says whether a bucket keeps versions from now on.
func (s *Server) SetVersioning(tb testing.TB, bucket string, status types.BucketVersioningStatus) {
	tb.Helper()
	_, err := s.Client().PutBucketVersioning(tb.Context(), &s3.PutBucketVersioningInput{
		Bucket: &bucket, VersioningConfiguration: &types.VersioningConfiguration{Status: status},
	})
	if err != nil {
		tb.Fatalf("S3 server %s: %v", s.Name, err)
	}
}

// LockedBucket makes a bucket with Object Lock, in which S3 keeps each version for a day. MinIO can do that.
func (s *Server) LockedBucket(tb testing.TB) string {
	tb.Helper()
	name, client := "locked-"+strings.ToLower(rand.Text()), s.Client()
	_, err := client.CreateBucket(
		tb.Context(), &s3.CreateBucketInput{Bucket: &name, ObjectLockEnabledForBucket: aws.Bool(true)})
	if err != nil {
		tb.Fatalf("S3 server %s: %v", s.Name, err)
	}
	retention := types.DefaultRetention{Mode: types.ObjectLockRetentionModeGovernance, Days: aws.Int32(1)}
	_, err = client.PutObjectLockConfiguration(tb.Context(), &s3.PutObjectLockConfigurationInput{
		Bucket: &name, ObjectLockConfiguration: &types.ObjectLockConfiguration{
			ObjectLockEnabled: types.ObjectLockEnabledEnabled,
			Rule:              &types.ObjectLockRule{DefaultRetention: &retention},
		},
	})
	if err != nil {
		tb.Fatalf("S3 server %s: %v", s.Name, err)
	}
	return name
}
