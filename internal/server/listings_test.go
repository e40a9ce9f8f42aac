package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// sessionBehind returns a session on a server that reaches S3 through a proxy that counts requests.
func sessionBehind(
	t *testing.T, change func(*config.Tenant), user string, keys ...string,
) (*ftptest.Client, *s3test.Proxy) {
	t.Helper()
	s := s3test.Start(t, "minio")
	proxy := s3test.StartProxy(t, s)
	cfg := servicetest.NewConfig(t, s)
	cfg.S3.Endpoint = proxy.Server().Endpoint
	cfg.AbandonedUploads = 0 // requests of the first sweep must not count
	change(cfg.Tenants["acme"])
	put(t, s, cfg, keys...)
	return session(t, start(t, cfg, Options{AWS: s.AWSConfig()}), user), proxy
}

// TestRequestsAroundListings checks the number of S3 requests for the commands that clients send around a listing.
func TestRequestsAroundListings(t *testing.T) {
	type step struct {
		run  func(c *ftptest.Client)
		want int
	}
	command := func(code int, line string) func(*ftptest.Client) {
		return func(c *ftptest.Client) { t.Helper(); c.Command(code, line) }
	}
	list := func(line string, names ...string) func(*ftptest.Client) {
		return func(c *ftptest.Client) {
			t.Helper()
			text := c.Transfer(line)
			if got := strings.Fields(text); len(got) != len(names) {
				t.Errorf("%s: got %q, want %q", line, got, names)
			}
			for _, name := range names {
				if !strings.Contains(text, name+"\r\n") {
					t.Errorf("%s: got %q, want %q", line, text, names)
				}
			}
		}
	}
	store := func(name string) func(*ftptest.Client) { return func(c *ftptest.Client) { c.Store(name, "new") } }
	for _, test := range []struct {
		label  string
		change func(*config.Tenant)
		steps  []step
	}{
		{"cwd-and-list", func(*config.Tenant) {}, []step{
			{command(250, "CWD /dir"), 1}, {command(257, "PWD"), 0}, {list("NLST", "a", "b"), 1},
			{list("NLST", "a", "b"), 1},
			{command(250, "CWD /"), 0}, {list("NLST", "dir", "other"), 1},
			{command(250, "CWD dir"), 1}, {command(250, "CWD /other"), 1}, {list("NLST /dir", "/dir/a", "/dir/b"), 1},
			{command(213, "SIZE /dir/a"), 1},
		}},
		{"written-between", func(*config.Tenant) {}, []step{
			{command(250, "CWD /dir"), 1}, {store("c"), 1}, {list("NLST", "a", "b", "c"), 1},
			{command(250, "CWD /dir"), 1}, {command(250, "DELE /dir/a"), 2}, {list("NLST", "b", "c"), 1},
		}},
		{"not-allowed-to-list", func(tenant *config.Tenant) {
			tenant.Users["alice"] = permitted(t, "rw", nil)
		}, []step{{command(250, "CWD /dir"), 1}, {command(550, "CWD /nothing"), 2}}},
	} {
		t.Run(test.label, func(t *testing.T) {
			c, proxy := sessionBehind(t, test.change, "alice", "dir/a", "dir/b", "other/x")
			for i, step := range test.steps {
				proxy.Reset()
				if step.run(c); len(proxy.Operations()) != step.want {
					t.Errorf(
						"step %d: got %d requests, %v; want %d", i, len(proxy.Operations()), proxy.Counts(), step.want)
				}
			}
		})
	}
}

// If the second page of a STAT listing fails, the listing must not look complete: the session ends in the middle of
// the reply.
func TestStatusWhosePageFails(t *testing.T) {
	keys := make([]string, 1001) // more than one page
	for i := range keys {
		keys[i] = fmt.Sprintf("dir/%04d", i)
	}
	c, proxy := sessionBehind(t, func(*config.Tenant) {}, "alice", keys...)
	if text := c.Command(212, "STAT /dir"); strings.Count(text, "\n") != len(keys)+1 {
		t.Errorf("got %d lines, want %d files", strings.Count(text, "\n"), len(keys))
	}
	page := proxy.Inject(
		s3test.Fault{Operation: "ListObjectsV2", After: 1, Effect: s3test.Refuse(http.StatusForbidden, "AccessDenied")})
	must.Write(t, c, "STAT /dir\r\n")
	last := ""
	for {
		line, err := c.In.ReadString('\n')
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			break
		}
		if last = line; strings.HasPrefix(line, "212 ") {
			break
		}
	}
	if !strings.HasPrefix(last, "421 ") {
		t.Errorf("unexpected last line %q", last)
	}
	if page.Applied() == 0 {
		t.Error("no page failed")
	}
}
