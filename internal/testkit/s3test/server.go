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
	// Name is the name that Start takes, such as "minio".
	Name string

	// Endpoint, Region, AccessKeyID and SecretAccessKey configure a client, which must use path style. The account
	// has all permissions.
	Endpoint, Region, AccessKeyID, SecretAccessKey string

	// SessionToken is set only for the credentials returned by Restricted.
	SessionToken string

	// HTTPClient reaches the endpoint. For an http endpoint, any other client does too.
	HTTPClient *http.Client

	// Folder contains a directory for each bucket if the server stores objects in a file system. Otherwise it is
	// empty.
	Folder string

	// SmallestPart is a simulator's minimum size in bytes for every part except the last. It is smaller than S3's,
	// so that tests send less data. It is 0 for other servers.
	SmallestPart int64

	forget   func(bucket string)                                     // simulators only
	restrict func(ctx context.Context, policy string) (login, error) // nil for a server with an STS
}

// maxBackoff limits a client's backoff. It is short because the faults in tests are artificial.
const maxBackoff = 20 * time.Millisecond

// AWSConfig returns the AWS SDK configuration for the server. It has the defaults of config.LoadDefaultConfig
// except for a shorter backoff. An S3 client made from it must set UsePathStyle.
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

// Client returns an S3 client with the configuration of AWSConfig and optFns.
func (s *Server) Client(optFns ...func(*s3.Options)) *s3.Client {
	pathStyle := func(o *s3.Options) { o.UsePathStyle = true }
	return s3.NewFromConfig(*s.AWSConfig(), append([]func(*s3.Options){pathStyle}, optFns...)...)
}

// Restricted returns the same server with credentials that are limited by an IAM policy, which is marshaled to
// JSON. Only MinIO and Ceph support it.
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

// Bucket creates a bucket with a unique name and returns the name. Main removes the bucket with the server's data.
// A simulator, which keeps its data in memory, removes it at the end of the test.
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

// VersionedBucket creates a bucket that keeps versions. Use it with the servers of [RunVersioned].
func (s *Server) VersionedBucket(tb testing.TB) string {
	tb.Helper()
	name := s.Bucket(tb)
	s.SetVersioning(tb, name, types.BucketVersioningStatusEnabled)
	return name
}

// SetVersioning enables or suspends versioning of a bucket.
func (s *Server) SetVersioning(tb testing.TB, bucket string, status types.BucketVersioningStatus) {
	tb.Helper()
	_, err := s.Client().PutBucketVersioning(tb.Context(), &s3.PutBucketVersioningInput{
		Bucket: &bucket, VersioningConfiguration: &types.VersioningConfiguration{Status: status},
	})
	if err != nil {
		tb.Fatalf("S3 server %s: %v", s.Name, err)
	}
}

// LockedBucket creates a bucket with Object Lock and a default retention of one day. Use it with the servers of
// [RunLocked].
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
