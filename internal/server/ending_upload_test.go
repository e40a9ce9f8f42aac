package server

import (
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// A session dies in the middle of an upload, and its client reconnects before S3 has all of the session's data. The
// client still learns the size that it can resume from, as if it had come a moment later.
func TestComingBackAtOnce(t *testing.T) {
	t.Parallel()
	const sent = "half of a file"
	kept := strconv.Itoa(len(sent) - 1) // a pending upload lacks the last byte
	for _, line := range []string{"SIZE /new", "MLST /new", "STOR /new"} {
		t.Run(line[:4], func(t *testing.T) {
			s := s3test.Start(t, "sim-aws")
			proxy := s3test.StartProxy(t, s)
			cfg := servicetest.NewConfig(t, proxy.Server())
			cfg.Tenants["acme"].Resume = config.KeepInterrupted
			log := &servicetest.Log{}
			srv := start(t, cfg, Options{AWS: proxy.Server().AWSConfig(), Logger: log.LoggerAt(slog.LevelDebug)})
			first, second := session(t, srv, "alice"), session(t, srv, "alice")

			rest := make(chan struct{})
			injection := proxy.Inject(s3test.Fault{Operation: "PutObject", Times: 1, Effect: s3test.Hold(rest)})
			lost := first.Data().(*net.TCPConn)
			first.Command(150, "STOR /new")
			must.Write(t, lost, sent)
			for !strings.Contains(first.Command(211, "STAT"), strconv.Itoa(len(sent))+" byte") {
			}
			log.Take()
			_ = lost.SetLinger(0)
			_ = lost.Close()
			_ = first.Close()
			for injection.Applied() == 0 {
			}

			var data net.Conn
			if line[:4] == "STOR" {
				data = second.Data()
				second.Command(350, "REST "+kept)
			}
			reply := make(chan string, 1)
			go func() {
				text, err := second.Send(line)
				if err != nil {
					text = err.Error()
				}
				reply <- text
			}()
			for !strings.Contains(log.Next("msg=command"), line) {
			}
			close(rest)
			switch text := <-reply; line[:4] {
			case "SIZE":
				if text != "213 "+kept {
					t.Errorf("SIZE: got %q, want 213 %s", text, kept)
				}
			case "MLST":
				if !strings.Contains(strings.ToLower(text), "size="+kept+";") {
					t.Errorf("MLST: got %q, want size=%s", text, kept)
				}
			case "STOR":
				if !strings.HasPrefix(text, "150 ") {
					t.Fatalf("STOR after REST: got %q, want 150", text)
				}
				_, _ = io.WriteString(data, "es")
				_ = data.Close()
				second.Reply(226)
				second.Want(sent[:len(sent)-1]+"es", "RETR /new")
			}
		})
	}
}
