package account

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/storage/view"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// loginTo returns the view of alice in acme.
func loginTo(t *testing.T, s *s3test.Server, cfg *config.Config) *view.Files {
	t.Helper()
	l, err := registryBefore(t, cfg, s).Login(t.Context(), &LoginRequest{
		User: "alice", Password: password, BeforeCommit: func(context.Context) error { return nil },
	})
	must.OK(t, err)
	return l.Files(t.Context(), Client{}, nil)
}

// write stores a file.
func write(files *view.Files, name, content string) error {
	file, err := files.OpenWriter(name, os.O_CREATE|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(file, content); err != nil {
		return err
	}
	return file.Close()
}

// Files are stored with the object settings of the tenant. They cannot be read without the tenant's own key.
func TestObjects(t *testing.T) {
	s := s3test.Start(t, "minio-tls")
	key := value.NewSecret(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32)))
	for name, tc := range map[string]struct {
		encryption config.Objects
		want       types.ServerSideEncryption
	}{
		"none": {config.Objects{}, ""},
		"s3":   {config.Objects{Encryption: config.EncryptionS3}, types.ServerSideEncryptionAes256},
		"kms":  {config.Objects{Encryption: config.EncryptionKMS}, types.ServerSideEncryptionAwsKms},
		"kms-key": {config.Objects{Encryption: config.EncryptionKMS, KMSKeyID: s3test.KMSKey},
			types.ServerSideEncryptionAwsKms},
		"customer": {config.Objects{Encryption: config.EncryptionCustomer, CustomerKey: key}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := servicetest.NewConfig(t, s)
			cfg.S3.Profile = "minio" // which supports checksums
			acme := cfg.Tenants["acme"]
			acme.Objects = tc.encryption
			acme.Objects.ContentTypes = map[string]string{".dwg": "application/x-own"}
			acme.Objects.CacheControl, acme.Objects.StorageClass = "no-cache", "REDUCED_REDUNDANCY"
			acme.Objects.ACL, acme.Objects.Checksum = "bucket-owner-full-control", "sha256"
			acme.Objects.Tags = map[string]string{"source": "ftp"}
			files := loginTo(t, s, cfg)
			must.OK(t, write(files, "/a.DWG", "content"))
			file, err := files.OpenReader("/a.DWG", 0)
			must.OK(t, err)
			defer file.Close()
			if content, err := io.ReadAll(file); err != nil || string(content) != "content" {
				t.Errorf("got %q, %v", content, err)
			}
			out, err := s.Client().HeadObject(t.Context(), &s3.HeadObjectInput{
				Bucket: &acme.Bucket, Key: aws.String("inbox/a.DWG"), ChecksumMode: types.ChecksumModeEnabled,
			})
			if name == "customer" {
				if err == nil {
					t.Error("read the object without the key")
				}
				return
			}
			must.OK(t, err)
			if aws.ToString(out.ContentType) != "application/x-own" || aws.ToString(out.CacheControl) != "no-cache" ||
				out.StorageClass != types.StorageClassReducedRedundancy || aws.ToInt32(out.TagCount) != 1 ||
				out.ChecksumSHA256 == nil || out.ServerSideEncryption != tc.want {
				t.Errorf("unexpected object %+v", out)
			}
		})
	}
}
