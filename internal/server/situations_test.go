package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// If an upload is kept, the reply mentions it whatever stopped the upload, and the client can resume it.
func TestStoppedUploads(t *testing.T) {
	t.Parallel()
	const sent = "half of a file"
	for _, tt := range []struct {
		name   string
		change func(*config.Config)
		stop   func(*Server, *ftptest.Client)
		want   string // text of the 426 reply, without the fate of the upload
	}{
		{"stalled", func(cfg *config.Config) { cfg.StallTimeout = time.Second }, nil, "Data transfer timed out."},
		{"aborted", nil, func(_ *Server, c *ftptest.Client) { _, _ = io.WriteString(c, "ABOR\r\n") }, "Transfer aborted."},
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
				t.Errorf("unexpected text of 426: %q", text)
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

// There is a text for each reason why S3 refuses a request, and it says who has to act.
func TestRefusalsOfS3(t *testing.T) {
	t.Parallel()
	s, cfg := simulated(t)
	proxy := s3test.StartProxy(t, s)
	cfg.S3.Endpoint = proxy.Server().Endpoint
	cfg.Tenants["acme"].DefaultLanguage = language.English
	srv := start(t, cfg, Options{AWS: proxy.Server().AWSConfig()})
	c := session(t, srv, "alice")
	for _, tt := range []struct {
		status     int
		code, want string
	}{
		{http.StatusForbidden, "AccessDenied",
			"550 The server was denied access to its storage. Please tell the administrator. (d/f)"},
		{http.StatusConflict, "ObjectParentIsFile", "553 Part of this path is a file, not a directory. (d/f)"},
		{http.StatusConflict, "ExistingObjectIsDirectory", "550 This is a directory, not a file. (d/f)"},
		{http.StatusBadRequest, "InvalidURI", "553 The storage does not accept this file name. (d/f)"},
		{http.StatusBadRequest, "EntityTooLarge", "552 File too large. (d/f)"},
		{http.StatusForbidden, "QuotaExceeded",
			"552 Quota exceeded. Please delete files, or ask the administrator for more space."},
		{http.StatusNotFound, "NoSuchBucket",
			"550 The storage for this account was not found. Please tell the administrator."},
		{http.StatusInsufficientStorage, "XMinioStorageFull",
			"452 Insufficient storage space. Please tell the administrator."},
		{http.StatusPaymentRequired, "Unheard", "550 The storage reported an error. If this happens again, please tell the administrator. (d/f)"},
	} {
		fault := proxy.Inject(s3test.Fault{Operation: "PutObject", Effect: s3test.Refuse(tt.status, tt.code)})
		if reply, err := c.Upload("STOR d/f", "content"); err != nil || reply != tt.want {
			t.Errorf("%s: got %q, %v, want %q", tt.code, reply, err, tt.want)
		}
		fault.End()
	}
}

// If something cannot be moved, the reply says so. Between two accounts, it also suggests what to do instead.
func TestRefusedMoves(t *testing.T) {
	t.Parallel()
	s, cfg := simulated(t)
	acme := cfg.Tenants["acme"]
	acme.DefaultLanguage = language.English
	acme.Users["alice"].Home = "/"
	acme.Folders = map[string]*config.Folder{
		"/here": {Bucket: s.Bucket(t)},
		"/there": {Bucket: s.Bucket(t),
			S3: config.S3{AccessKeyID: "another", SecretAccessKey: value.NewSecret("secret")}},
	}
	c := session(t, start(t, cfg, Options{AWS: s.AWSConfig()}), "alice")
	c.Store("/f", "content")
	const stays = "This directory cannot be moved, replaced or removed. "
	const accounts = "Source and destination are in different storage accounts; " +
		"please download and upload instead. (/f -> /there/f)"
	for _, tt := range []struct {
		code          int
		command, want string
	}{
		{550, "RMD /here", stays + "(/here)"},
		{550, "SITE RMDIR /here", stays + "(/here)"},
		{550, "RNFR /here", stays + "(/here)"},
		{550, "RMD /", stays + "(/)"},
		{550, "MKD /", "A file or directory with this name already exists. (/)"},
		{550, "DELE /", "This is a directory, not a file. (/)"},
		{350, "RNFR /f", "Please send the new name with RNTO."},
		{550, "RNTO /here", stays + "(/here)"},
		{350, "RNFR /f", "Please send the new name with RNTO."},
		{550, "RNTO /there/f", accounts},
		{350, "SITE CPFR /f", "Please send the name of the copy with SITE CPTO."},
		{550, "SITE CPTO /there/f", accounts},
	} {
		if text := c.Command(tt.code, tt.command); text != tt.want {
			t.Errorf("%s: got %q, want %q", tt.command, text, tt.want)
		}
	}
}
