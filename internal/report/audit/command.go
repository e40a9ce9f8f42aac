package audit

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/babelftp/babelftp/internal/storage/view"
)

// The events that count for the totals of a login.
const (
	eventUpload   = "upload"
	eventDownload = "download"
)

// eventSetTime is the event of MFMT and of what clients send in its place. MDTM is among that where it changes a file.
const eventSetTime = "set_time"

// eventOf is the event of a command. It is empty for a command that changes nothing and sends no file.
func eventOf(verb, argument string) string {
	switch verb {
	case "STOR", "APPE", "STOU":
		return eventUpload
	case "RETR":
		return eventDownload
	case "DELE":
		return "delete"
	case "RNFR", "RNTO":
		return "rename"
	case "MKD", "XMKD":
		return "mkdir"
	case "RMD", "XRMD":
		return "rmdir"
	case "MFMT", "MFF":
		return eventSetTime
	case "SITE":
		service, _, _ := strings.Cut(argument, " ")
		switch strings.ToUpper(service) {
		case "COPY", "CPFR", "CPTO":
			return "copy"
		case "MKDIR":
			return "mkdir"
		case "RMDIR":
			return "rmdir"
		case "PRESIGN":
			return "presign"
		case "UTIME":
			return eventSetTime
		}
	}
	return ""
}

// Codes of replies (RFC 959 4.2).
const (
	codeStatus       = 211 // answers STAT during a transfer, not the transfer
	firstFailure     = 400
	codeIntermediate = 350 // RNFR and SITE CPFR: RNTO and SITE CPTO will tell
)

// A command is what the running command has asked of the storage.
type command struct {
	began time.Time
	bytes int64 // on the data connection

	mu sync.Mutex // a session that was cut does not wait for its command
	// of the last thing that it has asked, because it may try several spellings of a name
	note view.Note
}

// Began begins a command of who is logged in, and returns what gets its notes.
func (s *Session) Began() func(view.Note) {
	c := &command{began: time.Now()}
	s.command = c
	return func(n view.Note) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.note = n
	}
}

// Transferred tells how many bytes the data connection of the running command has carried.
func (s *Session) Transferred(bytes int64) {
	if s.command != nil {
		s.command.bytes = bytes
	}
}

// Replied ends a command by its reply, which is not a preliminary one, and writes its line.
func (s *Session) Replied(verb, argument string, code int) {
	event, c := eventOf(verb, argument), s.command
	if verb == "MDTM" && c != nil && c.touched() {
		event = eventSetTime
	}
	if event == "" || c == nil || s.login == nil || code == codeStatus || code == codeIntermediate {
		return
	}
	s.command = nil
	outcome := outcomeOK
	if code >= firstFailure {
		outcome = outcomeFailed
	}
	about := []any{"command", verb, "code", code, "duration_ms", time.Since(c.began).Milliseconds()}
	if event == eventUpload || event == eventDownload {
		about = append(about, "bytes", c.bytes)
		s.bytes[event] += c.bytes
		if outcome == outcomeOK {
			s.files[event]++
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.write(event, outcome, append(about, aboutFile(&c.note, outcome, argument)...)...)
}

// touched tells whether the command has asked the storage for a change.
func (c *command) touched() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.note.Path != ""
}

// aboutFile is what the storage knows of the command.
func aboutFile(n *view.Note, outcome, argument string) []any {
	if n.Path == "" { // refused before the storage was asked
		return []any{"argument", argument}
	}
	about := []any{"path", n.Path, "s3_uri", n.URI}
	if n.To != "" {
		about = append(about, "to_path", n.To, "to_s3_uri", n.ToURI)
	}
	if n.Offset > 0 {
		about = append(about, "offset", n.Offset)
	}
	if outcome == outcomeFailed {
		if n.Err != nil {
			about = append(about, "error", n.Err.Error())
		}
		if answer, ok := errors.AsType[interface {
			error
			ServiceRequestID() string
		}](n.Err); ok {
			about = append(about, "s3_request_id", answer.ServiceRequestID())
		}
		return about
	}
	if n.Upload == nil {
		return about
	}
	info, err := n.Upload.Stat()
	if err != nil {
		return about
	}
	about = append(about, "size", info.Size())
	stored, ok := info.(interface {
		ETag() string
		Checksum() string
		RequestID() string
	})
	if !ok {
		return about
	}
	for _, of := range []struct{ key, value string }{
		{"etag", strings.Trim(stored.ETag(), `"`)}, {"checksum", stored.Checksum()},
		{"s3_request_id", stored.RequestID()},
	} {
		if of.value != "" {
			about = append(about, of.key, of.value)
		}
	}
	return about
}
