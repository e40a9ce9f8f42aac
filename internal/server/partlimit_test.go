package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3sim"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// If an S3 server accepts fewer parts than its profile says, the reply names the limit and the configuration key, and
// does not claim that the file can be resumed. A second attempt ends in the same way.
// Reported for Scaleway: tus/tus-node-server#711
func TestPartLimit(t *testing.T) {
	sim := s3sim.New(s3sim.Options{Profile: driver.Profile{PartLimit: 3}})
	web := httptest.NewServer(sim)
	t.Cleanup(web.Close)
	s := &s3test.Server{
		Name: "sim", Endpoint: web.URL, Region: s3sim.Region, AccessKeyID: "key", SecretAccessKey: "secret",
		HTTPClient: http.DefaultClient,
	}
	cfg := servicetest.NewConfig(t, s)
	content := strings.Repeat("x", 15<<20+1)
	lines := auditLines(t, cfg, s, func(c *ftptest.Client) {
		c.Login("alice", servicetest.Password)
		for range 2 {
			const want = "552 The file is too large; the limit is 15 MiB (3 x part_size 5 MiB). (big)"
			if reply, err := c.Upload("STOR big", content); err != nil || reply != want {
				t.Errorf("got %q, %v; want %q", reply, err, want)
			}
			c.Command(550, "SIZE big")
		}
	})
	if left := leftBehind(t, s, cfg.Tenants["acme"].Bucket); len(left) > 0 {
		t.Errorf("unexpected keys %q", left)
	}
	const cause = "file needs more than the 3 parts that S3 accepts: configure a part_size above 5242880 bytes"
	for _, line := range lines {
		if text, _ := line["error"].(string); strings.Contains(text, cause) {
			return
		}
	}
	t.Errorf("the audit log lacks the cause: %v", lines)
}
