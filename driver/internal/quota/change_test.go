package quota

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3fake"
)

// TestCountAfterTheLook counts between the look of an operation and its deletion, which finds that another client has
// deleted the file before. The quota subtracts nothing, because the count has not found the file. The operation
// begins its change before the look, or after a listing.
func TestCountAfterTheLook(t *testing.T) {
	for name, early := range map[string]bool{"look": true, "listing": false} {
		t.Run(name, func(t *testing.T) { testCountAfterTheLook(t, early) })
	}
}

func testCountAfterTheLook(t *testing.T, early bool) {
	t.Helper()
	dated := time.Now().Add(-time.Hour)
	s := &s3fake.Bucket{Keys: []string{"file", "other"}}
	s.After = func(out *s3.ListObjectsV2Output) {
		for i := range out.Contents {
			out.Contents[i].Size, out.Contents[i].LastModified = aws.Int64(100), &dated
		}
	}
	q := New(s, "bucket", "", 1000)
	if err := q.Count(t.Context()); err != nil {
		t.Fatal(err)
	}
	qs := Quotas{q}
	operation := &Change{}
	if early {
		operation = qs.Change("file")
	}
	seen := s3api.Version{Key: "file", Size: 100, ModTime: dated, Seen: time.Now()}
	s.Keys = []string{"other"}
	if err := q.Count(t.Context()); err != nil {
		t.Fatal(err)
	}
	qs.Removing(seen)(nil)
	operation.End(nil)
	if used, _ := q.Used(); used != 100 {
		t.Errorf("%d bytes are used, want 100", used)
	}
}
