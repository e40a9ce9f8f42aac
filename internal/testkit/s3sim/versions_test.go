package s3sim_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

// TestObjectLock has a bucket whose objects are retained by default.
func TestObjectLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newFixture(t, s3sim.Options{Profile: profile(t, "aws"), Versioning: true})
		_, err := x.client.PutObjectLockConfiguration(t.Context(), &s3.PutObjectLockConfigurationInput{
			Bucket: aws.String(bucket), ObjectLockConfiguration: &types.ObjectLockConfiguration{
				ObjectLockEnabled: types.ObjectLockEnabledEnabled,
				Rule: &types.ObjectLockRule{
					DefaultRetention: &types.DefaultRetention{Mode: types.ObjectLockRetentionModeCompliance,
						Days: aws.Int32(1)},
				},
			},
		})
		wantCode(t, err, "")
		plain := func(o *s3.Options) { o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired }
		_, err = x.client.PutObject(
			t.Context(), &s3.PutObjectInput{Bucket: aws.String(bucket), Key: aws.String("file")}, plain)
		wantCode(t, err, "InvalidRequest")
		u, err := x.client.CreateMultipartUpload(
			t.Context(), &s3.CreateMultipartUploadInput{Bucket: aws.String(bucket), Key: aws.String("file")}, plain)
		wantCode(t, err, "")
		_, err = x.client.UploadPart(t.Context(), &s3.UploadPartInput{
			Bucket: aws.String(bucket), Key: aws.String("file"), UploadId: u.UploadId, PartNumber: aws.Int32(1),
			Body: strings.NewReader("bytes"),
		}, plain)
		wantCode(t, err, "InvalidRequest")

		x.mustPut("file", "bytes", func(in *s3.PutObjectInput) { in.ChecksumAlgorithm = types.ChecksumAlgorithmCrc32c })
		version := x.Objects(bucket)[0].VersionID
		remove := &s3.DeleteObjectInput{Bucket: aws.String(bucket), Key: aws.String("file"), VersionId: &version}
		_, err = x.client.DeleteObject(t.Context(), remove)
		wantCode(t, err, "AccessDenied")
		wantCode(t, x.delete("file"), "") // by a marker
		x.want()
		time.Sleep(25 * time.Hour)
		_, err = x.client.DeleteObject(t.Context(), remove)
		wantCode(t, err, "")
	})
}
