package driver_test

import (
	"bytes"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// TestReconcileBehindProxy loses answers on the way, so that the SDK asks for the same twice. S3 refuses it the
// second time, or does it again.
func TestReconcileBehindProxy(t *testing.T) {
	const large = 5<<20 + 1
	old, added := bytes.Repeat([]byte("old"), large/3+1), []byte("added")
	for _, test := range []struct {
		label, operation string
		opts             driver.Options
		before           []byte // the file, none when nil
		flag             int
		data, after      []byte
	}{
		{label: "write", operation: "PutObject", flag: os.O_TRUNC, data: added, after: added},
		{label: "write-new", operation: "PutObject", opts: driver.Options{NoOverwrite: true}, flag: os.O_TRUNC,
			data: added, after: added},
		{label: "write-parts", operation: "CompleteMultipartUpload", flag: os.O_TRUNC, data: old, after: old},
		{
			label: "write-new-parts", operation: "CompleteMultipartUpload", opts: driver.Options{NoOverwrite: true},
			flag: os.O_TRUNC, data: old, after: old,
		},
		{label: "append", operation: "PutObject", before: []byte("old"), flag: os.O_APPEND, data: added,
			after: []byte("oldadded")},
		{
			label: "append-parts", operation: "CompleteMultipartUpload", before: old, flag: os.O_APPEND, data: added,
			after: append(bytes.Clone(old), added...),
		},
	} {
		for label, harm := range map[string]s3test.Effect{"reset": s3test.LoseAnswer(), "cut": s3test.ShortResponse()} {
			for times, often := range []string{"always", "once"} {
				onEachServer(t, test.label+"-"+label+"-"+often, func(t *testing.T, s *s3test.Server) {
					proxy, err := s3test.NewProxy(s)
					if err != nil {
						t.Fatal(err)
					}
					defer proxy.Close()
					direct, bucket, name := s.Client(), s.Bucket(t), "file"
					if test.before != nil {
						_, err := direct.PutObject(
							t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &name,
								Body: bytes.NewReader(test.before)})
						if err != nil {
							t.Fatal(err)
						}
					}
					opts := test.opts
					opts.PartSize, opts.Profile = 5<<20, profile(t, s)
					f, err := drivertest.MustNew(t.Context(), proxy.Server().Client(impatient), bucket, &opts).OpenAt(
						name, os.O_WRONLY|os.O_CREATE|test.flag, 0)
					if err != nil {
						t.Fatal(err)
					}
					lost := proxy.Inject(s3test.Fault{Operation: test.operation, Times: times, Effect: harm})
					if _, err := f.Write(test.data); err != nil {
						t.Fatal(err)
					}
					if err := f.Close(); err != nil {
						t.Error(err)
					}
					if lost.Applied() == 0 {
						t.Error("no answer was lost")
					}
					got, err := afero.ReadFile(drivertest.MustNew(t.Context(), direct, bucket, nil), name)
					if err != nil || !bytes.Equal(got, test.after) {
						t.Errorf("the file has %d bytes, %v; want %d", len(got), err, len(test.after))
					}
				})
			}
		}
	}
}

// impatient makes the SDK ask again at once.
func impatient(o *s3.Options) {
	o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = time.Millisecond })
}

// onEachServer runs f on all servers at once.
func onEachServer(t *testing.T, label string, f func(*testing.T, *s3test.Server)) {
	t.Helper()
	t.Run(label, func(t *testing.T) {
		t.Parallel()
		s3test.Run(t, f)
	})
}

// TestHeadCorruptedOnTheWay changes bytes of the object whose head an upload keeps. The driver does not store them.
func TestHeadCorruptedOnTheWay(t *testing.T) {
	s3test.Run(t, func(t *testing.T, s *s3test.Server) {
		proxy, err := s3test.NewProxy(s)
		if err != nil {
			t.Fatal(err)
		}
		defer proxy.Close()
		bucket := s.Bucket(t)
		opts := &driver.Options{Profile: profile(t, s)}
		direct, hurt := drivertest.MustNew(t.Context(), s.Client(), bucket, opts),
			drivertest.MustNew(t.Context(), proxy.Server().Client(), bucket, opts)
		proxy.Inject(s3test.Fault{Operation: "GetObject", Effect: s3test.CorruptResponse()})
		for label, keep := range map[string]int64{"all": 7, "some": 4} {
			if err := afero.WriteFile(direct, "file", []byte("content"), 0); err != nil {
				t.Fatal(err)
			}
			f, err := hurt.OpenAt("file", os.O_WRONLY, keep)
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.Write([]byte("added"))
			if !errors.Is(err, syscall.EAGAIN) || !errors.Is(f.Close(), syscall.EAGAIN) {
				t.Errorf("%s: %v", label, err)
			}
			if got, err := afero.ReadFile(direct, "file"); string(got) != "content" {
				t.Errorf("%s: the file is %q, %v", label, got, err)
			}
		}
	})
}
