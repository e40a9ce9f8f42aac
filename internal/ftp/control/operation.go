package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/ftp/engine"
	"github.com/babelftp/babelftp/internal/ftp/list"
	"github.com/babelftp/babelftp/internal/ftp/wire"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/storage/view"
)

// An operation is a running command.
type operation struct {
	engine.Operation
	command report.Command
	reads   bool // reported as a change only if it has changed the storage

	data       *dataTransfer           // nil until the transfer begins, and for commands without a data connection
	started    chan struct{}           // receives once, when 150 may be sent
	reported   *report.Transfer        // the transfer as reported to the observers
	parameters wire.TransferParameters // parameters taken by a transfer

	cancel   context.CancelCauseFunc // cancels Context
	fileName string                  // name sent by the client, as shown in replies
	renaming *renaming               // source of RNFR, nil unless RNFR was the previous command

	ended bool // the outcome was reported

	mu       sync.Mutex // guards lastNote; a session that was cut does not wait for its command
	lastNote view.Note  // last storage request
}

// A dataTransfer is the transfer and data connection of a command.
type dataTransfer struct {
	*dataconn.Transfer
	upload   bool
	listing  *list.Listing // nil for a file
	fileName string        // chosen by STOU, absolute
	address  string        // sent by PASV or EPSV; empty for an active data connection
}

// port returns the port of a passive data connection, or an empty string if it is active.
func (t *dataTransfer) port() string { return t.address[strings.LastIndexByte(t.address, ':')+1:] }

// stop ends the command and its transfer with a cause. Any goroutine may call it.
func (op *operation) stop(cause error) {
	if op.data != nil {
		op.data.Stop(cause)
	}
	op.cancel(cause)
}

// startReply returns reply 150. It names the file, whose name STOU or objects.rules may have chosen (RFC 1123,
// 4.1.2.9), and the size of a download. Clients in every language parse "(4071 bytes)" after the name.
func (op *operation) startReply(id *identity, workingDirectory string) wire.Reply {
	t := op.data
	if t.fileName != "" {
		name := cmp.Or(op.recordedNote().Object, t.fileName)
		shown := id.nameCodec().EncodePath(name)
		if path.Dir(name) == workingDirectory {
			shown = id.nameCodec().EncodeName(workingDirectory, path.Base(name))
		}
		return wire.NewReply(150, "FILE: "+shown)
	}
	if t.listing != nil || op.fileName == "" {
		return wire.NewReply(150, id.text(i18n.TransferStarting))
	}
	text := id.locale.TextFor(i18n.TransferFileStarting, op.fileName)
	if whole := !t.upload && !op.ASCII && op.Offset == 0 && op.Count == 0; whole && op.File != nil {
		if info, err := op.File.Stat(); err == nil {
			text += id.locale.Field(fmt.Sprintf("(%d bytes)", info.Size()))
		}
	}
	return wire.NewReply(150, text)
}

// replaces reports whether the command may overwrite a file.
func (op *operation) replaces() bool {
	switch op.command.Kind {
	case report.Upload:
		return op.command.Name != "STOU"
	case report.Rename, report.Copy:
		return true
	}
	return false
}

// note records a storage request for the outcome of the command. The last request counts, because a command may
// try several spellings of a name. If no spelling exists, the first one counts, because the client sent it.
func (op *operation) note(n view.Note) {
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.lastNote.Path == "" || !errors.Is(n.Err, fs.ErrNotExist) {
		op.lastNote = n
	}
}

// recordedNote returns the recorded storage request. A command that was left running may still add requests.
func (op *operation) recordedNote() view.Note {
	op.mu.Lock()
	defer op.mu.Unlock()
	return op.lastNote
}
