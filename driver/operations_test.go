package driver_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

// TestWorkThatIsCounted runs operations that send many requests, or let S3 copy much data, when BeginOperation refuses
// all of them. It also hashes files when BeginHash refuses.
func TestWorkThatIsCounted(t *testing.T) {
	t.Parallel()
	p, _ := driver.ProfileNamed("aws")
	p.MD5ETags = false // computing them would take most of the time
	server := s3sim.New(s3sim.Options{Profile: p})
	server.CreateBucket("bucket")
	content := make([]byte, 128<<20)
	server.Put("bucket", s3sim.Object{Key: "large", Content: s3sim.Content{content}},
		s3sim.Object{Key: "directory/large", Content: s3sim.Content{content}},
		s3sim.Object{Key: "small", Content: s3sim.Content{content[1:]}})
	begun, ended, waited := 0, 0, 0
	allowed := false
	begin := func() (func(), error) {
		if !allowed {
			return nil, syscall.EBUSY
		}
		begun++
		return func() { ended++ }, nil
	}
	f := drivertest.MustNew(t.Context(), server.Client(nil), "bucket", &driver.Options{
		Profile: p, BeginOperation: begin,
		BeginHash: func() (func(context.Context, int) error, func(), error) {
			end, err := begin()
			return func(_ context.Context, n int) error { waited += n; return nil }, end, err
		},
	})
	appendTo := func(name string) error {
		return drivertest.WriteAt(f, name, os.O_APPEND, 0, []byte("y"))
	}
	hash := func(to int64) error {
		_, _, err := f.Hash(t.Context(), "small", "SHA-512", 1, to)
		return err
	}
	for _, tc := range []struct {
		label   string
		counted bool
		do      func() error
	}{
		{"eight-levels", false, func() error { return f.MkdirAll(strings.Repeat("/d", 8), 0) }},
		{"many-levels", true, func() error { return f.MkdirAll(strings.Repeat("/d", 490), 0) }},
		{"time-of-a-large-file", true, func() error { return f.Chtimes("large", time.Time{}, time.Unix(1, 0)) }},
		{"time", false, func() error { return f.Chtimes("small", time.Time{}, time.Unix(1, 0)) }},
		{"append-to-a-large-file", true, func() error { return appendTo("large") }},
		{"append", false, func() error { return appendTo("small") }},
		{"hash", true, func() error { return hash(1000) }},
		{"copy-of-a-large-file", true, func() error { return f.Copy(t.Context(), "large", "copy") }},
		{"rename-of-a-large-file", true, func() error { return f.Rename("large", "renamed") }},
		{"rename-of-a-directory-with-a-large-file", true, func() error { return f.Rename("directory", "moved") }},
	} {
		t.Run(tc.label, func(t *testing.T) {
			allowed = false
			if err := tc.do(); errors.Is(err, syscall.EBUSY) != tc.counted || err != nil && !tc.counted {
				t.Fatalf("operation that may not begin: %v", err)
			}
			if begun, ended, allowed = 0, 0, true; !tc.counted {
				return
			}
			if err := tc.do(); err != nil || begun != 1 || ended != 1 {
				t.Errorf("%d operations began and %d ended: %v", begun, ended, err)
			}
		})
	}
	if waited != 999 {
		t.Errorf("hashes waited for %d bytes", waited)
	}
}
