package s3client

import (
	"errors"
	iofs "io/fs"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// The error of a denied request names the needed action, even for HEAD, whose response has no code. Other errors stay
// unchanged.
func TestExplain(t *testing.T) {
	s := s3test.Start(t, "minio")
	bucket := s.Bucket(t)
	explain := func(o *s3.Options) { o.APIOptions = append(o.APIOptions, Region(s.Region).Explain) }
	policy := newPolicy(
		[]allowance{{Permission: Permission{
			Action: PutObject, Resource: "arn:aws:s3:::" + bucket + "/*",
		}}})
	restricted := s.Restricted(t, policy).Client(explain)
	if _, err := restricted.PutObject(
		t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: aws.String("key"),
			Body: strings.NewReader("x")}); err != nil {
		t.Fatal(err)
	}
	arn := "arn:aws:s3:::" + bucket
	cases := " (and s3:ListBucket on " + arn +
		" if there is no such object, kms:Decrypt on the key if KMS encrypts the object)"
	for name, tc := range map[string]struct {
		request func() error
		want    string
	}{
		"abort": {func() error {
			_, err := restricted.AbortMultipartUpload(
				t.Context(), &s3.AbortMultipartUploadInput{Bucket: &bucket, Key: aws.String("key"),
					UploadId: aws.String("x")})
			return err
		}, "s3:AbortMultipartUpload on " + arn + "/key"},
		"head": {func() error {
			_, err := restricted.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: &bucket, Key: aws.String("key")})
			return err
		}, "s3:GetObject on " + arn + "/key" + cases},
		"get": {func() error {
			_, err := restricted.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: aws.String("key")})
			return err
		}, "s3:GetObject on " + arn + "/key" + cases},
		"list": {func() error {
			_, err := restricted.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &bucket})
			return err
		}, "s3:ListBucket on " + arn},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.request()
			denied, ok := errors.AsType[*DeniedError](err)
			if !ok || denied.Needed() != tc.want ||
				!strings.Contains(err.Error(), "the IAM policy must allow "+tc.want+": ") {
				t.Errorf("%v\nwant %s", err, tc.want)
			}
			if response, ok := errors.AsType[*smithyhttp.ResponseError](err); !ok ||
				response.HTTPStatusCode() != http.StatusForbidden {
				t.Error("the error of S3 was lost")
			}
		})
	}
	wrong := *s
	wrong.SecretAccessKey = "wrong"
	for name, client := range map[string]*s3.Client{"wrong-secret": wrong.Client(explain),
		"missing-object": s.Client(explain)} {
		_, err := client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: aws.String("missing")})
		if _, denied := errors.AsType[*DeniedError](err); err == nil || denied {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := restricted.GetBucketPolicy(t.Context(), &s3.GetBucketPolicyInput{Bucket: &bucket}); err == nil ||
		strings.Contains(err.Error(), "IAM policy") {
		t.Errorf("request that is not in the table: %v", err)
	}
}

// The denial of a single key also names the action, although S3 responds 200 to DeleteObjects. MinIO gets such
// requests for files in versioned buckets, because its DeleteObject creates no delete marker.
func TestExplainKeys(t *testing.T) {
	s := s3test.Start(t, "minio")
	for _, name := range []string{"plain", "versioned"} {
		t.Run(name, func(t *testing.T) {
			bucket := s.Bucket(t)
			if name == "versioned" {
				bucket = s.VersionedBucket(t)
			}
			arn := "arn:aws:s3:::" + bucket
			policy := newPolicy([]allowance{
				{Permission: Permission{Action: ListBucket, Resource: arn}},
				{Permission: Permission{Action: PutObject, Resource: arn + "/*"}},
				{Permission: Permission{Action: GetObject, Resource: arn + "/*"}},
			})
			client := s.Restricted(t, policy).Client(func(o *s3.Options) {
				o.APIOptions = append(o.APIOptions, Region(s.Region).Explain)
			})
			p, _ := driver.ProfileNamed("minio")
			files, err := driver.New(client, bucket, &driver.Options{Profile: p})
			must.OK(t, err)
			fs := files.Afero(t.Context())
			for _, file := range []string{"in/a.csv", "in/b.csv"} {
				must.OK(t, afero.WriteFile(fs, file, []byte("x"), 0o644))
			}
			for operation, run := range map[string]func() error{
				"remove": func() error { return fs.Remove("in/a.csv") },
				"rename": func() error { return fs.Rename("in", "out") },
			} {
				err := run()
				if err == nil || !errors.Is(err, iofs.ErrPermission) || !strings.Contains(err.Error(), ", request ") ||
					!strings.Contains(err.Error(), "the IAM policy must allow s3:DeleteObject on "+arn+"/") {
					t.Errorf("%s: %v", operation, err)
				}
			}
			keys := []types.ObjectIdentifier{{Key: aws.String("in/a.csv")}}
			out, err := client.DeleteObjects(t.Context(), &s3.DeleteObjectsInput{
				Bucket: &bucket, Delete: &types.Delete{Objects: keys}})
			must.OK(t, err)
			want := "the IAM policy must allow s3:DeleteObject on " + arn + "/in/a.csv: "
			if len(out.Errors) != 1 || !strings.HasPrefix(aws.ToString(out.Errors[0].Message), want) {
				t.Errorf("DeleteObjects has %d errors, want one that begins with %q", len(out.Errors), want)
			}
		})
	}
}
