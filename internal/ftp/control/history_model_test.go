package control_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A historyModel is what the server and the bucket are expected to be.
type historyModel struct {
	objects  map[string]string
	sessions [2]modelSession
	fresh    byte // the letter of the next upload, so that none is like another
}

type modelSession struct {
	loggedIn bool
	ascii    bool
	offset   int
	textual  bool // whether the offset was given under TYPE A
	ranged   bool
	from, to int    // of RANG, both included
	source   string // how the next data connection is made: open, dead or ""
	renaming string // what RNFR has named in the command before
	held     *modelUpload
}

// A modelUpload is one that has begun.
type modelUpload struct {
	key   string // "" for what STOU will choose
	kept  string // the bytes that stay before the new ones
	alone bool   // whether it depends on what the file has
	ascii bool
	sent  string
}

// An expectation is what a step must bring. A reply is codes between bars, and perhaps a text after them.
type expectation struct {
	replies  []string
	download *string // nil unless something is downloaded
	upload   string  // bytes to send
	relogin  bool    // the control connection ends, and another one takes its place
	skip     bool    // the step makes no sense
}

func replies(replies ...string) expectation { return expectation{replies: replies} }

func newHistoryModel() *historyModel {
	m := &historyModel{objects: startOfHistory(), fresh: 'A'}
	for i := range m.sessions {
		m.sessions[i].loggedIn = true
	}
	return m
}

// startOfHistory is the bucket at the beginning.
func startOfHistory() map[string]string {
	return map[string]string{"a": "0123456789", "b": "abc\r\ndef\nghi", "dir/": "", "dir/f": "content", "empty": ""}
}

func (m *historyModel) isDir(name string) bool {
	for key := range m.objects {
		if strings.HasPrefix(key, name+"/") {
			return true
		}
	}
	return false
}

// busy tells whether an upload is under way whose result depends on what a file has. What another session did to that
// file would not be predictable.
func (m *historyModel) busy(name string) bool {
	for i := range m.sessions {
		if held := m.sessions[i].held; held != nil && held.alone &&
			strings.HasPrefix(held.key, strings.TrimSuffix(name, "/")) {
			return true
		}
	}
	return false
}

// isPointless tells whether a step is to be passed over, because nothing can be predicted of it.
func (m *historyModel) isPointless(s *modelSession, st step) bool {
	_, isFile := m.objects[s.renaming]
	switch {
	case s.held == nil && st.verb == "", s.held != nil && st.verb != "": // commands wait until the upload has ended
		return true
	case st.argument != "" && m.busy(st.argument):
		return true
	case st.verb == "RNTO" && s.renaming != "": // directories are not renamed
		return !isFile || m.busy(s.renaming)
	}
	return (st.verb == "STOR" || st.verb == "APPE") && st.argument == "dir" // S3 servers differ in what they make of it
}

// data is what a client sends: bytes that are like those of no other upload, and line ends of both kinds.
func (m *historyModel) data(size int) string {
	text := strings.Repeat(string(m.fresh)+"x\r\n"+string(m.fresh)+"\n", size/6+1)[:size]
	if m.fresh++; m.fresh > 'Z' {
		m.fresh = 'A'
	}
	return text
}

func toLF(text string) string   { return strings.ReplaceAll(text, "\r\n", "\n") }
func toCRLF(text string) string { return strings.ReplaceAll(toLF(text), "\n", "\r\n") }

// expect predicts what a step brings.
func (m *historyModel) expect(st step) expectation {
	s := &m.sessions[st.session]
	switch {
	case m.isPointless(s, st):
		return expectation{skip: true}
	case st.verb == "":
		return m.resume(s, st)
	}
	renaming := s.renaming
	s.renaming = ""
	switch st.verb {
	case "NOOP":
		return replies("200")
	case "ABOR":
		s.source = ""
		return replies("226")
	case "REIN":
		*s = modelSession{}
		return replies("220")
	case "LOGIN":
		if s.loggedIn {
			return replies("530", "530")
		}
		s.loggedIn = true
		return replies("331", "230")
	}
	switch {
	case !s.loggedIn:
		return replies("530")
	case st.verb == "RNFR" && st.argument == "":
		return replies("501")
	case isTransfer(st.verb):
		defer func() { s.offset, s.textual, s.ranged = 0, false, false }()
		return m.transfer(s, st)
	case st.verb == "RNTO" && renaming == "":
		return replies("503")
	}
	return m.command(s, st, renaming)
}

func isTransfer(verb string) bool {
	return slices.Contains([]string{"RETR", "STOR", "APPE", "STOU", "LIST", "NLST", "MLSD"}, verb)
}

// command predicts what is no transfer.
func (m *historyModel) command(s *modelSession, st step, renaming string) expectation {
	switch st.verb {
	case "TYPE":
		s.ascii = st.argument == "A"
		return replies("200")
	case "REST":
		offset, err := strconv.Atoi(st.argument)
		if err != nil {
			return replies("501")
		}
		s.offset, s.textual, s.ranged = offset, s.ascii, false
		return replies("350")
	case "RANG":
		s.offset, s.ranged = 0, false
		_, _ = fmt.Sscan(st.argument, &s.from, &s.to)
		if s.from > s.to && st.argument != "1 0" {
			return replies("501")
		}
		s.ranged = st.argument != "1 0"
		return replies("350")
	case "ALLO":
		return replies("200")
	case "EPSV", "PASV":
		s.source = "open"
		return replies(map[string]string{"EPSV": "229", "PASV": "227"}[st.verb])
	case "PORT":
		s.source = "dead"
		return replies("200")
	}
	ranged := s.ranged
	if st.verb == "HASH" {
		s.ranged = false
	}
	if code := refusedName(st.argument); code != "" {
		return replies(code)
	}
	return m.onFile(s, st, renaming, ranged)
}

// refusedName is the reply to a name that no file can have.
func refusedName(name string) string {
	switch {
	case name == "\xfe":
		return "501"
	case len(name) > 1024:
		return "553"
	}
	return ""
}

// onFile predicts what is done to files and directories.
func (m *historyModel) onFile(s *modelSession, st step, renaming string, ranged bool) expectation {
	name := strings.TrimSuffix(st.argument, "/")
	content, isFile := m.objects[name]
	isDir := m.isDir(name)
	there := isFile || isDir
	switch st.verb {
	case "SIZE":
		if s.ascii || !isFile {
			return replies("550")
		}
		return replies("213 " + strconv.Itoa(len(content)))
	case "HASH":
		switch {
		case !isFile && isDir:
			return replies("553")
		case !isFile:
			return replies("550")
		case ranged && s.from > 0 && s.from >= len(content):
			return replies("554")
		}
		return replies("213")
	case "DELE":
		if !isFile {
			return replies("550")
		}
		delete(m.objects, name)
		return replies("250")
	case "MKD":
		if there {
			return replies("550")
		}
		m.objects[name+"/"] = ""
		return replies("257")
	case "RMD":
		_, marker := m.objects[name+"/"]
		if !marker || len(m.below(name)) > 1 {
			return replies("550")
		}
		delete(m.objects, name+"/")
		return replies("250")
	case "RNFR":
		if !there {
			return replies("550")
		}
		s.renaming = name
		return replies("350")
	case "RNTO":
		return m.rename(renaming, name)
	}
	panic("a script has " + st.line())
}

// below are the keys of a directory.
func (m *historyModel) below(name string) []string {
	var keys []string
	for key := range m.objects {
		if strings.HasPrefix(key, name+"/") {
			keys = append(keys, key)
		}
	}
	return keys
}

// rename predicts RNTO. Both names are those of files.
func (m *historyModel) rename(from, to string) expectation {
	content := m.objects[from]
	delete(m.objects, from)
	m.objects[to] = content
	return replies("250")
}

// transfer predicts the reply to a transfer command, and what becomes of the transfer.
func (m *historyModel) transfer(s *modelSession, st step) expectation {
	upload := st.verb == "STOR" || st.verb == "APPE" || st.verb == "STOU"
	file := upload || st.verb == "RETR"
	name := strings.TrimSuffix(st.argument, "/")
	switch {
	case st.verb == "STOR" && st.argument == "":
		return replies("501")
	case refusedName(st.argument) != "":
		return replies(refusedName(st.argument))
	case upload && st.argument != name:
		return replies("550")
	case file && s.offset > 0 && (s.ascii || s.textual):
		return replies("554")
	case upload && s.ranged:
		return replies("504")
	case file && s.ranged && s.ascii:
		return replies("551")
	case s.source == "":
		return replies("425")
	}
	if code := m.opens(s, st, name, upload); code != "" {
		return replies(code)
	}
	source := s.source
	s.source = ""
	if source == "dead" {
		return replies("425")
	}
	if upload {
		return m.begin(s, st, name)
	}
	return m.download(s, st, name)
}

// opens predicts whether what a transfer names can be opened, and else the reply.
func (m *historyModel) opens(s *modelSession, st step, name string, upload bool) string {
	content, isFile := m.objects[name]
	start := s.offset
	if s.ranged {
		start = s.from
	}
	switch {
	case st.argument == "" && st.verb != "STOU": // a listing of the root
	case st.verb == "MLSD" && isFile:
		return "501"
	case st.verb == "LIST" || st.verb == "MLSD":
		if !isFile && !m.isDir(name) {
			return "550"
		}
	case upload && start == 0:
	case !isFile:
		return "550"
	case start > len(content):
		return "554"
	}
	return ""
}

// download predicts what the client reads. One that hangs up or aborts may have all of it by then.
func (m *historyModel) download(s *modelSession, st step, name string) expectation {
	e := replies("150", "226")
	switch st.what {
	case "abort":
		return replies("150", "226|426", "226")
	case "reset":
		return replies("150", "226|426")
	case "hangup":
		*s = modelSession{loggedIn: true}
		return expectation{replies: []string{"150"}, relogin: true}
	}
	if st.verb == "RETR" {
		data := m.objects[name][s.offset:]
		if s.ranged {
			data = m.objects[name]
			data = data[s.from:min(len(data), s.to+1)]
		}
		if s.ascii {
			data = toCRLF(data)
		}
		e.download = &data
	}
	if st.verb == "NLST" {
		data := m.names()
		e.download = &data
	}
	return e
}

// names is what NLST shows of the root.
func (m *historyModel) names() string {
	names := make(map[string]bool)
	for key := range m.objects {
		name, _, _ := strings.Cut(key, "/")
		names[name] = true
	}
	list := ""
	for _, name := range slices.Sorted(maps.Keys(names)) {
		list += name + "\r\n"
	}
	return list
}

// begin predicts an upload.
func (m *historyModel) begin(s *modelSession, st step, name string) expectation {
	u := &modelUpload{key: name, ascii: s.ascii}
	switch {
	case s.offset > 0:
		u.kept, u.alone = m.objects[name][:s.offset], true
	case st.verb == "APPE":
		u.kept, u.alone = m.objects[name], true
	}
	s.held = u
	e := m.resume(s, st)
	e.replies = append([]string{"150"}, e.replies...)
	return e
}

// resume predicts what becomes of an upload that has begun.
func (m *historyModel) resume(s *modelSession, st step) expectation {
	e := expectation{upload: m.data(st.bytes)}
	u := s.held
	u.sent += e.upload
	if st.what == "hold" {
		return e
	}
	s.held = nil
	switch st.what {
	case "send":
		if u.ascii {
			u.sent = toLF(u.sent)
		}
		m.objects[u.key] = u.kept + u.sent
		e.replies = []string{"226"}
	case "abort":
		e.replies = []string{"426", "226"}
	case "reset":
		e.replies = []string{"426"}
	case "hangup":
		*s = modelSession{loggedIn: true}
		e.relogin = true
	}
	return e
}
