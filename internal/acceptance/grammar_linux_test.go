package acceptance_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

var (
	grammarTime = flag.Duration("grammar.time", 8*time.Second, "how long TestGrammar speaks to the server")
	grammarSeed = flag.Uint64("grammar.seed", 1, "of TestGrammar; a seed decides what clients say, but not when")
)

// TestGrammar lets many clients send commands generated from the FTP grammar: every command, with valid, invalid,
// huge and broken arguments, in any order, with and without TLS. They use data connections, leave them open or
// reset them, and end sessions at any point. The server has 2,000 descriptors. Afterwards it has not panicked,
// holds no more resources than before, and still serves clients.
func TestGrammar(t *testing.T) {
	t.Parallel()
	s := newSite(t, s3test.Start(t, "minio"), mallory(), "memory: 64MiB", "stall_timeout: 2s")
	limit := unix.Rlimit{Cur: 2000, Max: 2000}
	must.OK(t, unix.Prlimit(s.server.cmd.Process.Pid, unix.RLIMIT_NOFILE, &limit, nil))
	other := ftptest.Dial(t, s.address)
	other.Login("alice@umbrella", password)
	other.Store("/proof", "intact")
	other.Command(221, "QUIT")
	before := s.holdings(t)

	a := &attack{site: s, syntaxes: syntaxesOf(t, s), until: time.Now().Add(*grammarTime)}
	var speaking sync.WaitGroup
	for n := range uint64(talkers) {
		speaking.Go(func() {
			r := rand.New(rand.NewPCG(*grammarSeed, n))
			for time.Now().Before(a.until) && !s.server.ended() {
				a.session(r)
			}
		})
	}
	spoken := make(chan struct{})
	go func() { speaking.Wait(); close(spoken) }()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	const heap = "go_memstats_heap_inuse_bytes"
	highest := 0.0
	for speaks := true; speaks; {
		select {
		case <-spoken:
			speaks = false
		case <-look.C:
			highest = max(highest, s.metric(t, heap))
		}
	}
	a.release()
	t.Logf(
		"%d sessions with %d commands; %.0f MiB of heap at most", a.sessions.Load(), a.commands.Load(), highest/(1<<20))
	const most = 64<<20 + 64<<20 + talkers*(1+maxLeft)*100<<10 // the process, memory, and sessions
	if highest > most {
		t.Errorf("heap of %.0f bytes, want at most %d", highest, most)
	}

	var after holdings
	waitUntil(t, func() bool {
		after = s.holdings(t)
		return after.goroutines <= before.goroutines && after.descriptors <= before.descriptors
	}, func() { t.Errorf("the server holds %+v, before %+v", after, before) })
	if n := s.metric(t, "babelftp_panics_total"); n != 0 {
		t.Errorf("got %v panics", n)
	}
	for _, line := range regexp.MustCompile(`(?m)^.*level=ERROR.*$`).FindAllString(s.server.stderr.String(), 5) {
		t.Errorf("unexpected log line %s", line)
	}
	other = ftptest.Dial(t, s.address)
	other.Login("alice@umbrella", password)
	other.Want("intact", "RETR /proof")
}

// holdings counts the resources of a server, except for idle connections to its S3 server.
type holdings struct{ goroutines, descriptors int }

func (s *site) holdings(t *testing.T) holdings {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	const remote, inode = 2, 9 // fields of /proc/net/tcp
	_, port, _ := strings.Cut(strings.TrimPrefix(s.storage.Endpoint, "http://"), ":")
	number, err := strconv.Atoi(port)
	must.OK(t, err)
	toStorage := map[string]bool{}
	table := must.ReadFile(t, fmt.Sprintf("/proc/%d/net/tcp", s.server.cmd.Process.Pid))
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); len(fields) > inode &&
			strings.HasSuffix(fields[remote], fmt.Sprintf(":%04X", number)) {
			toStorage["socket:["+fields[inode]+"]"] = true
		}
	}
	h := holdings{goroutines: int(s.metric(t, "go_goroutines"))}
	for _, what := range s.descriptors(t) {
		if toStorage[what] {
			h.goroutines -= 2 // one reads and one writes
		} else {
			h.descriptors++
		}
	}
	return h
}

// syntaxesOf returns the syntax of every command from the server's HELP (RFC 959, section 5.3).
func syntaxesOf(t *testing.T, s *site) (syntaxes []string) {
	t.Helper()
	c := ftptest.Dial(t, s.address)
	c.Command(200, "LANG en")
	c.Login("alice@umbrella", password)
	_, verbs, _ := strings.Cut(c.Command(214, "HELP"), "\n")
	for _, verb := range strings.Fields(verbs[:strings.LastIndexByte(verbs, '\n')]) {
		syntaxes = append(syntaxes, strings.TrimPrefix(c.Command(214, "HELP "+verb), "Syntax: "))
	}
	for line := range strings.Lines(c.Command(214, "SITE HELP")) {
		if service, found := strings.CutPrefix(strings.TrimSpace(line), " "); found || line[0] == ' ' {
			syntaxes = append(syntaxes, "SITE <SP> "+strings.TrimSpace(service))
		}
	}
	c.Command(221, "QUIT")
	return syntaxes
}
