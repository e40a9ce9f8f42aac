package server

import (
	"fmt"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// The error about a folder names the keys to correct.
func TestCheckFolders(t *testing.T) {
	s := s3test.Start(t, "minio")
	cfg := servicetest.NewConfig(t, s)
	acme := cfg.Tenants["acme"]
	acme.Folders = map[string]*config.Folder{
		"/fine":    {Bucket: s.Bucket(t)},
		"/missing": {Bucket: "no-such-bucket"},
		"/part":    {Prefix: "part/"},
		"/wrong": {Bucket: s.Bucket(t),
			S3: config.S3{AccessKeyID: "nobody", SecretAccessKey: value.NewSecret("wrong")}},
	}
	want := fmt.Sprintf(
		`tenant acme: folder /missing: bucket "no-such-bucket": does not exist at %s (NoSuchBucket: The specified bucket does not exist): create it, or correct tenants.acme.folders./missing.bucket
tenant acme: folder /wrong: bucket %q: %[1]s refuses the credentials (InvalidAccessKeyId: The Access Key Id you provided does not exist in our records.): correct tenants.acme.folders./wrong.s3.access_key_id and `+
			`tenants.acme.folders./wrong.s3.secret_access_key`, s.Endpoint, acme.Folders["/wrong"].Bucket)
	if got := probe(t, cfg, s.AWSConfig()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
