package acceptance_test

import (
	"fmt"
	"strings"
	"testing"
)

// An lftp runs lftp(1). Each run uses one session.
type lftp struct {
	t     *testing.T
	setup string // commands
}

func newLftp(t *testing.T, s *site, w way) *lftp {
	l := &lftp{t: t}
	address, scheme := s.address, "ftp"
	if w.tls == "implicit" {
		address, scheme = s.implicit, "ftps"
	}
	l.setup = script(
		"set cmd:fail-exit yes",
		"set net:max-retries 1",
		"set net:timeout 30",
		"set xfer:log no",
		"set ssl:ca-file "+lftpQuote(s.ca),
		"set ftp:passive-mode "+map[string]string{"passive": "yes", "active": "no"}[w.data],
		"set ftp:ssl-force "+map[string]string{"plain": "no", "explicit": "yes", "implicit": "yes"}[w.tls],
		"set ftp:ssl-allow "+map[string]string{"plain": "no", "explicit": "yes", "implicit": "yes"}[w.tls],
		fmt.Sprintf("open --user alice@acme --password %s %s://%s", lftpQuote(password), scheme, address),
	)
	return l
}

// script returns commands, one per line.
func script(commands ...string) string { return strings.Join(commands, "\n") + "\n" }

// lftpQuote quotes a word for lftp.
func lftpQuote(word string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
}

// run gives commands to lftp.
func (l *lftp) run(commands ...string) {
	l.t.Helper()
	l.start(commands...).succeed()
}

func (l *lftp) start(commands ...string) *process {
	l.t.Helper()
	return launchWith(l.t, l.setup+script(commands...), command(l.t, "lftp"), "--norc")
}

// pairs runs a command for each move, with the given text between its names.
func (l *lftp) pairs(verb, between string, moves []move) {
	l.t.Helper()
	var commands []string
	for _, m := range moves {
		commands = append(commands, verb+" "+lftpQuote(m.from)+between+lftpQuote(m.to))
	}
	l.run(commands...)
}

func (l *lftp) upload(files ...move) { l.t.Helper(); l.pairs("put", " -o ", files) }
