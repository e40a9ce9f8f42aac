package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/storage/view"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// TestDeepPaths sends commands with deeply nested pathnames. SITE MKDIR, which creates each level, refuses more than
// 64 levels without a request and names the limit. The number of requests of other commands does not depend on the
// depth.
func TestDeepPaths(t *testing.T) {
	s3test.Run(t, func(t *testing.T, s *s3test.Server) {
		proxy := s3test.StartProxy(t, s)
		cfg := servicetest.NewConfig(t, s)
		cfg.S3.Endpoint = proxy.Server().Endpoint
		srv := start(t, cfg, Options{AWS: s.AWSConfig()})
		waitForUpkeep(t, srv, proxy)
		c := session(t, srv, "alice")
		accents := strings.Repeat("/e\u0301", 200) // clients may use the precomposed form é
		deep := func(levels int) string { return strings.Repeat("/d", levels) }
		for _, test := range []struct {
			command string // %s is replaced by a path
			levels  int
			code    int
			most    int // maximum number of requests
		}{
			{"SITE MKDIR %s", view.MaxLevels + 1, 553, 0},
			{"SITE MKDIR %s", 400, 553, 0},
			{"SITE MKDIR %s/é/..", 400, 553, 0},
			{"SITE MKDIR %s", view.MaxLevels, 250, 3 * view.MaxLevels},
			{"MKD %s", 400, 257, 5},
			{"CWD %s", 400, 250, 5},
			{"CWD %s/none", 400, 550, 5},
			{"STOR %s/file", 400, 226, 5},
			{"APPE %s/file", 400, 226, 8},
			{"RETR %s/file", 400, 226, 5},
			{"SIZE %s/file", 400, 213, 5},
			{"MLST %s/file", 400, 250, 5},
			{"NLST %s", 400, 226, 5},
			{"RNFR %s/file", 400, 350, 5},
			{"RNTO %s/other", 401, 250, 12},
			{"DELE %s/other", 401, 250, 5},
			{"RMD %s", 401, 250, 5},
			{"SITE RMDIR %s", 400, 250, 8},
			{"CWD %s" + accents, 10, 550, 15},
			{"RETR %s" + accents, 10, 550, 15},
			{"STOR %s" + accents, 10, 226, 15},
		} {
			line := fmt.Sprintf(test.command, deep(test.levels))
			proxy.Reset()
			code := 0
			switch verb, _, _ := strings.Cut(line, " "); verb {
			case "STOR", "APPE":
				reply, err := c.Upload(line, "content")
				must.OK(t, err)
				code, _ = ftptest.Parse(reply)
			case "RETR", "NLST":
				_, reply, err := c.Download(line)
				must.OK(t, err)
				code, _ = ftptest.Parse(reply)
			default:
				reply, err := c.Send(line)
				must.OK(t, err)
				if code, _ = ftptest.Parse(reply); code == 553 && !strings.Contains(reply, fmt.Sprint(view.MaxLevels)) {
					t.Errorf("the reply %q lacks the limit", reply)
				}
			}
			if n := len(proxy.Operations()); code != test.code || n > test.most {
				t.Errorf("%s: got %d after %d requests %v, want %d after at most %d",
					test.command, code, n, proxy.Counts(), test.code, test.most)
			}
		}
	})
}
