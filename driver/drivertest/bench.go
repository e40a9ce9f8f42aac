package drivertest

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver"
)

// Bench measures the driver and the S3 client alone, with the same bytes. The ratio of the two is the cost of the
// driver.
//
//	go test ./driver -run ^$ -bench Transfer
func Bench(b *testing.B, h Harness) {
	for _, size := range []int{4 << 10, 1 << 20, 64 << 20} {
		content := random(size)
		for _, test := range []struct {
			label    string
			transfer func(client *s3.Client, bucket string, fs *driver.Fs) error
		}{
			{"up-client", func(client *s3.Client, bucket string, _ *driver.Fs) error {
				_, err := client.PutObject(
					b.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: new("up"), Body: bytes.NewReader(content)})
				return err
			}},
			{"up-driver", func(_ *s3.Client, _ string, fs *driver.Fs) error {
				f, err := fs.Create("up")
				if err != nil {
					return err
				}
				if _, err := io.Copy(f, readerOnly{bytes.NewReader(content)}); err != nil {
					return err
				}
				return f.Close()
			}},
			{"down-client", func(client *s3.Client, bucket string, _ *driver.Fs) error {
				out, err := client.GetObject(b.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: new("down")})
				if err != nil {
					return err
				}
				_, err = io.Copy(io.Discard, out.Body)
				return err
			}},
			{"down-driver", func(_ *s3.Client, _ string, fs *driver.Fs) error {
				f, err := fs.Open("down")
				if err != nil {
					return err
				}
				if _, err := io.Copy(io.Discard, f); err != nil {
					return err
				}
				return f.Close()
			}},
		} {
			b.Run(fmt.Sprintf("%s-%dKiB", test.label, size>>10), func(b *testing.B) {
				client, bucket := h.Bucket(b)
				fs := MustNew(b.Context(), client, bucket, nil)
				_, err := client.PutObject(
					b.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: new("down"), Body: bytes.NewReader(content)})
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					if err := test.transfer(client, bucket, fs); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// readerOnly hides the WriteTo of a reader, which a connection has not.
type readerOnly struct{ io.Reader }
