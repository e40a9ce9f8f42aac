package driver

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/babelftp/babelftp/driver/internal/upload"
	"github.com/babelftp/babelftp/internal/base/s3error"
)

// A Writer is a file that is open for writing. Write and ReadFrom add bytes, and Close makes the complete file visible.
// Abort, which may be called while another method runs, ends the upload: the file system stays unchanged, and Close
// returns the cause. Stat describes the file as far as it is known, and after Close as S3 has stored it. Announce sets
// the size that the client has announced, before the first byte. Memory returns the size of the memory for the current
// part. After Close, Kept reports whether the upload was interrupted and its owner can resume it.
type Writer = upload.Writer

// An Inspection inspects the bytes of one file that is written. Its methods are called from one goroutine.
type Inspection = upload.Inspection

// OpenWriter opens a file for an upload that begins at offset. Canceling ctx stops the upload.
//
// With an offset, the object will have its first offset bytes, followed by the written bytes. The bytes after that
// stay, unless [Options.Truncate] is set. With os.O_APPEND, the written bytes follow all existing bytes. With
// os.O_TRUNC, or with offset 0, the object will have only the written bytes.
//
// One request checks the object if some of its bytes stay, if it must exist (without os.O_CREATE), or if it must not
// exist (os.O_EXCL). Otherwise the first request sends a part or is sent by Close.
//
// If an upload of the owner is pending, OpenWriter resumes it, and offset must be its size; otherwise the error is a
// [ResumeError]. If the file does not exist, os.O_APPEND also resumes an upload, but only if [Fs.PendingUpload] has
// reported it since this file system last opened the file for writing. If the file exists, OpenWriter appends to it
// even if an upload is pending. os.O_TRUNC starts again.
//
// If sum is not nil, Close publishes the file only if this is the SHA-256 of its bytes. Otherwise Close returns an
// error that wraps [s3error.ErrHashMismatch], and the file system stays unchanged. Such an upload is never kept for its
// owner. With an offset or os.O_APPEND, the error is errors.ErrUnsupported.
//
// If offset is beyond the end, the error is fs.ErrInvalid. OpenWriter does not check whether a directory with this name
// exists.
func (f *Fs) OpenWriter(
	ctx context.Context, name string, flag int, offset int64, sum *[sha256.Size]byte,
) (*Writer, error) {
	ctx = f.opts.withRetries(ctx)
	key, err := f.fileKey(ctx, name, offset)
	if errors.Is(err, fs.ErrNotExist) && flag&os.O_CREATE != 0 {
		err = syscall.EISDIR
	}
	if err == nil {
		err = f.changeable()
	}
	var w *Writer
	if err == nil {
		w, err = f.uploads.Open(ctx, name, key, flag, offset, sum)
	}
	if err != nil {
		return nil, s3error.PathError("open", name, err)
	}
	return w, nil
}

// Create opens a new file for an upload. The file gets the name object, but its attributes and its inspection depend on
// name. If the upload is interrupted, nothing remains. sum is the SHA-256 that the file must have, as in
// [Fs.OpenWriter], or nil.
func (f *Fs) Create(ctx context.Context, name, object string, sum *[sha256.Size]byte) (*Writer, error) {
	ctx = f.opts.withRetries(ctx)
	key, err := f.fileKey(ctx, object, 0)
	if err == nil {
		err = f.changeable()
	}
	var w *Writer
	if err == nil {
		w, err = f.uploads.Create(ctx, name, key, sum)
	}
	if err != nil {
		return nil, s3error.PathError("open", object, err)
	}
	return w, nil
}

// fileKey returns the key of a file that is opened at an offset. It returns an error for the name of a directory.
func (f *Fs) fileKey(ctx context.Context, name string, offset int64) (string, error) {
	key, err := f.keys.Key(name)
	switch {
	case err != nil:
	case f.keys.IsRoot(key):
		err = syscall.EISDIR
	case offset < 0:
		err = s3error.ErrInvalid
	default:
		err = f.refuseDirectory(ctx, name, key)
	}
	return key, err
}
