package server

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/bucket"
	"github.com/babelftp/babelftp/internal/config/encryption"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/configtest"
	"github.com/babelftp/babelftp/internal/s3test"
)

// What is wrong with the bucket of ACME names the section. S3 is asked only if it may be.
func TestBucketOfACME(t *testing.T) {
	s := s3test.Start(t, "embedded")
	cfg, opts := configtest.New(t, s), Options{AWS: s.AWSConfig()}
	if notes, warnings, err := CheckACME(t.Context(), cfg, opts, true); notes != nil || warnings != nil || err != nil {
		t.Errorf("without the section: %q, %q, %v", notes, warnings, err)
	}
	cfg.TLS.ACME = encryption.ACME{
		Agree: true, Hosts: []string{"ftp.acme.example"}, Storage: encryption.ACMEStorage{Bucket: "no-such-bucket"}, HTTPListen: "127.0.0.1:0",
	}
	if _, _, err := CheckACME(t.Context(), cfg, opts, false); err != nil {
		t.Errorf("S3 is asked: %v", err)
	}
	if _, _, err := CheckACME(t.Context(), cfg, opts, true); err == nil || !strings.Contains(err.Error(), "cannot write in its storage: cannot store s3://no-such-bucket/.babelftp/acme/") {
		t.Errorf("a missing bucket: %v", err)
	}
	cfg.TLS.ACME.Storage.Bucket = s.Bucket(t)
	_, warnings, err := CheckACME(t.Context(), cfg, opts, true)
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "no certificate for ftp.acme.example yet") {
		t.Errorf("an empty bucket: %q, %v", warnings, err)
	}
	cfg.S3 = bucket.S3{}
	if _, err := New(t.Context(), cfg, Options{AWS: &aws.Config{}}); err == nil || !strings.Contains(err.Error(), "tls.acme.storage: write s3.region") {
		t.Errorf("without a region: %v", err)
	}
}

// After a reload the storage of ACME is reached with the credentials of the section s3, as the tenants are.
func TestReloadOfTheStorageOfACME(t *testing.T) {
	s := s3test.Start(t, "embedded")
	cfg := configtest.New(t, s)
	cfg.TLS.ACME = encryption.ACME{
		Agree: true, Hosts: []string{"ftp.acme.example"}, Storage: encryption.ACMEStorage{Bucket: s.Bucket(t)}, HTTPListen: "127.0.0.1:0",
	}
	right := cfg.S3
	cfg.S3.AccessKeyID, cfg.S3.SecretAccessKey = "revoked", value.NewSecret("revoked")
	srv, err := New(t.Context(), cfg, Options{AWS: s.AWSConfig()})
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.acme.Storage().Store(t.Context(), "key", []byte("value")); err == nil {
		t.Error("revoked credentials are accepted")
	}
	next := changed(t, cfg, func(next *config.Config) { next.S3 = right })
	reload(t, srv, next)
	if err := srv.acme.Storage().Store(t.Context(), "key", []byte("value")); err != nil {
		t.Error(err)
	}
	none := *next
	none.S3 = bucket.S3{}
	srv.opts.AWS.Region = ""
	if _, err := srv.prepareACME(&none); err == nil {
		t.Error("a storage without a region is taken")
	}
}
