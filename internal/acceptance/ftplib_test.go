package acceptance_test

import (
	_ "embed"
	"encoding/json"
	"net"
	"strconv"
	"strings"
	"testing"
)

//go:embed ftplib_client.py
var ftplibClient string

// An ftplib is one session of Python's ftplib, in a process of its own.
type ftplib struct {
	*process
	answers int // so far
}

// newFtplib logs acme's alice in.
func newFtplib(t *testing.T, s *site, w way) *ftplib {
	ca := ""
	if w.tls == "explicit" {
		ca = s.ca
	}
	f := s.connect(t, ca, w.data == "passive")
	f.must("login", "alice@acme", password)
	return f
}

// connect opens a control connection, with explicit TLS at login if ca names a file.
func (s *site) connect(t *testing.T, ca string, passive bool) *ftplib {
	t.Helper()
	f := &ftplib{process: launch(t, command(t, "python3"), "-c", ftplibClient)}
	host, port, err := net.SplitHostPort(s.address)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	f.must("connect", host, number, ca, passive)
	return f
}

// An answer is what a method of the client returned, or the error that ftplib raised.
type answer struct {
	Value json.RawMessage
	Error string
}

// send calls a method of the client, whose answer comes later.
func (f *ftplib) send(method string, arguments ...any) {
	f.t.Helper()
	line, err := json.Marshal(append([]any{method}, arguments...))
	if err != nil {
		f.t.Fatal(err)
	}
	f.process.send(string(line) + "\n")
}

// receive waits for the next answer.
func (f *ftplib) receive() answer {
	f.t.Helper()
	f.answers++
	m := f.expect(f.stdout, `^(?:.*\n){`+strconv.Itoa(f.answers-1)+`}(.*)\n`)
	var a answer
	if err := json.Unmarshal([]byte(m[1]), &a); err != nil {
		f.t.Fatalf("answer %q: %v", m[1], err)
	}
	return a
}

// try calls a method and returns its answer.
func (f *ftplib) try(method string, arguments ...any) answer {
	f.t.Helper()
	f.send(method, arguments...)
	return f.receive()
}

// must calls a method that has to succeed and returns a reply or another text.
func (f *ftplib) must(method string, arguments ...any) string {
	f.t.Helper()
	a := f.try(method, arguments...)
	if a.Error != "" {
		f.t.Fatalf("%s%q: %s", method, arguments, a.Error)
	}
	var text string
	_ = json.Unmarshal(a.Value, &text) // what is no text stays empty
	return text
}

// refused calls a method that has to fail with a reply that begins so.
func (f *ftplib) refused(reply, method string, arguments ...any) {
	f.t.Helper()
	a := f.try(method, arguments...)
	if !strings.HasPrefix(a.Error, reply) {
		f.t.Fatalf("%s%q: %s %s, want %s", method, arguments, a.Error, a.Value, reply)
	}
}

// pairs calls a method for each move.
func (f *ftplib) pairs(method string, moves []move) {
	f.t.Helper()
	for _, m := range moves {
		f.must(method, m.from, m.to)
	}
}

func (f *ftplib) upload(files ...move) { f.t.Helper(); f.pairs("upload", files) }
