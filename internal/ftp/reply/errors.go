package reply

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/base/contract"
	"github.com/babelftp/babelftp/internal/base/inspect"
	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/base/s3error"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/ftp/engine"
	"github.com/babelftp/babelftp/internal/ftp/list"
	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/storage/view"
	"github.com/babelftp/babelftp/internal/users/account"
)

// Errors maps errors to replies. The first row whose error is in the chain counts. The text of the error itself is
// only logged.
var Errors = []struct {
	Err  error
	Code int
	Text i18n.ID
}{
	{ErrNotAudited, 451, i18n.AuditUnavailable},
	{ErrNoDataConnection, 425, i18n.ActiveConnectionFailed},
	{engine.ErrCannotListen, 425, i18n.CommandFailed},
	{engine.ErrFailed, 421, i18n.InternalError},
	{engine.ErrUnexpected, 451, i18n.CommandFailed},
	{view.ErrNameDenied, 553, i18n.FileNameDenied},
	{view.ErrTooDeep, 553, i18n.TooDeep},
	{view.ErrPast, 550, i18n.VersionsReadOnly},
	{view.ErrFixed, 550, i18n.DirectoryFixed},
	{view.ErrOtherAccount, 550, i18n.MoveBetweenAccounts},
	{inspect.ErrRefused, 550, i18n.FileRefused},
	{inspect.ErrNotInspected, 451, i18n.FileNotChecked},
	{s3error.ErrHashMismatch, 550, i18n.HashMismatch},
	{pathname.ErrNotInEncoding, 501, i18n.NameNotUTF8},
	{list.ErrNotDirectory, 501, i18n.NotADirectory}, // RFC 3659 7.2.1
	{account.ErrPasswordTooShort, 550, i18n.PasswordTooShort},
	{account.ErrPasswordTooWeak, 550, i18n.PasswordTooWeak},
	{account.ErrPasswordElsewhere, 550, i18n.PasswordElsewhere},
	{account.ErrPasswordFixed, 550, i18n.PasswordFixed},
	{account.ErrPasswordNotStored, 451, i18n.CommandFailed},
	{dataconn.ErrAborted, 426, i18n.CommandAborted},
	{engine.ErrPastEnd, 554, i18n.RestartBeyondEnd}, // RFC 3659 5.3
	{ErrShuttingDown, 451, i18n.ShuttingDown},
	{dataconn.ErrDisconnected, 451, i18n.Disconnected},
	{syscall.EBUSY, 450, i18n.TooManyOperations},
	{fs.ErrNotExist, 550, i18n.NotFound},
	{s3error.ErrParentIsFile, 553, i18n.ParentIsFile},
	{s3error.ErrIsDirectory, 550, i18n.IsADirectory},
	{pathname.ErrInvisible, 553, i18n.NameInvisible},
	{syscall.EILSEQ, 553, i18n.NameNotStorable}, // after the three rows above, because their errors are EILSEQ too
	{syscall.ENAMETOOLONG, 553, i18n.NameTooLong},
	{syscall.ENOTEMPTY, 550, i18n.DirectoryNotEmpty}, // before fs.ErrExist, because ENOTEMPTY is fs.ErrExist too
	{syscall.ENOTDIR, 550, i18n.NotADirectory},
	{syscall.EISDIR, 550, i18n.IsADirectory},
	{fs.ErrExist, 550, i18n.AlreadyExists},
	{fs.ErrPermission, 550, i18n.PermissionDenied},
	{s3error.Archived, 550, i18n.FileArchived},
	{syscall.ENOSPC, 452, i18n.StorageFull},
	{syscall.EDQUOT, 552, i18n.QuotaExceeded},
	{syscall.EFBIG, 552, i18n.FileTooLarge},
	{syscall.ENXIO, 550, i18n.StorageMissing},
	{syscall.ESTALE, 451, i18n.FileChanged},
	{syscall.EAGAIN, 451, i18n.StorageUnavailable},
	{syscall.ETIMEDOUT, 451, i18n.StorageUnavailable},
	{context.DeadlineExceeded, 451, i18n.StorageUnavailable},
	{context.Canceled, 451, i18n.StorageUnavailable},
	{errors.ErrUnsupported, 550, i18n.NotSupported},
	{syscall.ELOOP, 550, i18n.DirectoryIntoItself},
}

// ErrShuttingDown reports a command that was canceled because the server shuts down.
var ErrShuttingDown = errors.New("the server is shutting down")

// ErrNotAudited reports a command that was refused because the audit log cannot record it.
var ErrNotAudited = errors.New("the audit log cannot be written, and audit.required refuses the command")

// ErrNoDataConnection reports a transfer whose data connection was not opened.
var ErrNoDataConnection = errors.New("no data connection")

// A NoDataConnectionError is an [ErrNoDataConnection] with its cause and port.
type NoDataConnectionError struct {
	Port string // port that the client did not connect to, empty in active mode
	Err  error
}

// Error returns the text for the log.
func (e *NoDataConnectionError) Error() string {
	return ErrNoDataConnection.Error() + ": " + e.Err.Error()
}

// Unwrap returns the kind and the cause.
func (e *NoDataConnectionError) Unwrap() []error { return []error{ErrNoDataConnection, e.Err} }

// A TransferError is the reason why a transfer was stopped or its data connection failed.
type TransferError struct {
	Err      error
	Unopened bool // the client got no reply 150
}

// Error returns the text for the log.
func (e *TransferError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *TransferError) Unwrap() error { return e.Err }

// ForTransfer returns the code and the message for a transfer that did not complete. err is the error of its data
// connection, or nil if that did not fail.
func ForTransfer(err error) (code int, id i18n.ID) {
	switch {
	case err == nil:
		return 451, i18n.CommandFailed
	case errors.Is(err, dataconn.ErrNotResumed):
		return 522, i18n.SessionReuseRequired
	case errors.Is(err, dataconn.ErrTLS):
		return 522, i18n.TLSFailed // RFC 4217 10.2
	case errors.Is(err, dataconn.ErrAborted):
		return 426, i18n.TransferAborted
	case errors.Is(err, dataconn.ErrDisconnected):
		return 426, i18n.Disconnected
	case errors.Is(err, ErrShuttingDown), errors.Is(err, context.Canceled): // the session ends
		return 426, i18n.ShuttingDown
	case errors.Is(err, dataconn.ErrStalled):
		return 426, i18n.TransferStalled
	case errors.Is(err, dataconn.ErrLost), errors.Is(err, dataconn.ErrPeerClosed):
		return 426, i18n.TransferInterrupted
	}
	return 426, i18n.SessionEnded // a ban has cut the session, or the user may no longer log in
}

// A CodeError is an error with a reply code that differs from the code in [Errors].
type CodeError struct {
	Code int
	Err  error
}

// Error returns the text for the log.
func (e *CodeError) Error() string { return e.Err.Error() }

// Unwrap returns the error that determines the text of the reply.
func (e *CodeError) Unwrap() error { return e.Err }

// A FileError is an error about one or two files, with the names to show in the reply.
type FileError struct {
	Names []string
	Err   error
}

// Error returns the text for the log, which already has the names.
func (e *FileError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *FileError) Unwrap() error { return e.Err }

// AboutFile reports whether a message describes the file named in the command, and not the storage, the user or
// the server.
func AboutFile(id i18n.ID) bool {
	return slices.Contains([]i18n.ID{
		i18n.NotFound, i18n.PermissionDenied, i18n.StorageDenied, i18n.DirectoryFixed, i18n.FileArchived,
		i18n.FileRestoring, i18n.VersionsReadOnly, i18n.NotADirectory, i18n.IsADirectory, i18n.ParentIsFile,
		i18n.DirectoryNotEmpty, i18n.AlreadyExists, i18n.OverwriteDenied, i18n.MoveBetweenAccounts,
		i18n.FileChanged, i18n.RestartBeyondEnd, i18n.ResumeChanged, i18n.ResumeElsewhere,
		i18n.DirectoryIntoItself, i18n.FileTooLarge, i18n.FileRefused, i18n.FileNotChecked, i18n.FileNameDenied,
		i18n.FileSizeLimit, i18n.HashMismatch,
		i18n.NameInvisible, i18n.NameReserved, i18n.NameNotStorable, i18n.NameTooLong, i18n.TooDeep, i18n.NotSupported,
		i18n.StorageError,
	}, id)
}

// MoveNames returns the names to show for an error of a rename or a copy. If the target exists or its name cannot
// be stored, that is the new name. Other errors may refer to either file, so both names are shown.
func MoveNames(from, to string, err error) []string {
	for _, kind := range []error{
		fs.ErrExist, syscall.ENOTDIR, syscall.EISDIR, syscall.EILSEQ, syscall.ENAMETOOLONG, view.ErrNameDenied,
		view.ErrPast, view.ErrFixed,
	} {
		if errors.Is(err, kind) {
			return []string{to}
		}
	}
	return []string{from, to}
}

// EntryNames returns the name of the entry if the error concerns an entry of the directory names[0]. Otherwise it
// returns names.
func EntryNames(codec pathname.Codec, names []string, err error) []string {
	entry, ok := errors.AsType[*s3error.EntryError](err)
	if !ok {
		return names
	}
	return []string{strings.TrimSuffix(names[0], "/") + codec.EncodePath("/"+entry.Name)}
}

// ForError returns the code and the message for an error. The code of unknown errors is 550.
func ForError(err error) (code int, id i18n.ID, args []string) {
	if transfer, ok := errors.AsType[*TransferError](err); ok {
		code, id = ForTransfer(transfer.Err)
		if transfer.Unopened && code == 426 && !errors.Is(transfer.Err, dataconn.ErrAborted) {
			code = 425
		}
		return code, id, nil
	}
	if missing, ok := errors.AsType[*NoDataConnectionError](err); ok && missing.Port != "" {
		return 425, i18n.PassiveConnectionMissing, []string{missing.Port}
	}
	code, id = 550, i18n.StorageError
	for _, row := range Errors {
		if errors.Is(err, row.Err) {
			code, id = row.Code, row.Text
			break
		}
	}
	switch id {
	case i18n.TooDeep:
		args = []string{strconv.Itoa(view.MaxLevels)}
	case i18n.PasswordTooShort:
		args = []string{strconv.Itoa(account.MinPassword)}
	}
	if _, ok := errors.AsType[*s3error.EntryError](err); ok && id == i18n.DirectoryNotEmpty {
		id = i18n.AlreadyExists // a file in the new directory exists
	}
	if reserved, ok := errors.AsType[*s3error.ReservedError](err); ok {
		id, args = i18n.NameReserved, []string{reserved.Segment}
	}
	if id == i18n.PermissionDenied && refusedByStorage(err) {
		id = i18n.StorageDenied
	}
	if reached, ok := errors.AsType[*limits.Error](err); ok {
		id = forLimit(reached)
	}
	_, tooLarge := errors.AsType[*view.SizeError](err)
	if _, tooMany := errors.AsType[contract.PartsError](err); tooLarge || tooMany {
		id = i18n.FileSizeLimit // Locale.ForError sets its argument
	}
	if pending, ok := errors.AsType[contract.PendingError](err); ok {
		code, id, args = 554, i18n.ResumeElsewhere, []string{strconv.FormatInt(pending.ResumeOffset(), 10)}
		if pending.FileChanged() {
			id, args = i18n.ResumeChanged, nil
		}
	}
	if _, ok := errors.AsType[contract.RestoringError](err); ok {
		code, id = 450, i18n.FileRestoring // Locale.ForError sets its argument
	}
	if name, ok := errors.AsType[*pathname.EncodingError](err); ok && !name.Encoding.UTF8() {
		id, args = i18n.NameNotInCharset, []string{name.Encoding.DisplayName()}
	}
	if other, ok := errors.AsType[*CodeError](err); ok {
		code = other.Code
	}
	return code, id, args
}

// ForError returns the code and the message for an error, with arguments formatted for the language and the time zone
// of the session.
func (l *Locale) ForError(err error) (code int, id i18n.ID, args []string) {
	code, id, args = ForError(err)
	if large, ok := errors.AsType[*view.SizeError](err); ok && id == i18n.FileSizeLimit {
		args = []string{l.Size(large.Limit)}
	}
	if large, ok := errors.AsType[contract.PartsError](err); ok && id == i18n.FileSizeLimit {
		args = []string{l.partsLimit(large)}
	}
	if restoring, ok := errors.AsType[contract.RestoringError](err); ok && id == i18n.FileRestoring {
		args = []string{l.Time(restoring.ReadyAt())}
	}
	return code, id, args
}

// refusedByStorage reports whether S3 has denied access to the server, rather than the server to the user.
func refusedByStorage(err error) bool {
	response, ok := errors.AsType[*s3error.Error](err)
	return ok && errors.Is(response, fs.ErrPermission)
}

// forLimit returns the message for a command that was refused by a limit or ended with its session, whose last
// reply has the reason.
func forLimit(reached *limits.Error) i18n.ID {
	switch {
	case slices.Contains([]string{limits.Bans, limits.UserDisabled, limits.UserExpired}, reached.Limit):
		return i18n.SessionEnded
	case strings.HasSuffix(reached.Limit, limits.CommandRate):
		return i18n.TooManyCommands
	}
	return i18n.TooManyOperations
}

// ForRefusal returns the message for a connection or a login that was refused by a limit, a ban or a network rule.
func ForRefusal(err error) i18n.ID {
	if reached, ok := errors.AsType[*limits.Error](err); ok {
		switch {
		case reached.Limit == limits.Bans, strings.HasSuffix(reached.Limit, limits.LoginRate):
			return i18n.LoginUnavailable
		case reached.Limit == limits.Deny:
			return i18n.AddressRefused
		case reached.Limit == limits.LoginTimeout:
			return i18n.LoginTimeout
		case reached.Limit == limits.UserDisabled:
			return i18n.UserDisabled
		case reached.Limit == limits.UserExpired:
			return i18n.UserExpired
		case reached.Limit == limits.AddressSessions:
			return i18n.TooManySessionsAddress
		case reached.Limit == limits.UserSessions:
			return i18n.TooManySessionsUser
		}
	}
	return i18n.TooManySessions
}
