package driver

import (
	"errors"
	"io"
	"io/fs"
	"iter"
	"strings"
	"syscall"
	"time"

	"github.com/babelftp/babelftp/driver/internal/attributes"
	"github.com/babelftp/babelftp/driver/internal/fileinfo"
	"github.com/babelftp/babelftp/driver/internal/keys"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3errors"
)

// ReadDirSeq lists a directory in the order of its keys, which is by bytes and counts a directory's final slash. It takes one
// request for each 1,000 entries. The first is made before it returns, so that a missing directory is an error here; each other
// while the loop over the sequence reads the entries of the page before; where S3 is far away more at once, and some for nothing: also
// along with the first, for a directory that was listed before. A few pages are held at a time, and where many directories are listed at
// once, small ones, which takes more requests. The first page is asked for again if nobody reads it for some seconds. The sequence is for
// one loop.
//
// A file and a directory of one name are both listed. A directory's modification time is zero.
func (f *Fs) ReadDirSeq(name string) (iter.Seq2[fs.FileInfo, error], error) {
	key, err := f.keys.Key(name)
	if err != nil {
		return nil, s3errors.PathError("readdir", name, err)
	}
	in := f.listing(key)
	at := f.route.writes.Now()
	room := &pageRoom{memory: &f.memory.Listings}
	var recalled *ahead
	if in.Limit = room.take(); in.Limit == 0 {
		recalled = f.recall(in, room)
	}
	giveUp := func() {
		if recalled != nil {
			recalled.close()
		}
		room.release()
	}
	first, err := f.firstPage(key, in)
	if err != nil {
		giveUp()
		return nil, s3errors.PathError("readdir", name, err)
	}
	unwanted := time.AfterFunc(unreadTime, func() {
		first = nil // for the garbage collector, which else would leave it to the session
		giveUp()
	})
	var entries iter.Seq2[fs.FileInfo, error] = func(yield func(fs.FileInfo, error) bool) {
		pages := f.pages(in)
		if unwanted.Stop() {
			a := recalled
			if a == nil {
				a = newAhead(f, in, room)
			}
			pages, first = a.pages(first), nil // which else would be held as long as the others are read
		}
		for page, err := range pages {
			if err != nil {
				yield(nil, s3errors.PathError("readdir", name, err))
				return
			}
			for info := range f.entries(in.Prefix, page) {
				if !yield(info, nil) {
					return
				}
			}
		}
	}
	if f.opts.Objects.ListSetTimes {
		entries = f.withSetTimes(entries)
	}
	return f.opts.Seen.listed(f, entries, at), nil
}

// listing is how a directory is listed.
func (f *Fs) listing(key string) s3api.Listing {
	return s3api.Listing{Prefix: f.keys.Directory(key), Delimiter: keys.Separator}
}

// firstPage asks for the first page of a directory's listing. No directory but the root may be empty.
func (f *Fs) firstPage(key string, in s3api.Listing) (*s3api.Page, error) {
	first, err := f.bucket.List(f.ctx, in)
	if err == nil && first.Empty() && !f.keys.IsRoot(key) {
		err = fs.ErrNotExist
	}
	return first, err
}

// pages asks for all pages of a listing, the first of which nobody has read in time.
func (f *Fs) pages(in s3api.Listing) iter.Seq2[*s3api.Page, error] {
	return func(yield func(*s3api.Page, error) bool) {
		room := &pageRoom{memory: &f.memory.Listings}
		in.Limit = room.take()
		first, err := f.bucket.List(f.ctx, in)
		if err != nil {
			room.release()
			yield(nil, err)
			return
		}
		newAhead(f, in, room).pages(first)(yield)
	}
}

// entries merges the files and the directories of a page of the directory with the given prefix. It leaves out the directory's
// own marker and what no pathname can name.
func (f *Fs) entries(prefix string, p *s3api.Page) iter.Seq[*fileinfo.Info] {
	return func(yield func(*fileinfo.Info) bool) {
		files, directories := p.Versions, p.Prefixes
		for len(files) > 0 || len(directories) > 0 {
			var key, name string
			var info *fileinfo.Info
			if len(directories) == 0 || len(files) > 0 && files[0].Key < directories[0] {
				key = files[0].Key
				name = key[len(prefix):]
				info = fileinfo.New(name, &files[0], &attributes.Attributes{})
				files = files[1:]
			} else {
				key = directories[0]
				name = strings.TrimSuffix(key[len(prefix):], keys.Separator)
				info = fileinfo.NewDir(name, key, time.Time{})
				directories = directories[1:]
			}
			switch {
			case key == prefix: // the marker of the directory itself
			case !keys.Representable(name):
				f.log.Debug("key without a pathname left out of a listing", "bucket", f.bucket.Name, "key", key)
			case !yield(info):
				return
			}
		}
	}
}

// A lister is a directory open for Readdir and Readdirnames.
type lister struct {
	handle
	info    *fileinfo.Info
	entries iter.Seq2[fs.FileInfo, error]
	next    func() (fs.FileInfo, error, bool) // nil until the first entry is asked for
	stop    func()
}

func (f *Fs) openDirectory(name, key string) (*lister, error) {
	entries, err := f.ReadDirSeq(name)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	info := fileinfo.NewDir(f.keys.Base(key), f.keys.Directory(key), time.Time{})
	return &lister{handle: handle{name: name, kind: syscall.EISDIR}, info: info, entries: entries}, nil
}

// Stat describes the directory as it was opened.
func (d *lister) Stat() (fs.FileInfo, error) { return d.info, nil }

// Readdir returns the next count entries, and io.EOF after the last; a count of 0 or less stands for all that are left, without
// an io.EOF. A listing is in the order of [Fs.ReadDirSeq].
func (d *lister) Readdir(count int) ([]fs.FileInfo, error) {
	if d.closed {
		return nil, s3errors.PathError("readdir", d.name, fs.ErrClosed)
	}
	if d.next == nil {
		d.next, d.stop = iter.Pull2(d.entries)
	}
	infos := []fs.FileInfo{}
	for count <= 0 || len(infos) < count {
		info, err, more := d.next()
		if err != nil {
			return infos, err
		}
		if !more {
			if count > 0 && len(infos) == 0 {
				return infos, io.EOF
			}
			break
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// Readdirnames is Readdir for the names alone.
func (d *lister) Readdirnames(count int) ([]string, error) {
	infos, err := d.Readdir(count)
	names := make([]string, len(infos))
	for i, info := range infos {
		names[i] = info.Name()
	}
	return names, err
}

// Close ends the listing.
func (d *lister) Close() error {
	if d.closed {
		return s3errors.PathError("close", d.name, fs.ErrClosed)
	}
	d.closed = true
	if d.stop != nil {
		d.stop()
	}
	return nil
}
