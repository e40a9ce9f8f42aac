package control_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/babelftp/babelftp/internal/ftp/control"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

var (
	histories = flag.Int(
		"histories", 0, "how many histories TestHistories plays; 0 stands for 200, or for 20 with -short")
	historySeed = flag.Uint64("seed", 1, "the seed of the first one; each that follows has the next")
)

// historySteps is how long a history is before it is shortened.
const historySteps = 60

// TestHistories lets two clients do at random what clients do, on control connections of their own: commands in any
// order, transfers that are refused, aborted or broken, and sessions that hang up. A model predicts each reply, each
// download and what the bucket holds in the end. A history that differs is shortened and printed; playHistory plays
// it again.
//
//	go test ./internal/ftp/control -run TestHistories -histories 10000 -seed 1
func TestHistories(t *testing.T) {
	count := *histories
	switch {
	case count == 0 && testing.Short():
		count = 20
	case count == 0:
		count = 200
	}
	b := newHistoryBucket(t)
	for i := range uint64(count) {
		seed := *historySeed + i
		script := randomScript(rand.New(rand.NewPCG(seed, 0)))
		err := b.playHistory(script)
		if err == nil {
			continue
		}
		short := shorten(script, func(script []string) bool { return b.playHistory(script) != nil })
		t.Fatalf("seed %d: %v\nshortened to %d of %d steps:\n\t%s\n%v", seed, err, len(short), len(script),
			brief(strings.Join(short, "\n\t")), b.playHistory(short))
	}
}

// TestHistory plays what TestHistories has found, and what shows that it finds something.
func TestHistory(t *testing.T) {
	b := newHistoryBucket(t)
	for name, script := range map[string][]string{
		"offset-of-a-refused-transfer": {"0 REST 4", "0 RETR a", "0 EPSV", "0 STOR b ~send 3"},
		"held-upload-beside-another": {"0 EPSV", "0 STOR a ~hold 5", "1 EPSV", "1 STOR a ~send 9", "0 ~send 6",
			"1 SIZE a"},
		"name-refused-by-RNFR": {"0 RNFR a", "0 RNFR \xfe", "0 RNTO c"},
		"no-name-for-RNFR":     {"0 RNFR a", "0 RNFR", "0 RNTO c"},
		"hang-up-in-an-upload": {"0 EPSV", "0 STOR a ~hold 5", "0 ~hangup 3", "0 SIZE a"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := b.playHistory(script); err != nil {
				t.Error(err)
			}
		})
	}
}

// shorten drops steps as long as what is left fails: first many at once, then each alone.
func shorten(script []string, fails func([]string) bool) []string {
	for size := len(script) / 2; size > 0; size /= 2 {
		for i := 0; i+size <= len(script); {
			if rest := slices.Delete(slices.Clone(script), i, i+size); fails(rest) {
				script = rest
			} else {
				i += size
			}
		}
	}
	return script
}

// A step of a script is "SESSION COMMAND", and for a transfer what the client does when it gets 150: " ~WHAT BYTES".
// "SESSION ~WHAT BYTES" continues an upload that is held. Steps that make no sense are passed over, so that scripts
// can be shortened.
type step struct {
	session  int
	verb     string
	argument string
	what     string // send, abort, reset, hangup or hold
	bytes    int
}

func parseStep(text string) step {
	session, rest, _ := strings.Cut(text, " ")
	command, what, _ := strings.Cut(rest, "~")
	verb, argument, _ := strings.Cut(strings.TrimSuffix(command, " "), " ")
	what, bytes, _ := strings.Cut(what, " ")
	s := step{verb: verb, argument: argument, what: cmp.Or(what, "send")}
	s.session, _ = strconv.Atoi(session)
	s.bytes, _ = strconv.Atoi(bytes)
	return s
}

// line is the command line.
func (s step) line() string { return strings.TrimSuffix(s.verb+" "+s.argument, " ") }

// tooLong is longer than any key.
var tooLong = strings.Repeat("x", 1025)

// randomScript makes a script.
func randomScript(random *rand.Rand) []string {
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	name := func() string {
		return pick("a", "b", "c", "dir/f", "a", "b", "c", "dir/f", "nothing", "dir", "dir/", "empty", tooLong, "\xfe")
	}
	number := func() string { return strconv.Itoa(random.IntN(16)) }
	what := func() string {
		return " ~" + pick("send", "send", "send", "send", "abort", "reset", "hangup", "hold", "hold") + " " +
			strconv.Itoa(random.IntN(24))
	}
	var script []string
	for len(script) < historySteps {
		session := pick("0 ", "0 ", "1 ")
		command := ""
		switch random.IntN(16) {
		case 0:
			command = "TYPE " + pick("A", "I", "I")
		case 1, 2, 3:
			command = "REST " + pick(number(), number(), number(), "0", "99999999999999999999")
		case 4:
			command = "RANG " + pick(number()+" "+number(), number()+" 15", "1 0")
		case 5:
			command = pick("ALLO "+number(), "NOOP", "HASH "+name(), "SIZE "+name(), "SIZE "+name())
		case 6:
			command = pick("DELE "+name(), "MKD "+pick("new", "dir"), "RMD "+pick("new", "dir"))
		case 7:
			script = append(script, session+"RNFR "+name())
			command = "RNTO " + pick("a", "b", "c", "dir/f")
		case 8:
			command = pick("ABOR", "ABOR", "REIN", "LOGIN", "PORT dead")
		case 9, 10:
			command = what()[1:]
		default:
			command = pick(
				"RETR "+name(), "STOR "+name(), "STOR "+name(), "APPE "+name(), "STOU", "NLST", "LIST "+name(),
				"MLSD "+name(), "STOR") + what()
			if source := pick("EPSV", "EPSV", "PASV", "PORT dead", ""); source != "" {
				script = append(script, session+source)
			}
		}
		script = append(script, session+command)
	}
	return script
}

// A historyBucket is where histories are played, one after another.
type historyBucket struct {
	site *site
}

func newHistoryBucket(t *testing.T) *historyBucket {
	return &historyBucket{newSite(t, func(cfg *control.Config) {
		cfg.CommitDelay = time.Millisecond
		cfg.Logger = slog.New(slog.DiscardHandler)
	})}
}

// playHistory plays a script and returns the first difference to the model.
func (b *historyBucket) playHistory(script []string) error {
	if err := b.fill(startOfHistory()); err != nil {
		return err
	}
	m := newHistoryModel()
	var players [2]*player
	for i := range players {
		p, err := newPlayer(b.site.address)
		if err != nil {
			return err
		}
		defer func() { players[i].close() }()
		players[i] = p
	}
	for i, text := range script {
		st := parseStep(text)
		was := m.sessions[st.session].held
		e := m.expect(st)
		if e.skip {
			continue
		}
		p := players[st.session]
		if err := p.play(st, e, was != nil); err != nil {
			return fmt.Errorf("step %d, %s: %w", i+1, brief(text), err)
		}
		if p.chosen != "" { // by STOU
			if content, stored := m.objects[""]; stored {
				delete(m.objects, "")
				m.objects[p.chosen] = content
			}
			for j := range m.sessions {
				if held := m.sessions[j].held; held != nil && held.key == "" {
					held.key = p.chosen
				}
			}
			p.chosen = ""
		}
		if e.relogin {
			p.close()
			var err error
			if players[st.session], err = newPlayer(b.site.address); err != nil {
				return err
			}
		}
	}
	if got := b.site.contents(); !maps.Equal(got, m.objects) {
		return fmt.Errorf("the bucket has %q, want %q", got, m.objects)
	}
	return nil
}

// brief is a step short enough to read.
func brief(text string) string {
	return strings.NewReplacer(tooLong, "xxx...", "\xfe", `\xfe`).Replace(text)
}

// fill makes the bucket hold these objects and no others.
func (b *historyBucket) fill(objects map[string]string) error {
	ctx, client, bucket := b.site.t.Context(), b.site.client, aws.String(b.site.bucket)
	for _, key := range s3test.Objects(b.site.t, client, b.site.bucket) {
		if _, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: bucket, Key: &key}); err != nil {
			return err
		}
	}
	for key, content := range objects {
		if _, err := client.PutObject(
			ctx, &s3.PutObjectInput{Bucket: bucket, Key: &key, Body: strings.NewReader(content)}); err != nil {
			return err
		}
	}
	return nil
}

// A player is one client. Its errors are returned, because a history is played many times.
type player struct {
	conn   *ftptest.Conn
	data   net.Conn
	chosen string // the name that STOU got
}

func newPlayer(address string) (*player, error) {
	conn, err := ftptest.Open(address)
	if err != nil {
		return nil, err
	}
	p := &player{conn: conn}
	if err := p.want("220"); err != nil {
		return p, err
	}
	return p, p.login("331", "230")
}

func (p *player) close() {
	_ = p.conn.Close()
	p.closeData()
}

func (p *player) closeData() {
	if p.data != nil {
		_ = p.data.Close()
		p.data = nil
	}
}

func (p *player) login(user, pass string) error {
	return errors.Join(p.command("USER demo", user), p.command("PASS demo", pass))
}

func (p *player) command(line, want string) error {
	if err := p.send(line); err != nil {
		return err
	}
	return p.want(want)
}

func (p *player) send(line string) error {
	_, err := io.WriteString(p.conn, line+"\r\n")
	return err
}

// want reads a reply and compares it with an expected one.
func (p *player) want(want string) error {
	reply, err := p.conn.Reply()
	code, text := ftptest.Parse(reply)
	if code == 0 {
		return fmt.Errorf("no reply, want %s: %w", want, err)
	}
	codes, wanted, _ := strings.Cut(want, " ")
	if !slices.Contains(strings.Split(codes, "|"), strconv.Itoa(code)) || !strings.HasPrefix(text, wanted) {
		return fmt.Errorf("reply %d %s, want %s", code, text, want)
	}
	switch code {
	case 150:
		if name, chosen := strings.CutPrefix(text, "FILE: "); chosen {
			p.chosen = name
		}
	case 227, 229:
		return p.dial(text)
	}
	return nil
}

// dial opens the data connection that a reply offers.
func (p *player) dial(text string) error {
	p.closeData()
	port := 0
	if _, offered, extended := strings.Cut(text, "(|||"); extended {
		port, _ = strconv.Atoi(strings.TrimSuffix(offered, "|)"))
	} else if fields := strings.Split(strings.TrimSuffix(text, ")"), ","); len(fields) == 6 {
		high, _ := strconv.Atoi(fields[4])
		low, _ := strconv.Atoi(fields[5])
		port = high<<8 | low
	}
	data, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	_ = data.SetDeadline(time.Now().Add(waitTimeout))
	p.data = data
	return nil
}

// play does a step and compares.
func (p *player) play(st step, e expectation, held bool) error {
	rest := e.replies
	if !held {
		line := st.line()
		switch st.verb {
		case "LOGIN":
			return p.login(rest[0], rest[1])
		case "PORT":
			p.closeData()
			line = "PORT " + portArgument(p.conn.LocalAddr()) // where no client listens
		}
		if err := p.command(line, rest[0]); err != nil {
			return err
		}
		if st.verb == "ABOR" || st.verb == "REIN" {
			p.closeData()
		}
		if rest[0] != "150" {
			return nil
		}
		rest = rest[1:]
	}
	return p.transfer(st, e, rest)
}

// transfer moves the data of a step.
func (p *player) transfer(st step, e expectation, rest []string) error {
	if _, err := io.WriteString(p.data, e.upload); err != nil {
		return err
	}
	switch st.what {
	case "hold":
		if len(rest) == 0 {
			return nil
		}
	case "abort":
		if err := p.send("ABOR"); err != nil {
			return err
		}
	case "reset":
		_ = p.data.(*net.TCPConn).SetLinger(0)
		p.closeData()
	case "hangup":
		_ = p.conn.Close()
		_, _ = io.Copy(io.Discard, p.data) // until the server has noticed
	case "send":
		if strings.Contains("STOR APPE STOU", st.verb) { // "" too
			p.closeData()
		}
	}
	if e.download != nil {
		data, err := io.ReadAll(p.data)
		if err != nil {
			return err
		}
		if string(data) != *e.download {
			return fmt.Errorf("downloaded %q, want %q", data, *e.download)
		}
	}
	for _, want := range rest {
		if err := p.want(want); err != nil {
			return err
		}
	}
	p.closeData()
	return nil
}
