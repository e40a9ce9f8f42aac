package dialects_test

import (
	"crypto/md5"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// Contents of files. A file of one part or more is uploaded in parts, and the AWS SDK sends Expect: 100-continue
// for bodies larger than 2 MiB.
const (
	small = "The quick brown fox jumps over the lazy dog.\r\n"
	part  = 5 << 20
	// interrupted is the number of bytes before the interruption of an upload. STAT shows 5.1 MiB when nearly all of
	// them have arrived, and fewer before.
	interrupted = part + 54_000
)

var errCorrupt = errors.New("silent corruption")

// A step is one task of an FTP client. It may need files from other steps.
type step struct {
	name  string
	needs string // names of steps, separated by commas
	run   action
}

// A session runs the steps on one control connection and keeps track of the files that must exist.
type session struct {
	*ftptest.Conn
	files  map[string]string // content by path
	dirs   map[string]bool
	failed map[string]error // by step
	loose  bool             // a step has failed, so other files may exist too
}

func newSession(conn *ftptest.Conn) *session {
	return &session{Conn: conn, files: map[string]string{}, dirs: map[string]bool{}, failed: map[string]error{}}
}

// A refusal is a reply with an unexpected code.
type refusal string

func (r refusal) Error() string { return string(r) }

// command sends a command and checks the beginning of the reply code.
func (s *session) command(code, line string) (string, error) {
	reply, err := s.Send(line)
	if err != nil {
		return "", fmt.Errorf("%.100q: %w", line, err)
	}
	return reply, wants(code, reply)
}

func wants(code, reply string) error {
	if !strings.HasPrefix(reply, code) {
		return refusal(reply)
	}
	return nil
}

// do sends commands that must all succeed. Each begins with the expected code.
func (s *session) do(lines ...string) error {
	for _, line := range lines {
		code, line, _ := strings.Cut(line, " ")
		if _, err := s.command(code, line); err != nil {
			return err
		}
	}
	return nil
}

// store uploads a file by STOR, APPE or another command.
func (s *session) store(command, path, content, becomes string) error {
	reply, err := s.Upload(command+" "+path, content)
	if err != nil && reply == "" {
		return fmt.Errorf("%s: %w", command, err)
	}
	if err := wants("226", reply); err != nil {
		return err
	}
	s.files[path] = becomes
	return nil
}

// retrieve downloads a file, whole or from an offset.
func (s *session) retrieve(path string, offset int) error {
	if offset > 0 {
		if err := s.do(fmt.Sprintf("350 REST %d", offset)); err != nil {
			return err
		}
	}
	got, reply, err := s.Download("RETR " + path)
	if err != nil {
		return err
	}
	want := s.files[path][offset:]
	if err := wants("226", reply); err != nil {
		if !strings.HasPrefix(want, got) {
			return fmt.Errorf("%w: RETR %s: %d wrong bytes before %q", errCorrupt, path, len(got), reply)
		}
		return err
	}
	if got != want {
		return fmt.Errorf("%w: RETR %s: %d bytes %.40q, want %d %.40q", errCorrupt, path, len(got), got, len(want),
			want)
	}
	return nil
}

// shows sends a command whose reply must contain text.
func (s *session) shows(code, line, text string) error {
	reply, err := s.command(code, line)
	if err == nil && !strings.Contains(strings.ToLower(reply), strings.ToLower(text)) {
		return fmt.Errorf("%w: %s: %q lacks %q", errCorrupt, line, reply, text)
	}
	return err
}

// missing checks that each command finds nothing.
func (s *session) missing(lines ...string) error {
	for _, line := range lines {
		reply, err := s.Send(line)
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(reply, "2"):
			return fmt.Errorf("%w: %s of a missing file: %q", errCorrupt, line, reply)
		}
		if err := wants("550", reply); err != nil {
			return err
		}
	}
	return nil
}

// rename renames a file or a directory.
func (s *session) rename(from, to string) error {
	if err := s.do("350 RNFR "+from, "250 RNTO "+to); err != nil {
		return err
	}
	for path, content := range maps.Clone(s.files) {
		if rest, found := strings.CutPrefix(path, from); found && (rest == "" || rest[0] == '/') {
			delete(s.files, path)
			s.files[to+rest] = content
		}
	}
	for path := range maps.Clone(s.dirs) {
		if rest, found := strings.CutPrefix(path, from); found && (rest == "" || rest[0] == '/') {
			delete(s.dirs, path)
			s.dirs[to+rest] = true
		}
	}
	return nil
}

// entries returns the names in a directory with the sizes of its files.
func (s *session) entries(dir string) map[string]string {
	entries := map[string]string{}
	for path, content := range s.files {
		if rest, found := strings.CutPrefix(path, dir+"/"); found && !strings.Contains(rest, "/") {
			entries[rest] = strconv.Itoa(len(content))
		}
	}
	for path := range s.dirs {
		if rest, found := strings.CutPrefix(path, dir+"/"); found && !strings.Contains(rest, "/") {
			entries[rest] = "dir"
		}
	}
	return entries
}

var (
	factSize = regexp.MustCompile(`(?i)size=(\d+);`)
	factDay  = regexp.MustCompile(`(?i)modify=(\d{4})`)
	unixLine = regexp.MustCompile(`^(.)\S+\s+\d+\s+\S+\s+\S+\s+(\d+) \w{3} [ \d]\d\s+[\d:]+ (.*)$`)
)

// list checks that a listing shows every entry of a directory exactly once.
func (s *session) list(command, dir string) error {
	text, reply, err := s.Download(command + " " + dir)
	want := s.entries(strings.TrimSuffix(dir, "/"))
	if err == nil && strings.Contains(reply, "No such file") && len(want) == 0 {
		return nil // the directory does not exist
	}
	if err == nil {
		err = wants("226", reply)
	}
	if err != nil {
		return err
	}
	got := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		name, value := line, ""
		switch command {
		case "MLSD":
			facts, rest, _ := strings.Cut(line, " ")
			if name = rest; strings.Contains(strings.ToLower(facts), "type=cdir") ||
				strings.Contains(strings.ToLower(facts), "type=pdir") {
				continue
			}
			if day := factDay.FindStringSubmatch(facts); day != nil && day[1] < "2000" {
				return fmt.Errorf("%w: %s: %q", errCorrupt, command, line)
			}
			if size := factSize.FindStringSubmatch(facts); size != nil {
				value = size[1]
			}
			if strings.Contains(strings.ToLower(facts), "type=dir") {
				value = "dir"
			}
		case "LIST":
			fields := unixLine.FindStringSubmatch(line)
			if fields == nil {
				return fmt.Errorf("%w: %s: %q", errCorrupt, command, line)
			}
			if name, value = fields[3], fields[2]; fields[1] == "d" {
				value = "dir"
			}
		case "NLST":
			name = name[strings.LastIndex(name, "/")+1:]
		}
		if _, twice := got[name]; twice {
			return fmt.Errorf("%w: %s shows %q twice", errCorrupt, command, name)
		}
		got[name] = value
	}
	for name, value := range want {
		if seen, found := got[name]; !found || command != "NLST" && seen != value {
			return fmt.Errorf("%w: %s shows %q as %q, want %q; it has %q", errCorrupt, command, name, seen, value, got)
		}
	}
	if len(got) != len(want) && !s.loose {
		return fmt.Errorf("%w: %s shows %q, want %q", errCorrupt, command, got, want)
	}
	return nil
}

// interrupt uploads the beginning of a file and then breaks the data connection.
func (s *session) interrupt(path, content string) error {
	data, err := s.Data()
	if err != nil {
		return err
	}
	defer data.Close()
	if _, err := s.command("150", "STOR "+path); err != nil {
		return err
	}
	if _, err := io.WriteString(data, content); err != nil {
		return err
	}
	for progress := ""; !strings.Contains(progress, "5.1 MiB"); { // see interrupted
		if progress, err = s.command("", "STAT"); err != nil {
			return err
		}
		if !strings.HasPrefix(progress, "211") { // the transfer ended
			_, err := s.Reply() // reply to STAT
			return errors.Join(refusal(progress), err)
		}
	}
	if err := data.(*net.TCPConn).SetLinger(0); err != nil {
		return err
	}
	_ = data.Close()
	reply, err := s.Reply()
	if err == nil && strings.HasPrefix(reply, "2") {
		return fmt.Errorf("%w: an interrupted STOR got %q", errCorrupt, reply)
	}
	if err == nil {
		_, err = s.command("213", "SIZE "+path) // the upload is kept
	}
	return err
}

// resume continues an interrupted upload at the size in the reply to SIZE.
func (s *session) resume(path, content string) error {
	reply, err := s.command("213", "SIZE "+path)
	if err != nil {
		return err
	}
	size, err := strconv.Atoi(strings.TrimPrefix(reply, "213 "))
	if err != nil || size > len(content) {
		return fmt.Errorf("%w: SIZE: %q", errCorrupt, reply)
	}
	if err := s.do(fmt.Sprintf("350 REST %d", size)); err != nil {
		return err
	}
	return s.store("STOR", path, content[size:], content)
}

const (
	odd   = "/d/100% +a&b=c#d?e;f 'é' 日本.txt"
	begun = "/d/resumed.bin"
)

// An action is a step, or a part of one.
type action func(s *session) error

// then runs actions until one fails.
func then(actions ...action) action {
	return func(s *session) error {
		for _, a := range actions {
			if err := a(s); err != nil {
				return err
			}
		}
		return nil
	}
}

func do(lines ...string) action { return func(s *session) error { return s.do(lines...) } }

func store(path, content string) action {
	return func(s *session) error { return s.store("STOR", path, content, content) }
}

func retrieve(path string, offset int) action {
	return func(s *session) error { return s.retrieve(path, offset) }
}

func list(command, dir string) action { return func(s *session) error { return s.list(command, dir) } }

func rename(from, to string) action { return func(s *session) error { return s.rename(from, to) } }

func missing(lines ...string) action { return func(s *session) error { return s.missing(lines...) } }

func shows(code, line, text string) action {
	return func(s *session) error { return s.shows(code, line, text) }
}

func mkdir(path string) action {
	return func(s *session) error {
		if err := s.do("257 MKD " + path); err != nil {
			return err
		}
		s.dirs[path] = true
		return nil
	}
}

func remove(path string) action {
	return func(s *session) error {
		if err := s.do("250 DELE " + path); err != nil {
			return err
		}
		delete(s.files, path)
		return nil
	}
}

// login reads the greeting and logs in.
func login(s *session) error {
	reply, err := s.Reply()
	if err == nil {
		err = wants("220", reply)
	}
	if err != nil {
		return err
	}
	return s.do("331 USER alice", "230 PASS "+servicetest.Password, "200 TYPE I")
}

// overwrite writes bytes into the middle of a file.
func overwrite(path string, offset int, bytes string) action {
	return func(s *session) error {
		if err := s.do(fmt.Sprintf("350 REST %d", offset)); err != nil {
			return err
		}
		was := s.files[path]
		return s.store("STOR", path, bytes, was[:offset]+bytes+was[offset+len(bytes):])
	}
}

func appendTo(path, bytes string) action {
	return func(s *session) error { return s.store("APPE", path, bytes, s.files[path]+bytes) }
}

func duplicate(from, to string) action {
	return func(s *session) error {
		if err := s.do("350 SITE CPFR "+from, "250 SITE CPTO "+to); err != nil {
			return err
		}
		s.files[to] = s.files[from]
		return nil
	}
}

// storeMany stores small files in a directory.
func storeMany(dir string) action {
	return func(s *session) error {
		for i := range 6 {
			path := fmt.Sprintf("%s/%d +%%.txt", dir, i)
			if err := s.store("STOR", path, path, path); err != nil {
				return err
			}
		}
		return nil
	}
}

// steps lists the steps that run in each dialect.
func steps(large string) []step {
	today := " " + time.Now().UTC().Format("20060102")
	size := strconv.Itoa(len(large))
	return []step{
		{"login", "", login},
		{"LIST-empty", "login", list("LIST", "/")},
		{"MKD", "login", mkdir("/d")},
		{"CWD", "MKD", do("250 CWD /d", "257 PWD")},
		{"STOR-small", "login", store("/d/small.txt", small)},
		{"STOR-empty", "login", store("/d/empty", "")},
		{"STOR-medium", "login", store("/d/medium.bin", large[:3<<20])},
		{"STOR-large", "login", store("/d/large.bin", large)},
		{"STOR-name", "login", store(odd, "name")},
		{"RETR-small", "STOR-small", retrieve("/d/small.txt", 0)},
		{"RETR-empty", "STOR-empty", retrieve("/d/empty", 0)},
		{"RETR-large", "STOR-large", retrieve("/d/large.bin", 0)},
		{"RETR-name", "STOR-name", retrieve(odd, 0)},
		{"REST-RETR", "STOR-large", retrieve("/d/large.bin", part+7)},
		{"missing", "login", missing("SIZE /d/nothing", "MDTM /d/nothing", "RNFR /d/nothing", "DELE /d/nothing")},
		{"SIZE", "STOR-large", shows("213", "SIZE /d/large.bin", " "+size)},
		{"SIZE-empty", "STOR-empty", shows("213", "SIZE /d/empty", " 0")},
		{"MDTM", "STOR-small", shows("213", "MDTM /d/small.txt", today)},
		{"MLST", "STOR-small", shows("250", "MLST /d/small.txt", "size="+strconv.Itoa(len(small))+";")},
		{"HASH", "STOR-small", shows("213", "HASH /d/small.txt", fmt.Sprintf("%x", sha256.Sum256([]byte(small))))},
		{"XMD5", "STOR-large", shows("250", "XMD5 /d/large.bin", fmt.Sprintf("%x", md5.Sum([]byte(large))))},
		{"MLSD", "login", list("MLSD", "/d/")},
		{"LIST", "login", list("LIST", "/d/")},
		{"NLST", "login", list("NLST", "/d/")},
		{"MFMT", "STOR-small", then(
			do("213 MFMT 20010203040506 /d/small.txt"), shows("213", "MDTM /d/small.txt", "20010203040506"))},
		{"APPE", "STOR-small", then(appendTo("/d/small.txt", "more"), retrieve("/d/small.txt", 0))},
		{"REST-STOR", "STOR-small", then(overwrite("/d/small.txt", 4, "slow "), retrieve("/d/small.txt", 0))},
		{"STOR-replace", "STOR-medium", then(store("/d/medium.bin", small), retrieve("/d/medium.bin", 0))},
		{"STOR-interrupted", "login", func(s *session) error { return s.interrupt(begun, large[:interrupted]) }},
		{"STOR-resumed", "STOR-interrupted", then(
			func(s *session) error { return s.resume(begun, large) }, retrieve(begun, part-3))},
		{"RNTO", "STOR-empty,STOR-name", then(
			rename("/d/empty", "/d/renamed"), missing("SIZE /d/empty"),
			rename(odd, "/d/50%25 off"), retrieve("/d/50%25 off", 0))},
		{"RNTO-large", "STOR-large", then(
			rename("/d/large.bin", "/d/moved.bin"), missing("SIZE /d/large.bin"), retrieve("/d/moved.bin", part-5))},
		{"SITE-COPY", "STOR-small", then(
			duplicate("/d/small.txt", "/d/copy+1.txt"), retrieve("/d/copy+1.txt", 0))},
		{"MKD-deep", "login", then(mkdir("/d/sub"), mkdir("/d/sub/leaf"), mkdir("/d/other"))},
		{"STOR-many", "MKD-deep", then(storeMany("/d/sub"), list("MLSD", "/d/sub/"))},
		{"RNTO-directory", "STOR-many", then(
			rename("/d/sub", "/d/taken away"), list("MLSD", "/d/taken away/"), retrieve("/d/taken away/3 +%.txt", 0),
			missing("SIZE /d/sub/3 +%.txt", "CWD /d/sub"))},
		{"DELE", "STOR-medium", then(remove("/d/medium.bin"), missing("SIZE /d/medium.bin"))},
		{"RMD-full", "STOR-small", missing("RMD /d")},
		{"RMD", "login", then(do("257 MKD /gone", "250 RMD /gone"), missing("CWD /gone"))},
		{"MLSD-after", "login", list("MLSD", "/d/")},
		{"QUIT", "login", do("221 QUIT")},
	}
}

// run runs the steps and calls ended for each of them. Steps that need a failed step are skipped.
func (s *session) run(large string, ended func(step, error)) {
	for _, st := range steps(large) {
		if slices.ContainsFunc(strings.Split(st.needs, ","), func(need string) bool { return s.failed[need] != nil }) {
			s.failed[st.name] = errSkipped
			continue
		}
		err := st.run(s)
		if err != nil {
			s.failed[st.name], s.loose = err, true
		}
		ended(st, err)
	}
}

var errSkipped = errors.New("needs a step that failed")
