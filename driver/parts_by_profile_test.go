package driver_test

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

// onSim runs a test on a simulated S3 server of each profile whose rules about parts differ.
func onSim(t *testing.T, run func(t *testing.T, x *simFixture)) {
	for _, name := range []string{"aws", "r2", "gcs", "strict"} {
		t.Run(name, func(t *testing.T) {
			p, known := driver.ProfileNamed(name)
			if !known {
				t.Fatal(name)
			}
			p.MD5ETags = false // their sums would take half of the time
			x := &simFixture{T: t}
			server := s3sim.New(s3sim.Options{Profile: p, Observe: func(e s3sim.Event) {
				x.events = append(x.events, e.Name)
			}})
			server.CreateBucket("bucket")
			x.client = server.Client(nil)
			x.Fs = drivertest.MustNew(t.Context(), x.client, "bucket", &driver.Options{Profile: p, CopyLimit: 12 << 20})
			run(t, x)
			if open := server.Uploads("bucket"); len(open) > 0 {
				t.Errorf("left open: %v", open)
			}
		})
	}
}

type simFixture struct {
	*testing.T
	*driver.Fs
	client *s3.Client
	events []string
}

// content is bytes that differ from one place to the next.
func content(size int, seed byte) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i>>8) ^ byte(i) ^ seed
	}
	return b
}

func (x *simFixture) write(name string, flag int, offset int64, content []byte) {
	x.Helper()
	f, err := x.OpenAt(name, os.O_WRONLY|os.O_CREATE|flag, offset)
	if err != nil {
		x.Fatal(err)
	}
	if _, err := io.Copy(f, bytes.NewReader(content)); err != nil {
		x.Error(err)
	}
	if err := f.Close(); err != nil {
		x.Fatal(err)
	}
}

func (x *simFixture) holds(name string, want []byte) {
	x.Helper()
	f, err := x.Open(name)
	if err != nil {
		x.Fatal(err)
	}
	defer f.Close()
	got, err := io.ReadAll(f)
	if err != nil || !bytes.Equal(got, want) {
		x.Errorf("%s holds %d bytes, %v; want %d", name, len(got), err, len(want))
	}
}

// Whatever the rules about parts are, what is stored is what was sent.
func TestPartsByProfile(t *testing.T) {
	onSim(t, func(t *testing.T, x *simFixture) {
		const part = 5 << 20
		for _, tc := range []struct {
			name     string
			existing int // bytes of the object before
			more     int
		}{
			{"small", 100, 100},
			{"one-part", part, 1},
			{"one-part-and-a-rest", part + 12345, 10},
			{"one-part-and-a-rest-and-parts", part + 12345, 2*part + 1},
			{"parts", 3*part - 1, part + 2},
		} {
			before, more := content(tc.existing, 1), content(tc.more, 2)
			x.write(tc.name, os.O_TRUNC, 0, before)
			x.holds(tc.name, before)
			x.write(tc.name, os.O_APPEND, 0, more)
			x.holds(tc.name, append(bytes.Clone(before), more...))
			now := append(bytes.Clone(before), more...)
			for _, at := range []int{tc.existing * 3 / 4, 1} {
				x.write(tc.name, 0, int64(at), more)
				copy(now[at:], more)
				x.holds(tc.name, now)
			}
		}
	})
}

// What is too large to be copied by one request is copied by parts, or read and uploaded where S3 cannot copy these.
func TestLargeCopyByProfile(t *testing.T) {
	onSim(t, func(t *testing.T, x *simFixture) {
		large := content(13<<20+1, 3)
		x.write("large", os.O_TRUNC, 0, large)
		if err := x.Copy(t.Context(), "large", "copy"); err != nil {
			t.Fatal(err)
		}
		x.holds("copy", large)
		if err := x.Rename("large", "moved"); err != nil {
			t.Fatal(err)
		}
		x.holds("moved", large)
	})
}
