package control

import (
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

// An operation is a command that is running: what it asks of the storage, and what may end it.
type operation struct {
	engine.Operation
	command report.Command
	reads   bool // it is an event only if it has asked the storage for a change

	transfer   *transfer               // nil before it begins, and for a command without a data connection
	begins     chan struct{}           // receives once, when the client may get 150
	told       *report.Transfer        // what the observers know of it
	parameters wire.TransferParameters // what a transfer has taken

	cancel   context.CancelCauseFunc // of Context
	fileName string                  // that the client has given, as a reply repeats it
	renaming *renaming               // of RNFR, nil unless that was the command before

	ended bool // the observers have its outcome

	mu    sync.Mutex // a session that was cut does not wait for its command
	asked view.Note  // of the storage
}

// A transfer is a transfer command and its data connection.
type transfer struct {
	*dataconn.Transfer
	upload   bool
	listing  *list.Listing // nil for a file
	fileName string        // chosen by STOU, absolute
	address  string        // that PASV or EPSV has told the client, empty for an active data connection
}

// port returns the port of a passive data connection, and an empty text for an active one.
func (t *transfer) port() string { return t.address[strings.LastIndexByte(t.address, ':')+1:] }

// stop ends the command and its transfer for a reason. Any goroutine may call it.
func (op *operation) stop(cause error) {
	if op.transfer != nil {
		op.transfer.Stop(cause)
	}
	op.cancel(cause)
}

// starting returns the 150. It names the file, which STOU may have chosen (RFC 1123 4.1.2.9), and the size of a
// download. Clients look for "(4071 bytes)" behind the name, in every language.
func (op *operation) starting(id *identity, workingDirectory string) wire.Reply {
	t := op.transfer
	if t.fileName != "" {
		shown := id.nameCodec().EncodePath(t.fileName)
		if path.Dir(t.fileName) == workingDirectory {
			shown = id.nameCodec().EncodeName(workingDirectory, path.Base(t.fileName))
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

// replaces reports whether the command may replace a file.
func (op *operation) replaces() bool {
	switch op.command.Kind {
	case report.Upload:
		return op.command.Name != "STOU"
	case report.Rename, report.Copy:
		return true
	}
	return false
}

// note keeps what the command asks of the storage, for its outcome. The last thing counts, because a command may try
// several spellings of a name. Of a name that is missing in all of them the first one counts, which
// the client has sent.
func (op *operation) note(n view.Note) {
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.asked.Path == "" || !errors.Is(n.Err, fs.ErrNotExist) {
		op.asked = n
	}
}

// noted is what the command has asked of the storage. A command that was left running may still ask.
func (op *operation) noted() view.Note {
	op.mu.Lock()
	defer op.mu.Unlock()
	return op.asked
}
