package s3sim_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

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

// TestDeleteMarkers asks for a delete marker by its key and by its version.
func TestDeleteMarkers(t *testing.T) {
	x := newFixture(t, s3sim.Options{Profile: profile(t, "aws"), Versioning: true})
	x.mustPut("file", "bytes")
	marker := x.mustDelete().VersionId
	for name, test := range map[string]struct {
		version *string
		status  int
	}{
		"current": {nil, http.StatusNotFound}, "version": {marker, http.StatusMethodNotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := x.client.GetObject(
				t.Context(), &s3.GetObjectInput{Bucket: aws.String(bucket), Key: aws.String("file"),
					VersionId: test.version})
			var response *smithyhttp.ResponseError
			if !errors.As(err, &response) || response.HTTPStatusCode() != test.status {
				t.Fatalf("%v, want the status %d", err, test.status)
			}
			h := response.Response.Header
			if h.Get("X-Amz-Delete-Marker") != "true" || h.Get("X-Amz-Version-Id") != *marker {
				t.Errorf("the headers are %v", h)
			}
		})
	}
	_, err := x.client.GetObject(
		t.Context(), &s3.GetObjectInput{Bucket: aws.String(bucket), Key: aws.String("file"),
			VersionId: aws.String("none")})
	wantCode(t, err, "NoSuchVersion")
	out, err := x.client.ListObjectsV2(
		t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String(bucket), Delimiter: aws.String("i")})
	if err != nil || len(out.CommonPrefixes) > 0 {
		t.Errorf("a prefix of delete markers is listed: %+v, %v", out, err)
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

// TestOtherRequests makes requests that the simulator must not treat as requests to read or to store an object.
func TestOtherRequests(t *testing.T) {
	x := newFixture(t, s3sim.Options{Profile: profile(t, "aws")})
	web := httptest.NewServer(x.Server)
	t.Cleanup(web.Close)
	x.mustPut("file", "bytes")
	for _, request := range []string{
		"GET /bucket?policy", "PUT /bucket?policy", "DELETE /bucket?policy", "GET /bucket?acl", "PUT /bucket?lifecycle",
		"GET /bucket?policyStatus",
		"GET /bucket/file?acl", "PUT /bucket/file?acl", "GET /bucket/file?attributes", "GET /bucket/file?torrent",
		"PUT /bucket/file?renameObject",
		"PUT /bucket/file?partNumber=1", "POST /bucket/file?restore", "POST /bucket/file?select", "PATCH /bucket/file",
		"POST /bucket/file",
	} {
		t.Run(strings.NewReplacer(" /", "-", "/", "-").Replace(request), func(t *testing.T) {
			method, path, _ := strings.Cut(request, " ")
			if got := do(t, method, web.URL+path, nil); got != http.StatusNotImplemented {
				t.Errorf("status %d", got)
			}
			x.want("file", "bytes")
		})
	}
}

func TestRanges(t *testing.T) {
	x := newFixture(t, s3sim.Options{Profile: profile(t, "aws")})
	web := httptest.NewServer(x.Server)
	t.Cleanup(web.Close)
	x.mustPut("file", "bytes")
	x.mustPut("empty", "")
	for value, want := range map[string][2]int{ // of the file, and of the empty one
		"bytes=0-1": {206, 416}, "bytes=4-": {206, 416}, "bytes=-2": {206, 200}, "bytes=0-9": {206, 416},
		"bytes=5-": {416, 416}, "bytes=-0": {416, 416},
		"bytes=2-1": {200, 200}, "bytes=a-b": {200, 200}, "bytes=0-1,3-4": {200, 200}, "bytes=": {200, 200},
		"bytes=-":    {200, 200},
		"bytes=+1-2": {200, 200}, "bytes= 1-2": {200, 200}, "lines=1-2": {200, 200}, "bytes=--1": {200, 200},
	} {
		for i, key := range []string{"file", "empty"} {
			if got := do(t, http.MethodGet, web.URL+"/"+bucket+"/"+key, http.Header{"Range": {value}}); got != want[i] {
				t.Errorf("%s of %s: status %d, want %d", value, key, got, want[i])
			}
		}
	}
}

// do makes a request and returns the status of its answer.
func do(t *testing.T, method, address string, header http.Header) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		r.Header[name] = values
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

// TestConditionsOnMissingKeys makes conditional writes where no object is.
func TestConditionsOnMissingKeys(t *testing.T) {
	x := newFixture(t, s3sim.Options{Profile: profile(t, "aws")})
	etag := aws.String(`"other"`)
	_, err := x.put("file", "new", func(in *s3.PutObjectInput) { in.IfMatch = etag })
	wantCode(t, err, "NoSuchKey")
	_, err = x.client.DeleteObject(
		t.Context(), &s3.DeleteObjectInput{Bucket: aws.String(bucket), Key: aws.String("file"), IfMatch: etag})
	wantCode(t, err, "NoSuchKey")
	in := x.begin()
	in.IfMatch = etag
	_, err = x.client.CompleteMultipartUpload(t.Context(), in)
	wantCode(t, err, "NoSuchKey")
	_, err = x.put("file", "new", func(in *s3.PutObjectInput) { in.IfMatch, in.IfNoneMatch = etag, aws.String("*") })
	wantCode(t, err, "NotImplemented")
	_, err = x.client.DeleteObject(
		t.Context(), &s3.DeleteObjectInput{Bucket: aws.String(bucket), Key: aws.String("file"),
			IfMatchSize: aws.Int64(0)})
	wantCode(t, err, "NotImplemented")
	x.want()
}
