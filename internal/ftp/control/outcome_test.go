package control_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"sync"
	"testing"

	"github.com/babelftp/babelftp/internal/ftp/control"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/report"
)

// outcomes records the outcomes that an observer gets.
type outcomes struct {
	report.Silent
	mu  sync.Mutex
	all []*report.Outcome
}

func (o *outcomes) CommandEnded(_ context.Context, of *report.Outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, of)
}

// take returns descriptions of the outcomes recorded since the last call.
func (o *outcomes) take() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var told []string
	for _, of := range o.all {
		text := fmt.Sprintf("%s %d", of.Name, of.Code)
		if of.Kind != "" {
			text += " " + string(of.Kind)
		}
		for _, name := range []string{of.Path, of.To} {
			if name != "" {
				text += " " + name
			}
		}
		for _, err := range []error{
			fs.ErrNotExist, fs.ErrPermission, dataconn.ErrAborted, dataconn.ErrLost,
		} {
			if errors.Is(of.Err, err) {
				text += ", " + err.Error()
			}
		}
		if of.Pending {
			text += ", pending"
		}
		if of.Stored != nil {
			text += fmt.Sprintf(", stored %d", of.Stored.Size)
		}
		if x := of.Transfer; x != nil {
			text += fmt.Sprintf(", %s of %d complete %t", x.Direction(), x.Bytes(), x.Complete)
		}
		told = append(told, text)
	}
	o.all = nil
	return told
}

// Each command has one outcome, which the observers get before the client reads the reply.
func TestOutcomes(t *testing.T) {
	seen := &outcomes{}
	s := newSite(t, func(cfg *control.Config) {
		cfg.Observe = func(*report.Client) report.Observers { return report.Observers{seen} }
	})
	var data net.Conn
	c := s.login()
	seen.take()
	for _, tt := range []struct {
		do   func()
		want []string
	}{
		{func() { c.do("NOOP", "200 ") }, []string{"NOOP 200"}},
		{func() { c.do("NOPE", "500 ") }, []string{"other 500"}},
		{func() { c.Store("file", "some data") }, []string{
			"EPSV 229", "STOR 226 upload /file, stored 9, upload of 9 complete true"}},
		{func() { c.Transfer("RETR file") }, []string{
			"EPSV 229", "RETR 226 download /file, stored 9, download of 9 complete true"}},
		{func() { c.Data(); c.do("RETR none", "550 ") }, []string{
			"EPSV 229", "RETR 550 download /none, file does not exist, download of 0 complete false"}},
		{func() { c.do("DELE none", "550 ") }, []string{"DELE 550 delete /none, file does not exist"}},
		// the storage is searched for the NFC form too, but the outcome has the name that the client sent
		{func() { c.do("DELE ne\u0301ant", "550 ") }, []string{"DELE 550 delete /ne\u0301ant, file does not exist"}},
		{func() { c.do("DELE n\u00e9ant", "550 ") }, []string{"DELE 550 delete /n\u00e9ant, file does not exist"}},
		{func() { c.do("RMD /", "550 ") }, []string{"RMD 550 rmdir /, permission denied"}},
		{func() { c.do("RNFR file", "350 "); c.do("RNTO new", "250 ") }, []string{
			"RNFR 350 rename, pending", "RNTO 250 rename /file /new"}},
		{func() { c.do("site cpfr new", "350 "); c.do("SITE CPTO file", "250 ") }, []string{
			"SITE 350 copy, pending", "SITE 250 copy /new /file"}},
		{func() { c.do("MDTM file", "213 "); c.do("MDTM 20260102030405 file", "213 ") }, []string{
			"MDTM 213", "MDTM 213 set_time /file"}},
		{func() {
			data = c.Data()
			c.do("STOR slow", "150 ")
			c.expectStatus()
			c.write("ABOR\r\n")
			c.expect("426 ")
			c.expect("226 ")
		}, []string{
			"EPSV 229", "STAT 211",
			"STOR 426 upload /slow, aborted by the client, upload of 0 complete false", "ABOR 226"}},
	} {
		tt.do()
		if got := seen.take(); fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("observers got\n%q, want\n%q", got, tt.want)
		}
	}
	_ = data.Close()
}

// A transfer that ends with a panic has an outcome too, so that observers see its end.
func TestOutcomeOfAPanic(t *testing.T) {
	seen := &outcomes{}
	b := &blockade{operation: "next-page", panics: true, begun: make(chan struct{}, 1)}
	s := newSite(t, func(cfg *control.Config) {
		cfg.Backend = &blockedBackend{cfg.Backend, b}
		cfg.Observe = func(*report.Client) report.Observers { return report.Observers{seen} }
	})
	c := s.login()
	c.Data()
	seen.take()
	c.do("MLSD", "150 ")
	c.expect("421 ")
	c.WantClosed()
	if got := fmt.Sprint(seen.take()); got != "[MLSD 421, listing of 0 complete false]" {
		t.Errorf("unexpected calls of observers: %s", got)
	}
}

// expectStatus reads a reply to STAT, which has several lines.
func (c *client) expectStatus() {
	c.t.Helper()
	c.do("STAT", "211")
}
