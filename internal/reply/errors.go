package reply

import (
	"context"
	"errors"
	"io/fs"
	"strconv"
	"syscall"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/charset"
	"github.com/babelftp/babelftp/internal/dataconn"
	"github.com/babelftp/babelftp/internal/engine"
	"github.com/babelftp/babelftp/internal/ftplist"
	"github.com/babelftp/babelftp/internal/limits"
	"github.com/babelftp/babelftp/internal/pathname"
)

// An ErrorRow says how an error of the storage is answered. The error's own text
// goes to the log only.
type ErrorRow struct {
	Err  error
	Code int
	Text i18n.ID
}

// Errors are the rows. The first one whose error is in the chain counts.
func Errors() []ErrorRow {
	return []ErrorRow{
		{charset.ErrInvalid, 501, i18n.NameNotUTF8},
		{ftplist.ErrNotDirectory, 501, i18n.NotADirectory}, // RFC 3659 7.2.1
		{dataconn.ErrAborted, 426, i18n.TransferAborted},
		{engine.ErrPastEnd, 554, i18n.RestartBeyondEnd}, // RFC 3659 5.3
		{limits.ErrTooLong, 451, i18n.CommandTimeout},
		{syscall.EBUSY, 450, i18n.TooManyOperations},
		{fs.ErrNotExist, 550, i18n.NotFound},
		{syscall.EILSEQ, 553, i18n.NameNotAllowed},
		{syscall.ENAMETOOLONG, 553, i18n.NameTooLong},
		{syscall.ENOTEMPTY, 550, i18n.DirectoryNotEmpty}, // before fs.ErrExist, which it is too
		{syscall.ENOTDIR, 550, i18n.NotADirectory},
		{syscall.EISDIR, 550, i18n.IsADirectory},
		{fs.ErrExist, 550, i18n.AlreadyExists},
		{fs.ErrPermission, 550, i18n.PermissionDenied},
		{syscall.ENODATA, 550, i18n.FileArchived},
		{syscall.ENOSPC, 452, i18n.StorageFull},
		{syscall.EDQUOT, 552, i18n.QuotaExceeded},
		{syscall.EFBIG, 552, i18n.StorageFull},
		{syscall.ENXIO, 550, i18n.StorageMissing},
		{syscall.ESTALE, 451, i18n.FileChanged},
		{syscall.EAGAIN, 451, i18n.StorageUnavailable},
		{syscall.ETIMEDOUT, 451, i18n.StorageUnavailable},
		{context.DeadlineExceeded, 451, i18n.StorageUnavailable},
		{context.Canceled, 451, i18n.StorageUnavailable},
		{errors.ErrUnsupported, 550, i18n.NotSupported},
		{fs.ErrInvalid, 550, i18n.ArgumentInvalid},
		{syscall.EINVAL, 550, i18n.ArgumentInvalid},
	}
}

// ForTransfer is the code and the message for a transfer that did not complete, by the
// error of its data connection. The error is nil where that connection did not fail.
func ForTransfer(err error, upload bool) (code int, id i18n.ID) {
	switch {
	case errors.Is(err, dataconn.ErrNotResumed):
		return 522, i18n.SessionReuseRequired
	case errors.Is(err, dataconn.ErrTLS):
		return 522, i18n.TLSFailed // RFC 4217 10.2
	case errors.Is(err, dataconn.ErrAborted):
		return 426, i18n.TransferAborted
	case errors.Is(err, limits.ErrTooLong):
		return 426, i18n.CommandTimeout
	case errors.Is(err, dataconn.ErrStalled):
		return 426, i18n.TransferStalled
	case err != nil && upload:
		return 426, i18n.TransferBroken
	}
	return 426, i18n.TransferInterrupted
}

// ForError is the code and the message for an error. Errors that no row knows are
// 550.
func ForError(err error) (code int, id i18n.ID, args []string) {
	code, id = 550, i18n.StorageError
	for _, row := range Errors() {
		if errors.Is(err, row.Err) {
			code, id = row.Code, row.Text
			break
		}
	}
	if pending, ok := errors.AsType[interface {
		error
		ResumeOffset() int64
		FileStored() bool
	}](err); ok {
		code, id, args = 554, i18n.ResumeElsewhere, []string{strconv.FormatInt(pending.ResumeOffset(), 10)}
		if pending.FileStored() {
			id = i18n.ResumeComplete
		}
	}
	if name, ok := errors.AsType[*pathname.EncodingError](err); ok && !name.Encoding.UTF8() {
		id, args = i18n.NameNotInCharset, []string{name.Encoding.DisplayName()}
	}
	return code, id, args
}

// ForRefusal is the message for a connection or a login that a limit, a ban or a network refuses.
func ForRefusal(err error) i18n.ID {
	if reached, ok := errors.AsType[*limits.Error](err); ok {
		switch reached.Limit {
		case limits.Bans:
			return i18n.LoginUnavailable
		case limits.Deny:
			return i18n.PermissionDenied
		}
	}
	return i18n.TooManySessions
}

// HashCode is the code for an error of HASH (draft-ietf-ftpext2-hash 3.5), which has other codes than the rest for some.
func HashCode(err error, code int) int {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return 552
	case errors.Is(err, syscall.EISDIR):
		return 553
	}
	return code
}
