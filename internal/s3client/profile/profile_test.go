package profile

import (
	"slices"
	"testing"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/config/bucket"
)

// A configuration may name each profile.
func TestProfileNames(t *testing.T) {
	var names []string
	for _, p := range bucket.Profiles() {
		names = append(names, string(p))
	}
	if want := driver.ProfileNames(); !slices.Equal(names, want) {
		t.Errorf("got  %v\nwant %v", names, want)
	}
}

func TestProfileOfEndpoint(t *testing.T) {
	for _, tc := range []struct{ endpoint, bucket, want string }{
		{"", "data", "aws"},
		{"", "data--use1-az4--x-s3", "aws-directory"},
		{"https://s3.eu-central-1.amazonaws.com", "data", "aws"},
		{"https://S3.eu-central-1.Amazonaws.com:443/", "data", "aws"},
		{"https://s3.cn-north-1.amazonaws.com.cn", "data", "aws"},
		{"https://s3express-use1-az4.us-east-1.amazonaws.com", "data--use1-az4--x-s3", "aws-directory"},
		{"https://0123456789abcdef.r2.cloudflarestorage.com", "data", "r2"},
		{"https://0123456789abcdef.eu.r2.cloudflarestorage.com", "data", "r2"},
		{"https://storage.googleapis.com", "data", "gcs"},
		{"https://storage.europe-west3.rep.googleapis.com", "data", "gcs"},
		{"https://data.storage.googleapis.com", "data", "gcs"},
		{"https://bigquery.googleapis.com", "data", ""},
		{"https://amazonaws.com.example", "data", ""},
		{"https://notamazonaws.com", "data", ""},
		{"http://127.0.0.1:9000", "data--use1-az4--x-s3", ""},
		{"://", "data", ""},
	} {
		if got := OfEndpoint(tc.endpoint, tc.bucket); got != tc.want {
			t.Errorf("%s, bucket %s: %q; want %q", tc.endpoint, tc.bucket, got, tc.want)
		}
	}
}

func TestProfileOfServer(t *testing.T) {
	for header, want := range map[string]string{
		"MinIO": "minio", "Ceph Object Gateway (tentacle)": "ceph", "VERSITYGW": "versitygw",
		"": "", "AmazonS3": "", "nginx": "",
	} {
		if got := OfServer(header); got != want {
			t.Errorf("%q: %q; want %q", header, got, want)
		}
	}
}
