package s3sim_test

import (
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

// mustDelete deletes "file".
func (x *fixture) mustDelete() *s3.DeleteObjectOutput {
	x.Helper()
	out, err := x.client.DeleteObject(
		x.Context(), &s3.DeleteObjectInput{Bucket: aws.String(bucket), Key: aws.String("file")})
	if err != nil {
		x.Fatal(err)
	}
	return out
}

func (x *fixture) setVersioning(status types.BucketVersioningStatus) {
	x.Helper()
	_, err := x.client.PutBucketVersioning(x.Context(), &s3.PutBucketVersioningInput{
		Bucket: aws.String(bucket), VersioningConfiguration: &types.VersioningConfiguration{Status: status},
	})
	if err != nil {
		x.Fatal(err)
	}
}

// TestNullVersions stores objects before versioning is enabled, and after it is suspended.
func TestNullVersions(t *testing.T) {
	x := newFixture(t, s3sim.Options{Profile: profile(t, "aws")})
	x.mustPut("file", "first")
	x.setVersioning(types.BucketVersioningStatusEnabled)
	x.mustPut("file", "second")
	x.wantVersions("second", "first")
	x.setVersioning(types.BucketVersioningStatusSuspended)
	x.mustPut("file", "third") // replaces the null version
	x.wantVersions("third", "second")
	if out := x.mustDelete(); aws.ToString(out.VersionId) != "null" || !aws.ToBool(out.DeleteMarker) {
		t.Errorf("%+v", out)
	}
	x.wantVersions("marker", "second")
	out, err := x.client.DeleteObject(t.Context(), &s3.DeleteObjectInput{
		Bucket: aws.String(bucket), Key: aws.String("file"), VersionId: aws.String("null"),
	})
	if err != nil || !aws.ToBool(out.DeleteMarker) {
		t.Errorf("%+v, %v", out, err)
	}
	x.wantVersions("second")
	x.want("file", "second")
}

// wantVersions checks the versions of "file", the latest first, as the listing has them in pages of one.
func (x *fixture) wantVersions(contents ...string) {
	x.Helper()
	got, latest := []string{}, []bool{}
	pages := s3.NewListObjectVersionsPaginator(
		x.client, &s3.ListObjectVersionsInput{Bucket: aws.String(bucket), MaxKeys: aws.Int32(1)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(x.Context())
		if err != nil {
			x.Fatal(err)
		}
		for _, v := range page.Versions {
			out, err := x.client.GetObject(
				x.Context(), &s3.GetObjectInput{Bucket: aws.String(bucket), Key: v.Key, VersionId: v.VersionId})
			if err != nil {
				x.Fatal(err)
			}
			content, _ := io.ReadAll(out.Body)
			_ = out.Body.Close()
			got, latest = append(got, string(content)), append(latest, *v.IsLatest)
		}
		for _, m := range page.DeleteMarkers {
			got, latest = append(got, "marker"), append(latest, *m.IsLatest)
		}
	}
	if !slices.Equal(got, contents) || slices.Index(latest, true) != 0 || slices.Contains(latest[1:], true) {
		x.Errorf("the versions are %q, latest %t, want %q", got, latest, contents)
	}
}

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
		x.mustDelete() // a marker
		x.want()
		time.Sleep(25 * time.Hour)
		_, err = x.client.DeleteObject(t.Context(), remove)
		wantCode(t, err, "")
	})
}
