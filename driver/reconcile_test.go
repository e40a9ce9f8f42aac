package driver_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/spf13/afero"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// TestHeadCorruptedOnTheWay corrupts bytes in transit that an upload keeps from the beginning of the existing object.
// The driver must not store them.
func TestHeadCorruptedOnTheWay(t *testing.T) {
	t.Parallel()
	s3test.Run(t, func(t *testing.T, s *s3test.Server) {
		proxy, err := s3test.NewProxy(s)
		must.OK(t, err)
		defer proxy.Close()
		bucket := s.Bucket(t)
		opts := &driver.Options{Profile: profile(t, s)}
		direct, hurt := drivertest.MustNew(t.Context(), s.Client(), bucket, opts),
			drivertest.MustNew(t.Context(), proxy.Server().Client(), bucket, opts)
		proxy.Inject(s3test.Fault{Operation: "GetObject", Effect: s3test.CorruptResponse()})
		for label, keep := range map[string]int64{"all": 7, "some": 4} {
			must.OK(t, afero.WriteFile(direct, "file", []byte("content"), 0))
			f, err := hurt.OpenAt("file", os.O_WRONLY, keep)
			must.OK(t, err)
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
