package activity

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/report"
)

// A pipe is a data connection that is there.
type pipe struct{ conn net.Conn }

func (p pipe) Open(context.Context) (net.Conn, error) { return p.conn, nil }
func (p pipe) Close()                                 { _ = p.conn.Close() }

// upload is a transfer that has moved some bytes.
func upload(t *testing.T, bytes int) *dataconn.Transfer {
	t.Helper()
	client, server := net.Pipe()
	t.Cleanup(func() { _ = client.Close() })
	x := dataconn.NewTransfer(
		pipe{server}, dataconn.Options{Upload: true,
			Settings: dataconn.Settings{OpenTimeout: time.Minute, StallTimeout: time.Minute}})
	conn, err := x.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() { _, _ = client.Write(make([]byte, bytes)) }()
	if _, err := io.ReadFull(conn, make([]byte, bytes)); err != nil {
		t.Fatal(err)
	}
	return x
}

// Each of many sessions is shown with what it does, while all of them do something and an administrator looks all the
// time.
func TestManySessions(t *testing.T) {
	const sessions, tenants, every = 2_000, 100, 100
	all := make([]*Session, sessions)
	for i := range all {
		all[i] = New(&report.Client{ID: fmt.Sprint(i), Remote: "192.0.2.7:1024"})
	}
	tenant := func(i int) string { return fmt.Sprintf("tenant%d", i%tenants) }
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			for i, s := range all {
				shown := s.Show()
				if before := shown.Tenant == "" && shown.User == ""; !before &&
					(shown.Tenant != tenant(i) || shown.User != "alice") {
					t.Errorf("session %d is %+v", i, shown)
				}
				if x := shown.Transfer; x != nil &&
					(x.Session != shown.ID || x.Tenant != shown.Tenant || x.Bytes > int64(i) || x.BytesPerSecond < 0) {
					t.Errorf("the transfer of session %d is %+v", i, x)
				}
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	var working sync.WaitGroup
	for i, s := range all {
		var x *dataconn.Transfer
		if i%every == 0 {
			x = upload(t, i)
			x.SetSize(2 * int64(i))
		}
		working.Go(func() {
			s.Identified(&report.Client{ID: fmt.Sprint(i), Tenant: tenant(i), User: "alice",
				Language: language.Japanese, TLS: true})
			s.CommandBegan(t.Context(), report.Command{Name: "CWD"})
			s.CommandEnded(t.Context(), &report.Outcome{})
			s.CommandBegan(t.Context(), report.Command{Name: "STOR"})
			if x != nil {
				s.Transferring(&report.Transfer{Progress: x, Path: "/f"})
				s.CommandBegan(t.Context(), report.Command{Name: "STAT"}) // is answered meanwhile
				s.CommandEnded(t.Context(), &report.Outcome{})
			}
		})
	}
	working.Wait()
	close(stop)
	<-stopped
	counts := map[string]int{}
	for i, s := range all {
		shown := s.Show()
		counts[shown.Tenant]++
		if shown.ID != fmt.Sprint(i) || shown.Command != "STOR" || shown.Language != "ja" || !shown.TLS ||
			shown.LastActive.Before(shown.Since) {
			t.Errorf("session %d is %+v", i, shown)
		}
		if (shown.Transfer != nil) != (i%every == 0) {
			t.Errorf("session %d has the transfer %+v", i, shown.Transfer)
		}
		if x := shown.Transfer; x != nil &&
			(x.Bytes != int64(i) || *x.Size != 2*int64(i) || x.Direction != "upload" || x.Path != "/f") {
			t.Errorf("the transfer of session %d is %+v of %d bytes", i, x, *x.Size)
		}
		s.CommandEnded(t.Context(), &report.Outcome{Transfer: &report.Transfer{}})
		if shown := s.Show(); shown.Transfer != nil || shown.Command != "" {
			t.Errorf("session %d still has the transfer %+v", i, shown.Transfer)
		}
	}
	for name, n := range counts {
		if n != sessions/tenants {
			t.Errorf("%s has %d sessions", name, n)
		}
	}
}

// BenchmarkShow is one look at 100,000 sessions, of which one in a hundred has a transfer.
func BenchmarkShow(b *testing.B) {
	all := make([]*Session, 100_000)
	for i := range all {
		all[i] = New(&report.Client{ID: fmt.Sprint(i), Remote: "192.0.2.7:1024", Tenant: "acme", User: "alice",
			Language: language.French})
		if i%100 == 0 {
			x := dataconn.NewTransfer(pipe{}, dataconn.Options{})
			all[i].Transferring(&report.Transfer{Progress: x, Path: "/f"})
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, s := range all {
			_ = s.Show()
		}
	}
}
