package acceptance_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// TestOutOfDescriptors lowers the server's limit of file descriptors during sessions. Without a free descriptor the
// server sends a temporary error and the session continues. The transfer works again once descriptors are
// available.
func TestOutOfDescriptors(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "minio"))
	listener := must.Listen(t)
	port := listener.Addr().(*net.TCPAddr).Port
	for _, way := range []string{"active", "passive"} {
		t.Run(way, func(t *testing.T) {
			k, err := s.dialAlice()
			must.OK(t, err)
			defer k.Close()
			upload := func(line string) {
				t.Helper()
				if reply, err := k.Upload(line, "some data"); err != nil || !strings.HasPrefix(reply, "226") {
					t.Fatalf("%s: %q, %v", line, reply, err)
				}
			}
			upload("STOR /warm")
			for spare := range 8 { // the first ones are the server's reserve
				s.allowDescriptors(t, spare)
				agreement := "EPSV"
				if way == "active" {
					agreement = fmt.Sprintf("PORT 127,0,0,1,%d,%d", port>>8, port&0xff)
				}
				reply, err := k.Send(agreement)
				if err == nil && reply[0] == '2' {
					reply, err = uploadTo(k, reply, listener)
				}
				s.allowDescriptors(t, unlimited)
				t.Logf("%d descriptors: %q, %v", spare, reply, err)
				code, _ := ftptest.Parse(reply)
				if err != nil || spare == 0 && code != 425 || code/100 != 4 && code != 226 || code == 421 {
					t.Errorf("%d descriptors: %q, %v", spare, reply, err)
				}
				if reply, err := k.Send("NOOP"); err != nil || !strings.HasPrefix(reply, "200") {
					t.Fatalf("NOOP afterward: %q, %v", reply, err)
				}
				upload("STOR /after")
			}
		})
	}
}

// When users take all available descriptors, another client gets 421 at once, and probes and metrics still work.
func TestDescriptorReserve(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "minio"), mallory())
	const spare = 60
	s.allowDescriptors(t, spare)
	var last *ftptest.Conn
	refused := ""
	for range spare {
		c, err := ftptest.Open(s.address)
		must.OK(t, err)
		defer c.Close()
		if refused, err = c.Reply(); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(refused, "220") {
			break
		}
		for _, command := range []string{"USER mallory@acme", "PASS " + servicetest.Password} {
			if _, err := c.Send(command); err != nil {
				t.Fatal(err)
			}
		}
		last = c
	}
	if last == nil || refused != "421 Too many connections. Please try again later." {
		t.Fatalf("at the limit of descriptors the greeting is %q", refused)
	}
	for path, want := range map[string]string{"/healthz": "ok\n", "/readyz": "ready\n",
		"/metrics": "babelftp_refusals_total"} {
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		response, err := client.Get("http://" + s.metrics + path)
		must.OK(t, err)
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(body), want) {
			t.Errorf("GET %s: %d %.200q, %v", path, response.StatusCode, body, err)
		}
	}
	if n := s.metric(t, `babelftp_refusals_total{limit="descriptors",tenant=""}`); n != 1 {
		t.Errorf("got %v counted refusals, want 1", n)
	}

	if reply, err := last.Upload("STOR /file", "some data"); err != nil || !strings.HasPrefix(reply, "226") {
		t.Errorf("STOR in a session that is open: %q, %v", reply, err)
	}
	must.OK(t, last.Close())
	waitUntil(t, func() bool { return s.greets(t) }, func() {
		t.Error("no connection is accepted after a session ended")
	})
}

// TestStrangersLeaveDescriptors opens as many sessions without login as the server accepts. They must leave half of
// the descriptors free. Users who are logged in continue, new clients are accepted when a stranger leaves, and no
// descriptor alert fires.
func TestStrangersLeaveDescriptors(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "minio"))
	alice := ftptest.Dial(t, s.address)
	alice.Login("alice@acme", password)
	const spare = 200
	s.allowDescriptors(t, spare)
	var strangers []net.Conn
	for n := range 2 * spare {
		_, conn, err := dialFrom(net.IPv4(127, 0, 4, byte(1+n%250)).String(), s.address)
		must.OK(t, err)
		defer conn.Close()
		strangers = append(strangers, conn)
	}
	most := spare * 3 / 5 // half of the free descriptors and of the reserve
	if n := s.metric(t, `babelftp_sessions`); n > float64(most) {
		t.Errorf("%v sessions of strangers with %d descriptors, want %d at most", n, spare, most)
	}
	alice.Store("/file", "some data")
	for limit, want := range map[string]bool{"descriptors": false, "sessions_before_login": true} {
		if n := s.metric(t, `babelftp_refusals_total{limit="`+limit+`",tenant=""}`); n > 0 != want {
			t.Errorf("got %v refusals by %s", n, limit)
		}
	}
	for _, conn := range strangers[:10] {
		_ = conn.Close()
	}
	waitUntil(t, func() bool { return s.greets(t) }, func() {
		t.Error("no connection is accepted after the strangers disconnected")
	})
}

// greets reports whether a new session is accepted.
func (s *site) greets(t *testing.T) bool {
	t.Helper()
	c, err := ftptest.Open(s.address)
	must.OK(t, err)
	defer c.Close()
	greeting, err := c.Reply()
	return err == nil && strings.HasPrefix(greeting, "220")
}

// uploadTo uploads on a data connection that was already negotiated. The server may fail to open it.
func uploadTo(k *ftptest.Conn, agreed string, listener net.Listener) (reply string, err error) {
	var conn net.Conn
	if _, port, passive := strings.Cut(agreed, "(|||"); passive {
		if conn, err = net.Dial("tcp", "127.0.0.1:"+strings.TrimSuffix(port, "|)")); err != nil {
			return "", err
		}
		defer conn.Close()
	}
	if reply, err = k.Send("STOR /file"); err != nil || !strings.HasPrefix(reply, "150") {
		return reply, err
	}
	if conn == nil {
		if conn, err = listener.Accept(); err != nil {
			return "", err
		}
	}
	_, _ = io.WriteString(conn, "some data")
	_ = conn.Close()
	return k.Reply()
}

// unlimited restores the original limit.
const unlimited = -1

// allowDescriptors lets the server open spare more descriptors. The limit applies to descriptor numbers, and the
// kernel assigns the lowest free number.
func (s *site) allowDescriptors(t *testing.T, spare int) {
	t.Helper()
	pid := s.server.cmd.Process.Pid
	var limit unix.Rlimit
	must.OK(t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &limit))
	limit.Cur = limit.Max
	if spare != unlimited {
		used := s.descriptors(t)
		for limit.Cur = 0; used[limit.Cur] != "" || spare > 0; limit.Cur++ {
			if used[limit.Cur] == "" {
				spare--
			}
		}
	}
	must.OK(t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, &limit, nil))
}

// descriptors returns the server's open descriptors and what they refer to.
func (s *site) descriptors(t *testing.T) map[uint64]string {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", s.server.cmd.Process.Pid)
	entries, err := os.ReadDir(dir)
	must.OK(t, err)
	open := make(map[uint64]string)
	for _, entry := range entries {
		number, err := strconv.ParseUint(entry.Name(), 10, 64)
		must.OK(t, err)
		if open[number], err = os.Readlink(filepath.Join(dir, entry.Name())); err != nil {
			delete(open, number) // it was just closed
		}
	}
	return open
}
