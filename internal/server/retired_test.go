package server

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// A reload moves a tenant to another place, or removes the tenant. The interrupted uploads of the old place are still
// removed.
func TestUploadsOfRemovedPlaces(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(s *s3test.Server, next *config.Config){
		"prefix": func(_ *s3test.Server, next *config.Config) { next.Tenants["acme"].Prefix = "outbox/" },
		"bucket": func(s *s3test.Server, next *config.Config) { next.Tenants["acme"].Bucket = s.Bucket(t) },
		"tenant": func(_ *s3test.Server, next *config.Config) { delete(next.Tenants, "acme") },
	} {
		t.Run(name, func(t *testing.T) {
			s := s3test.Start(t, "sim-aws")
			cfg := servicetest.NewConfig(t, s)
			cfg.AbandonedUploads = 10 * time.Second
			cfg.Tenants["acme"].Resume = config.KeepInterrupted
			cfg.Tenants["other"] = servicetest.NewConfig(t, s).Tenants["acme"]
			cfg.Tenants["other"].Hosts = []string{"ftp.other.example"}
			bucket := cfg.Tenants["acme"].Bucket
			srv := start(t, cfg, Options{AWS: s.AWSConfig()})
			c := session(t, srv, "alice")
			c.Command(200, "TYPE I")
			const content = "the beginning of a file"
			data := begin(t, c, "STOR f", content)
			for !strings.Contains(c.Command(211, "STAT"), strconv.Itoa(len(content))) { // wait for all bytes
			}
			idle := session(t, srv, "alice")
			reload(t, srv, changed(t, cfg, func(next *config.Config) { change(s, next) }, "acme"))
			c.Command(426, "ABOR")
			c.Reply(226)
			_ = data.Close()
			idle.Command(221, "QUIT")
			objects := func() []string { return s3test.Objects(t, s.Client(), bucket) }
			await := func(yes func() bool) {
				t.Helper()
				for deadline := time.Now().Add(time.Minute); !yes(); {
					if time.Sleep(10 * time.Millisecond); time.Now().After(deadline) {
						t.Fatalf("unexpected keys %q", objects())
					}
				}
			}
			await(func() bool { // wait for the record, after the probe of the new place has deleted its objects
				all := objects()
				return len(all) == 1 && strings.Contains(all[0], "/uploads-1/")
			})
			await(func() bool {
				retired := 0
				srv.retired.Range(func(any, any) bool { retired++; return true })
				return len(objects()) == 0 && retired == 0
			})
		})
	}
}
