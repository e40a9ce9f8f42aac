package audit

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/afero"

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

	mu       sync.Mutex // a session that was cut does not wait for its command
	path, to string
	offset   int64
	upload   afero.File // nil for what is none
	err      error
}

// Storage begins a command with its storage. The command asks only the returned one.
func (s *Session) Storage(storage view.ObjectStorage) view.ObjectStorage {
	s.command = &command{began: time.Now()}
	return &recorder{ObjectStorage: storage, command: s.command}
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
	s.write(event, outcome, append(about, c.about(s.login.ObjectURI, outcome, argument)...)...)
}

// touched tells whether the command has asked the storage for a change.
func (c *command) touched() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.path != ""
}

// about is what the storage knows of the command.
func (c *command) about(uri func(string) string, outcome, argument string) []any {
	if c.path == "" { // refused before the storage was asked
		return []any{"argument", argument}
	}
	about := []any{"path", c.path}
	if uri != nil {
		about = append(about, "s3_uri", uri(c.path))
	}
	if c.to != "" {
		about = append(about, "to_path", c.to)
		if uri != nil {
			about = append(about, "to_s3_uri", uri(c.to))
		}
	}
	if c.offset > 0 {
		about = append(about, "offset", c.offset)
	}
	if outcome == outcomeFailed {
		if c.err != nil {
			about = append(about, "error", c.err.Error())
		}
		if answer, ok := errors.AsType[interface {
			error
			ServiceRequestID() string
		}](c.err); ok {
			about = append(about, "s3_request_id", answer.ServiceRequestID())
		}
		return about
	}
	if c.upload == nil {
		return about
	}
	info, err := c.upload.Stat()
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

// A recorder notes in a command which files it touches.
type recorder struct {
	view.ObjectStorage
	command *command
}

// note keeps the names of an operation, and its error. A command that tries several spellings of a name keeps the last.
func (r *recorder) note(path, to string, err error) error {
	r.command.mu.Lock()
	defer r.command.mu.Unlock()
	r.command.path, r.command.to, r.command.err = path, to, err
	return err
}

func (r *recorder) OpenAt(name string, flag int, offset int64) (afero.File, error) {
	file, err := r.ObjectStorage.OpenAt(name, flag, offset)
	_ = r.note(name, "", err)
	if err == nil {
		r.command.mu.Lock()
		defer r.command.mu.Unlock()
		r.command.offset = offset
		if flag&(os.O_WRONLY|os.O_RDWR) != 0 {
			r.command.upload = file
		}
	}
	return file, err
}

func (r *recorder) Mkdir(name string, mode os.FileMode) error {
	return r.note(name, "", r.ObjectStorage.Mkdir(name, mode))
}

func (r *recorder) MkdirAll(name string, mode os.FileMode) error {
	return r.note(name, "", r.ObjectStorage.MkdirAll(name, mode))
}

func (r *recorder) RemoveFile(name string) error {
	return r.note(name, "", r.ObjectStorage.RemoveFile(name))
}

func (r *recorder) RemoveDir(name string) error {
	return r.note(name, "", r.ObjectStorage.RemoveDir(name))
}

func (r *recorder) RemoveAll(name string) error {
	return r.note(name, "", r.ObjectStorage.RemoveAll(name))
}

func (r *recorder) Rename(oldname, newname string) error {
	return r.note(oldname, newname, r.ObjectStorage.Rename(oldname, newname))
}

func (r *recorder) Copy(ctx context.Context, oldname, newname string) error {
	return r.note(oldname, newname, r.ObjectStorage.Copy(ctx, oldname, newname))
}

func (r *recorder) Chtimes(name string, atime, mtime time.Time) error {
	return r.note(name, "", r.ObjectStorage.Chtimes(name, atime, mtime))
}
