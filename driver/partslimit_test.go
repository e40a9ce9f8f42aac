package driver_test

import (
	"bytes"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/base/contract"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

// A file that needs more parts than S3 allows is refused with an error that names the limit, whether the profile has
// the limit or only the server. Its upload is not kept, because every attempt to resume it would fail in the same way.
// Reported for Scaleway: tus/tus-node-server#711, LINBIT/linstor-server#461
func TestPartLimit(t *testing.T) {
	t.Parallel()
	const limit = 4
	tooMuch := patterned(limit*journalPart + 2)
	for _, server := range []struct {
		name    string
		known   bool // the profile has the limit
		profile driver.Profile
	}{
		{"known", true, driver.Profile{}},
		{"unknown", false, driver.Profile{}},
		{"unknown-and-growing", false, driver.Profile{UnequalParts: true, PartCopy: true, ConditionalPut: true}},
	} {
		for name, run := range map[string]func(x *journalTest, f *drivertest.Fs) error{
			"STOR": func(_ *journalTest, f *drivertest.Fs) error { return drivertest.WriteAt(f, "file", anew, 0, tooMuch) },
			"STOR-by-one-write-a-part": func(x *journalTest, f *drivertest.Fs) error {
				file, client, done := x.open(f, anew, 0)
				for part := tooMuch; len(part) > 0; part = part[min(journalPart, len(part)):] {
					if _, err := client.Write(part[:min(journalPart, len(part))]); err != nil {
						break // the upload has ended
					}
				}
				_ = client.Close()
				return errors.Join(<-done, file.Close())
			},
			"resumed": func(x *journalTest, f *drivertest.Fs) error {
				file, client, done := x.open(f, anew, 0)
				x.send(client, tooMuch[:2*journalPart+1])
				synctest.Wait()
				x.interrupt(file, done)
				x.wantPending(f, 2*journalPart)
				return drivertest.WriteAt(f, "file", resume, 2*journalPart, tooMuch[2*journalPart:])
			},
			"APPE": func(_ *journalTest, f *drivertest.Fs) error { return drivertest.WriteAt(f, "file", resume, 3, tooMuch) },
		} {
			t.Run(server.name+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ofServer := server.profile
					ofServer.PartLimit = limit
					sim := s3sim.New(s3sim.Options{Profile: ofServer, MinPartSize: journalPart})
					sim.CreateBucket(journalBucket)
					x := &journalTest{t, sim, server.profile}
					if server.known {
						x.profile = ofServer
					}
					f, _, _ := x.replica(t.Context(), "alice")
					if name == "APPE" {
						must.OK(t, drivertest.WriteAt(f, "file", anew, 0, []byte("old")))
					}
					err := run(x, f)
					refused, ok := errors.AsType[contract.PartsError](err)
					if !ok || !errors.Is(err, syscall.EFBIG) {
						t.Fatalf("unexpected error: %v", err)
					}
					parts, partSize, size, equal := refused.PartsLimit()
					if parts != limit || partSize != journalPart || size != limit*journalPart ||
						equal != !server.profile.UnequalParts {
						t.Errorf("the limit is %d parts of %d bytes, together %d, equal %t", parts, partSize, size, equal)
					}
					x.wantPending(f, 0)
					x.wantFile([]byte("old"))
				})
			})
		}
	}
}

// Copying and appending must not use more parts than the profile allows.
func TestCopyWithinPartLimit(t *testing.T) {
	t.Parallel()
	content := patterned(10 * journalPart)
	for name, p := range map[string]driver.Profile{
		"equal":      {PartLimit: 4},
		"with-parts": {PartLimit: 4, PartCopy: true, UnequalParts: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim := s3sim.New(s3sim.Options{Profile: p, MinPartSize: journalPart})
				sim.CreateBucket(journalBucket)
				x := &journalTest{t, sim, p}
				_, err := sim.Client(nil).PutObject(t.Context(), &s3.PutObjectInput{
					Bucket: aws.String(journalBucket), Key: aws.String("file"), Body: bytes.NewReader(content),
				})
				must.OK(t, err)
				f := x.files(t.Context(), sim.Client(nil), driver.Options{CopyLimit: 6 * journalPart})
				must.OK(t, f.Copy(t.Context(), "file", "copy"))
				must.OK(t, drivertest.WriteAt(f, "copy", resume, int64(len(content)), []byte("more")))
				for _, object := range sim.Objects(journalBucket) {
					want := content
					if object.Key == "copy" {
						want = append(bytes.Clone(content), "more"...)
					}
					if !bytes.Equal(object.Content.Bytes(), want) {
						t.Errorf("%s has %d bytes, want %d", object.Key, object.Content.Size(), len(want))
					}
				}
			})
		})
	}
}
