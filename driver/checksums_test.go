package driver_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/base/contract"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// TestChecksumsRequired transfers files without the checksums that the AWS SDK computes by default. With HTTPS, the SDK
// would send them in trailers, which some servers do not understand.
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
			const partSize = 5 << 20
			opts := &driver.Options{PartSize: partSize, CopyLimit: 2 * partSize, Profile: profile(t, s)}
			checkTransfers(t, drivertest.MustNew(t.Context(), client, s.Bucket(t), opts), partSize)
		})
	}
}

// checkTransfers writes, appends, copies, reads and deletes files. One of them has more than two parts.
func checkTransfers(t *testing.T, f *drivertest.Fs, partSize int) {
	t.Helper()
	files := map[string][]byte{"/empty": nil, "/small": []byte("content"), "/large": patterned(2*partSize + 10)}
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

// checkPromise stores a file with a promised hash, which S3 cannot confirm without checksums.
func checkPromise(t *testing.T, f *drivertest.Fs) {
	t.Helper()
	sum := sha256.Sum256([]byte("content"))
	w, err := f.Driver.OpenWriter(t.Context(), "promised", os.O_CREATE|os.O_TRUNC, 0, &sum)
	must.OK(t, err)
	_, err = w.Write([]byte("content"))
	must.OK(t, err)
	must.OK(t, w.Close())
	info, err := w.Stat()
	must.OK(t, err)
	if got := info.(contract.Receipt).Verified(); got != "parts" {
		t.Errorf("verified by %q", got)
	}
}

// TestChecksumsRefused transfers files to servers that refuse every request with a checksum parameter. Presigned links
// must not have one either.
//
// Reported for Backblaze B2: vatesfr/xen-orchestra#8358 ("Unsupported header 'x-amz-checksum-mode'"), diced/zipline#746
func TestChecksumsRefused(t *testing.T) {
	t.Parallel()
	for _, name := range driver.ProfileNames() {
		p, _ := driver.ProfileNamed(name)
		if p.Checksums {
			continue
		}
		p.MisreadPartSources, p.Decompresses = false, false // not simulated
		for _, scheme := range []string{"http", "https"} {
			t.Run(name+"/"+scheme, func(t *testing.T) {
				t.Parallel()
				server := s3sim.New(s3sim.Options{Profile: p, MinPartSize: journalPart})
				server.CreateBucket("bucket")
				client := server.Client(nil, func(o *s3.Options) {
					o.BaseEndpoint = aws.String(scheme + "://s3sim.invalid")
					o.HTTPClient = refusesChecksums{o.HTTPClient}
					o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenSupported
					o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenSupported
				})
				f := drivertest.MustNew(t.Context(), client, "bucket", driver.Options{
					Profile: p, PartSize: journalPart, CopyLimit: 2 * journalPart, Owner: "alice",
					Presigner: s3.NewPresignClient(client),
					Objects:   driver.Objects{Checksum: types.ChecksumAlgorithmSha256},
				}.WithSmallestPart(journalPart))
				must.OK(t, afero.WriteFile(f, "file", []byte("content"), 0))
				link, err := f.Presign(t.Context(), "file", time.Minute)
				if err != nil || strings.Contains(strings.ToLower(link), "checksum") {
					t.Errorf("got %s, %v", link, err)
				}
				checkPromise(t, f)
				checkTransfers(t, f, journalPart)
			})
		}
	}
}

// refusesChecksums is a server that does not support checksums.
type refusesChecksums struct{ s3.HTTPClient }

func (c refusesChecksums) Do(r *http.Request) (*http.Response, error) {
	for name := range r.Header {
		if strings.Contains(name, "Checksum") || name == "X-Amz-Trailer" {
			const refusal = "<Error><Code>InvalidArgument</Code><Message>Unsupported header '%s' received for this " +
				"API call.</Message></Error>"
			return &http.Response{
				StatusCode: http.StatusBadRequest, Header: http.Header{}, Request: r,
				Body: io.NopCloser(strings.NewReader(fmt.Sprintf(refusal, strings.ToLower(name)))),
			}, nil
		}
	}
	return c.HTTPClient.Do(r)
}
