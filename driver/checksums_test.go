package driver_test

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// TestChecksumsRequired transfers without the checksums that the AWS SDK computes by itself. Over https it would send
// those at the end of a body, which not every server understands.
func TestChecksumsRequired(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"sim-aws", "minio", "versitygw", "minio-tls"} {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			s := s3test.Start(t, server)
			client := s.Client(func(o *s3.Options) {
				o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
				o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
			})
			opts := &driver.Options{PartSize: 5 << 20, CopyLimit: 10 << 20, Profile: profile(t, s)}
			checkTransfers(t, drivertest.MustNew(t.Context(), client, s.Bucket(t), opts))
		})
	}
}

// checkTransfers writes, appends, copies, reads and deletes.
func checkTransfers(t *testing.T, f *driver.Fs) {
	t.Helper()
	files := map[string][]byte{"/empty": nil, "/small": []byte("content"),
		"/large": bytes.Repeat([]byte("0123456789"), 1<<20+1)}
	for name, content := range files {
		if err := afero.WriteFile(f, "dir"+name, content, 0); err != nil {
			t.Fatalf("write %s: %v", name, err)
		}
		if err := drivertest.WriteAt(f, "dir"+name, os.O_APPEND, 0, []byte("!")); err != nil {
			t.Fatalf("append to %s: %v", name, err)
		}
	}
	for i := range 3 {
		must.OK(t, f.Rename("dir", "dir2"))
		must.OK(t, f.Copy(t.Context(), "dir2", fmt.Sprintf("copy%d", i)))
		must.OK(t, f.Rename("dir2", "dir"))
	}
	for name, content := range files {
		got, err := afero.ReadFile(f, "copy2"+name)
		if want := append(bytes.Clone(content), '!'); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s has %d bytes, %v; want %d", name, len(got), err, len(want))
		}
		for _, algorithm := range []string{"SHA-256", "CRC32", "MD5"} {
			if _, _, err := f.Hash(t.Context(), "copy2"+name, algorithm, 0, -1); err != nil {
				t.Errorf("%s of %s: %v", algorithm, name, err)
			}
		}
	}
	if err := f.RemoveAll("/"); err != nil {
		t.Error(err)
	}
	if infos, err := afero.ReadDir(f, "/"); err != nil || len(infos) > 0 {
		t.Errorf("%d entries are left, %v", len(infos), err)
	}
}
