package engine

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/babelftp/babelftp/internal/base/panics"
	"github.com/babelftp/babelftp/internal/ftp/dataconn"
	"github.com/babelftp/babelftp/internal/storage/view"
)

// A transferFile is the open file of a transfer. Its ReadFrom and WriteTo methods let the storage copy the data
// itself.
type transferFile struct {
	File
	op       *Operation
	upload   view.Writer // nil for a download
	download view.Reader // nil for an upload
	sent     io.Reader   // the part of the file to download
	failed   bool
}

// open opens the file of a transfer. The flags distinguish STOR and APPE. After REST, STOR does not truncate the
// file (RFC 3659, 5.3).
func (o *Operation) open(flags int) (*transferFile, error) {
	file := &transferFile{op: o}
	err := o.Do(func() (err error) {
		if flags&os.O_CREATE == 0 {
			err = file.openReader()
		} else {
			err = file.openWriter(flags)
		}
		if o.Offset > 0 && errors.Is(err, fs.ErrInvalid) {
			err = errors.Join(ErrPastEnd, err)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	o.File = file.File
	o.Transfer.Opened(file.Abort)
	return file, nil
}

func (f *transferFile) openReader() error {
	o := f.op
	err := o.Lookup(o.Name, func(name string) (err error) {
		f.download, err = o.Storage.OpenReader(name, o.Offset)
		return err
	})
	if err != nil {
		return err
	}
	f.File, f.sent = f.download, f.download
	if o.Count > 0 {
		f.sent = io.LimitReader(f.download, o.Count)
	}
	if info, err := f.download.Stat(); err == nil { // needs no request, because the file is open
		size := max(0, info.Size()-o.Offset)
		if o.Count > 0 {
			size = min(size, o.Count)
		}
		o.Transfer.SetSize(size)
	}
	return nil
}

func (f *transferFile) openWriter(flags int) error {
	o := f.op
	name, err := o.ResolveForCreate(o.Name, o.hasFile)
	if err != nil {
		return err
	}
	if o.Offset > 0 {
		flags &^= os.O_TRUNC
	}
	if f.upload, err = o.Storage.OpenWriter(name, flags, o.Offset); err != nil {
		return err
	}
	f.File, o.Transfer.Memory = f.upload, f.upload.Memory
	if o.Announced > 0 {
		f.upload.Announce(o.Announced)
	}
	return nil
}

// Seek does nothing, because the file was opened at the offset.
func (f *transferFile) Seek(offset int64, _ int) (int64, error) { return offset, nil }

// Write is called by the library without data after an empty upload.
func (f *transferFile) Write(b []byte) (n int, err error) {
	err = f.op.Do(func() (err error) {
		n, err = f.upload.Write(b)
		return err
	})
	return n, err
}

// asciiRead is the buffer size for the ASCII conversion of the library, which panics if its buffer is smaller than
// two bytes, and returns nothing if it has exactly two (asciiconverter.go:41).
const asciiRead = 32 << 10

// ReadFrom uploads the data from r, which is the data connection or the ASCII conversion of the library.
func (f *transferFile) ReadFrom(r io.Reader) (n int64, err error) {
	if _, direct := r.(*dataconn.Conn); !direct {
		r = struct{ io.Reader }{bufio.NewReaderSize(r, asciiRead)} // hides WriteTo, which would pass its own reader
	}
	err = f.op.Do(func() (err error) {
		n, err = io.Copy(f.upload, r)
		return err
	})
	return n, err
}

// WriteTo downloads the file to w.
func (f *transferFile) WriteTo(w io.Writer) (n int64, err error) {
	err = f.op.Do(func() (err error) {
		n, err = io.Copy(w, f.sent)
		return err
	})
	return n, err
}

// Read downloads the file in TYPE A, in which the library converts the data. Do records the error, because the
// conversion drops an error that follows an incomplete line.
func (f *transferFile) Read(b []byte) (n int, err error) {
	ended := false
	err = f.op.Do(func() error {
		n, err = f.sent.Read(b)
		if ended = errors.Is(err, io.EOF); ended {
			return nil
		}
		return err
	})
	if ended {
		err = io.EOF
	}
	return n, err
}

// TransferError is called before Close if the transfer has failed.
func (f *transferFile) TransferError(err error) {
	f.failed = true
	f.op.Transfer.Break()
	f.Abort(err)
}

// Close commits an upload unless the transfer has failed.
func (f *transferFile) Close() error {
	err := panics.Catch(f.File.Close)
	_, bug := errors.AsType[*panics.Error](err)
	if f.upload != nil {
		f.op.Kept.Store(f.upload.Kept())
	}
	commits := f.upload != nil && !f.failed
	switch {
	case bug, commits && err != nil:
		_ = f.op.Do(func() error { return err })
	case commits:
		f.op.Transfer.Stored()
	}
	return err
}
