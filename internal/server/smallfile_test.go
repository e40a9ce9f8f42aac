package server

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// A device that logs in, stores a small file and leaves causes one S3 request, even if interrupted uploads are kept,
// which is the default. The search for uploads that the files replace is one more request for all files together.
func TestRequestsOfSmallFiles(t *testing.T) {
	for _, test := range []struct {
		label  string
		change func(*config.Tenant)
		want   map[string]int // requests per file
		looks  int            // checks when the server ends
	}{
		{"default", func(*config.Tenant) {}, map[string]int{"PutObject": 1}, 1},
		{"discard", func(t *config.Tenant) { t.Resume = config.DiscardInterrupted }, map[string]int{"PutObject": 1}, 0},
		// HEAD finds the size of the replaced file, or refuses the file before its client sends it.
		{"quota", func(t *config.Tenant) { t.Quota = 1 << 20 }, map[string]int{"HeadObject": 1, "PutObject": 1}, 1},
		{"deny", func(t *config.Tenant) { t.Overwrite = config.DenyOverwrite },
			map[string]int{"HeadObject": 1, "PutObject": 1}, 1},
	} {
		t.Run(test.label, func(t *testing.T) {
			s := s3test.Start(t, "minio")
			proxy := s3test.StartProxy(t, s)
			cfg := servicetest.NewConfig(t, s)
			cfg.S3.Endpoint = proxy.Server().Endpoint
			acme := cfg.Tenants["acme"]
			acme.Resume, acme.ResumeByDefault = config.KeepInterrupted, true // the default in a configuration file
			test.change(acme)
			srv := start(t, cfg, Options{AWS: s.AWSConfig()})
			waitForUpkeep(t, srv, proxy)
			for i := range 5 {
				proxy.Reset()
				c := ftptest.Dial(t, srv.Addr().String())
				c.Login("alice@acme", servicetest.Password)
				c.Command(200, "TYPE I")
				c.Store(fmt.Sprint("picture", i), "content")
				c.Command(221, "QUIT")
				if got := proxy.Counts(); !maps.Equal(got, test.want) {
					t.Errorf("file %d: got requests %v, want %v", i, got, test.want)
				}
			}
			proxy.Reset()
			srv.removeChangedUploads(t.Context())
			if n := len(proxy.Operations()); n != test.looks || n != proxy.Counts()["ListObjectsV2"] {
				t.Errorf("after the end: got requests %v, want %d", proxy.Counts(), test.looks)
			}
		})
	}
}

// waitForUpkeep waits until the server has swept the bucket and counted its quotas for the first time.
func waitForUpkeep(t *testing.T, srv *Server, proxy *s3test.Proxy) {
	t.Helper()
	lists := 1
	for _, q := range srv.tenants.Quotas() {
		if q.Countable() {
			lists++
		}
	}
	for deadline := time.Now().Add(time.Minute); proxy.Counts()["ListObjectsV2"] < lists || len(srv.upkeep) > 0; {
		if time.Now().After(deadline) {
			t.Fatalf("got only the requests %v", proxy.Counts())
		}
		time.Sleep(time.Millisecond)
	}
}
