package s3client

import (
	"net/http"
	"slices"
	"testing"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/config"
)

// Each profile can be named in the configuration.
func TestProfileNames(t *testing.T) {
	var names []string
	for _, p := range config.Profiles() {
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
		{"https://s3.us-west-004.backblazeb2.com", "data", "backblaze"},
		{"https://data.s3.eu-central-003.backblazeb2.com", "data", "backblaze"},
		{"https://bigquery.googleapis.com", "data", ""},
		{"https://s3.fr-par.scw.cloud", "data", "scaleway"},
		{"https://data.s3.nl-ams.scw.cloud", "data", "scaleway"},
		{"https://s3.gra.io.cloud.ovh.net", "data", "ovh"},
		{"https://s3.us-east-va.io.cloud.ovh.us", "data", "ovh"},
		{"https://s3.gra.perf.cloud.ovh.net", "data", "ovh"},
		{"https://s3.gra.cloud.ovh.net", "data", ""},
		{"https://oss-cn-hangzhou.aliyuncs.com", "data", "alibaba"},
		{"https://cos.ap-guangzhou.myqcloud.com", "data-1250000000", "tencent"},
		{"https://fsn1.your-objectstorage.com", "data", "ceph"},
		{"https://nyc3.digitaloceanspaces.com", "data", "ceph"},
		{"https://s3.eu-central-1.wasabisys.com", "data", ""},
		{"https://amazonaws.com.example", "data", ""},
		{"https://notamazonaws.com", "data", ""},
		{"http://127.0.0.1:9000", "data--use1-az4--x-s3", ""},
		{"://", "data", ""},
	} {
		if got := profileOfEndpoint(tc.endpoint, tc.bucket); got != tc.want {
			t.Errorf("%s, bucket %s: %q; want %q", tc.endpoint, tc.bucket, got, tc.want)
		}
	}
}

func TestProfileOfResponse(t *testing.T) {
	const ofCeph, ofSwift, ofAWS = "tx00000700341ec0bae8d5b-006b0526ed-100e-default",
		"tx58f0deecac4c4ab383554-006b0526fc", "TX2Z5B5DQ1A1S0V3"
	for _, tc := range []struct{ server, request, transaction, want string }{
		{"MinIO", "", "", "minio"},
		{"Ceph Object Gateway (tentacle)", ofCeph, "", "ceph"},
		{"VERSITYGW", "", "", "versitygw"},
		{"", "", "", ""},
		{"AmazonS3", ofAWS, "", ""},
		{"nginx", "", "", ""},
		{"", ofCeph, "", "ceph"},
		{"nginx", ofCeph, "", "ceph"},
		{"", ofSwift, ofSwift, "swift"},
		{"", ofSwift + "-region-one-a", ofSwift + "-region-one-a", "swift"},
		{"", ofSwift, "", ""}, // a proxy removed the other headers
	} {
		header := http.Header{}
		for name, value := range map[string]string{"Server": tc.server, "X-Amz-Request-Id": tc.request,
			"X-Trans-Id": tc.transaction} {
			if value != "" {
				header.Set(name, value)
			}
		}
		if got := profileOfResponse(header); got != tc.want {
			t.Errorf("%v: got %q; want %q", header, got, tc.want)
		}
	}
}
