package report

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// A pipe is a data connection that is already open.
type pipe struct{ conn net.Conn }

func (p pipe) Waits() bool                            { return false }
func (p pipe) Missing() error                         { return nil }
func (p pipe) Open(context.Context) (net.Conn, error) { return p.conn, nil }
func (p pipe) Close()                                 { _ = p.conn.Close() }

// upload returns a transfer that has moved some bytes.
func upload(t *testing.T, bytes int) *dataconn.Transfer {
	t.Helper()
	client, server := net.Pipe()
	t.Cleanup(func() { _ = client.Close() })
	x := dataconn.NewTransfer(
		pipe{server}, dataconn.Options{Upload: true,
			Config: dataconn.Config{OpenTimeout: time.Minute, StallTimeout: time.Minute}})
	conn, err := x.Open(t.Context(), func() {})
	must.OK(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	go func() { _, _ = client.Write(make([]byte, bytes)) }()
	if _, err := io.ReadFull(conn, make([]byte, bytes)); err != nil {
		t.Fatal(err)
	}
	return x
}

// A session is shown with its current command and transfer, even while they change. The race detector checks this.
func TestShow(t *testing.T) {
	const id, bytes = "0123", 50
	s := NewActivity(&Client{ID: id, Remote: "192.0.2.7:1024"})
	x := upload(t, bytes)
	x.SetSize(2 * bytes)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			shown := s.Info()
			if known := shown.Tenant != "" || shown.User != ""; known && (shown.Tenant != "acme" || shown.User != "alice") {
				t.Errorf("unexpected session %+v", shown)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	s.Identified(&Client{ID: id, Tenant: "acme", User: "alice", Language: language.Japanese, TLS: true})
	s.CommandBegan(t.Context(), Command{Name: "CWD"})
	s.CommandEnded(t.Context(), &Outcome{})
	s.CommandBegan(t.Context(), Command{Name: "STOR"})
	s.Transferring(&Transfer{Progress: x, Path: "/f"})
	s.CommandBegan(t.Context(), Command{Name: "STAT"}) // gets a reply during the transfer
	s.CommandEnded(t.Context(), &Outcome{})
	close(stop)
	<-stopped
	shown := s.Info()
	if shown.ID != id || shown.Command != "STOR" || shown.Language != "ja" || !shown.TLS ||
		shown.LastActive.Before(shown.Since) {
		t.Errorf("unexpected session %+v", shown)
	}
	if x := shown.Transfer; x == nil || x.Session != id || x.Tenant != "acme" || x.Bytes != bytes ||
		*x.Size != 2*bytes || x.BytesPerSecond < 0 || x.Direction != "upload" || x.Path != "/f" {
		t.Errorf("unexpected transfer %+v", x)
	}
	s.CommandEnded(t.Context(), &Outcome{Transfer: &Transfer{}})
	if shown := s.Info(); shown.Transfer != nil || shown.Command != "" {
		t.Errorf("unexpected session at the end: %+v", shown)
	}
}

// The rate is measured over the last second or longer.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bytes = 500
		s := NewActivity(&Client{ID: "0123"})
		s.CommandBegan(t.Context(), Command{Name: "STOR"})
		s.Transferring(&Transfer{Progress: upload(t, bytes), Path: "/f"})
		// at once, after two seconds, and when nothing moves
		for look, want := range []int64{bytes * 1000, bytes / 2, 0} {
			if got := s.Info().Transfer.BytesPerSecond; got != want {
				t.Errorf("snapshot %d: got %d bytes a second, want %d", look, got, want)
			}
			time.Sleep(2 * time.Second)
		}
	})
}

// BenchmarkShow shows 100,000 sessions, of which one in a hundred has a transfer.
func BenchmarkShow(b *testing.B) {
	all := make([]*Activity, 100_000)
	for i := range all {
		all[i] = NewActivity(&Client{ID: fmt.Sprint(i), Remote: "192.0.2.7:1024", Tenant: "acme", User: "alice",
			Language: language.French})
		if i%100 == 0 {
			x := dataconn.NewTransfer(pipe{}, dataconn.Options{})
			all[i].Transferring(&Transfer{Progress: x, Path: "/f"})
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, s := range all {
			_ = s.Info()
		}
	}
}
