package quota

import (
	"testing"
	"time"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
)

// TestCountAfterHead counts between the HEAD request of an operation and its delete, which finds that another client
// has deleted the file already. The quota must not subtract the file, because the count has not included it. The
// operation begins its change before the HEAD request, or after a listing.
func TestCountAfterHead(t *testing.T) {
	for name, early := range map[string]bool{"head": true, "listing": false} {
		t.Run(name, func(t *testing.T) { testCountAfterHead(t, early) })
	}
}

func testCountAfterHead(t *testing.T, early bool) {
	t.Helper()
	s := newServer(s3sim.Options{})
	for _, key := range []string{"file", "other"} {
		s.Put("bucket", s3sim.Object{Key: key, Content: bytesOf(100)})
	}
	qs, q := limited(s.Client(nil), 1000)
	must.OK(t, q.Count(t.Context()))
	operation := &Reservation{}
	if early {
		operation = qs.Begin("file")
	}
	seen := s3api.Version{Key: "file", Size: 100, Seen: time.Now()}
	s.Delete("bucket", "file")
	must.OK(t, q.Count(t.Context()))
	qs.Removing(seen)(nil)
	operation.End(nil)
	if used, _ := q.Used(); used != 100 {
		t.Errorf("got usage %d, want 100", used)
	}
}
