package server

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
)

// An upload that is kept says so whatever has stopped it, and the client continues it.
func TestStoppedUploads(t *testing.T) {
	t.Parallel()
	const sent = "half of a file"
	for _, tt := range []struct {
		name   string
		change func(*config.Config)
		stop   func(*Server, *ftptest.Client)
		want   string // 426, without what becomes of the upload
	}{
		{"stalled", func(cfg *config.Config) { cfg.StallTimeout = 100 * time.Millisecond }, nil, "Data transfer timed out."},
		{"aborted", nil, func(_ *Server, c *ftptest.Client) { _, _ = io.WriteString(c, "ABOR\r\n") }, "Transfer aborted."},
		{"too-long", func(cfg *config.Config) { cfg.Limits.CommandTimeout = 2 * time.Second }, nil,
			"The operation took too long and was ended."},
		{"disconnected", nil, func(srv *Server, _ *ftptest.Client) { srv.control.Disconnect(srv.control.Sessions()[0].ID) },
			"An administrator has ended this session."},
		{"shut-down", nil, func(srv *Server, _ *ftptest.Client) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_ = srv.Shutdown(ctx)
		}, "The server is shutting down. Please connect again in a moment."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, cfg := simulated(t)
			acme := cfg.Tenants["acme"]
			acme.DefaultLanguage, acme.Resume = language.English, config.KeepInterrupted
			before := *cfg
			if tt.change != nil {
				tt.change(cfg)
			}
			srv := start(t, cfg, Options{AWS: s.AWSConfig()})
			c := session(t, srv, "alice")
			c.Command(200, "TYPE I")
			data := begin(t, c, "STOR /file", sent)
			if tt.stop != nil {
				for !strings.Contains(c.Command(211, "STAT"), fmt.Sprintf("A transfer is running, %d byte", len(sent))) {
				}
			}
			if tt.stop != nil {
				tt.stop(srv, c)
			}
			if text := c.Reply(426); text != tt.want+" The upload can be resumed." {
				t.Errorf("426 %q", text)
			}
			_ = data.Close()
			c = session(t, start(t, &before, Options{AWS: s.AWSConfig()}), "alice")
			c.Command(200, "TYPE I")
			offset := strings.TrimPrefix(c.Command(213, "SIZE /file"), "213 ")
			c.Command(350, "REST "+offset)
			send(t, c, begin(t, c, "STOR /file", ""), "e and the rest")
		})
	}
}
