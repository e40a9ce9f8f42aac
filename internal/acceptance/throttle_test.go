package acceptance_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// TestThrottled has S3 refuse every request of everyone for five seconds, by 503 and 429 in turn, in the middle of
// fifty uploads: small ones, and ones of several parts. All of them end with 226, and the bucket has them.
func TestThrottled(t *testing.T) {
	t.Parallel()
	const (
		uploads = 50
		files   = 2 // of each client, one after another
		window  = 5 * time.Second
		large   = 6 << 20 // two parts
	)
	storage := s3test.Start(t, "minio")
	proxy := proxied(t, storage)
	s := newSite(t, proxy.Server())
	small, parts := string(content(10<<10)), string(content(large))
	var clients errgroup.Group
	for n := range uploads {
		clients.Go(func() error {
			k, err := s.dialAlice()
			if err != nil {
				return err
			}
			defer k.Close()
			data := small
			if n%2 == 0 {
				data = parts
			}
			for file := range files {
				line := fmt.Sprintf("STOR /file-%d-%d", n, file)
				if reply, err := k.Upload(line, data); err != nil || !strings.HasPrefix(reply, "226") {
					return fmt.Errorf("%s, %d bytes: %q, %w", line, len(data), reply, err)
				}
			}
			return nil
		})
	}
	waitUntil(t, func() bool {
		return proxy.Counts()["UploadPart"] > 0 && proxy.Counts()["PutObject"] > uploads/2
	}, func() {
		t.Fatal("no upload begins")
	})
	refused := proxy.Inject(s3test.Fault{Effect: s3test.InTurn(
		s3test.Refuse(http.StatusServiceUnavailable, "SlowDown"),
		s3test.Refuse(http.StatusTooManyRequests, "TooManyRequests"),
	)})
	time.AfterFunc(window, refused.End)
	if err := clients.Wait(); err != nil {
		t.Error(err)
	}
	t.Logf("%d requests were refused", refused.Applied())
	if refused.Applied() < uploads {
		t.Error("too few requests were refused for the test to prove anything")
	}
	k, err := s.dialAlice()
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	names, reply, err := k.Download("NLST /")
	if got := strings.Count(names, "file-"); err != nil || got != uploads*files {
		t.Errorf("%d files are listed, want %d: %q, %v", got, uploads*files, reply, err)
	}
}
