package driver

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"net/url"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// ReadDirSeq lists a directory in the order of its keys, which is by bytes and counts a directory's final slash. It takes one
// request for each 1,000 entries. The first is made before it returns, so that a missing directory is an error here; each other
// when the loop over the sequence gets there, so that one page is held at a time. The sequence is for one loop.
//
// A file and a directory of one name are both listed. A directory's modification time is zero.
func (f *Fs) ReadDirSeq(name string) (iter.Seq2[fs.FileInfo, error], error) {
	key, err := f.keys.key(name)
	if err != nil {
		return nil, pathError("readdir", name, err)
	}
	in := listing{prefix: f.keys.directory(key), delimiter: separator}
	page, err := f.bucket.list(f.ctx, in)
	if err == nil && page.empty() && !f.keys.isRoot(key) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, pathError("readdir", name, err)
	}
	entries := func(yield func(fs.FileInfo, error) bool) {
		for {
			for info := range f.entries(in.prefix, page) {
				if !yield(info, nil) {
					return
				}
			}
			if page.next == "" {
				return
			}
			in.token = page.next
			if page, err = f.bucket.list(f.ctx, in); err != nil {
				yield(nil, pathError("readdir", name, err))
				return
			}
		}
	}
	if f.opts.Objects.ListSetTimes {
		return f.withSetTimes(entries), nil
	}
	return entries, nil
}

// entries merges the files and the directories of a page of the directory with the given prefix. It leaves out the directory's
// own marker and what no pathname can name.
func (f *Fs) entries(prefix string, p *page) iter.Seq[*fileInfo] {
	return func(yield func(*fileInfo) bool) {
		files, directories := p.versions, p.prefixes
		for len(files) > 0 || len(directories) > 0 {
			var key, name string
			var info *fileInfo
			if len(directories) == 0 || len(files) > 0 && files[0].key < directories[0] {
				key = files[0].key
				name = key[len(prefix):]
				info = file(name, &files[0], &attributes{})
				files = files[1:]
			} else {
				key = directories[0]
				name = strings.TrimSuffix(key[len(prefix):], separator)
				info = directory(name, key, time.Time{})
				directories = directories[1:]
			}
			switch {
			case key == prefix: // the marker of the directory itself
			case !nameable(name):
				f.log.Debug("key without a pathname left out of a listing", "bucket", f.bucket.name, "key", key)
			case !yield(info):
				return
			}
		}
	}
}

// A listing is what to ask ListObjectsV2 for.
type listing struct {
	prefix    string
	delimiter string
	limit     int32  // keys and prefixes in a page, S3's own 1,000 when 0
	token     string // of the page before, empty for the first
}

// A page is an answer to a listing, with keys and prefixes in order.
type page struct {
	versions   []version
	prefixes   []string
	unreadable int    // keys that the server could not write
	next       string // token of the page that follows, empty when there is none
}

// empty tells whether nothing at all has the prefix that was asked for.
func (p *page) empty() bool {
	return len(p.versions) == 0 && len(p.prefixes) == 0 && p.unreadable == 0 && p.next == ""
}

// list asks for one page.
//
// Answers are XML, which cannot hold most control characters, so keys are asked for in percent-encoding. A server that does not
// know of it, versitygw, writes U+FFFD in place of such a character. The key is then unknown, and is not shown under a name
// that belongs to another.
func (b *bucket) list(ctx context.Context, l listing) (*page, error) {
	in := &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: &l.prefix, EncodingType: types.EncodingTypeUrl}
	if l.delimiter != "" {
		in.Delimiter = &l.delimiter
	}
	if l.limit > 0 {
		in.MaxKeys = &l.limit
	}
	if l.token != "" {
		in.ContinuationToken = &l.token
	}
	out, err := b.client.ListObjectsV2(ctx, in, repeatable)
	if err != nil {
		return nil, fromS3(err)
	}
	if out.Name == nil && out.IsTruncated == nil && len(out.Contents)+len(out.CommonPrefixes) == 0 {
		return nil, fromS3(errNoResult) // and not an empty directory
	}
	p := &page{versions: make([]version, 0, len(out.Contents)), prefixes: make([]string, 0, len(out.CommonPrefixes))}
	if aws.ToBool(out.IsTruncated) {
		p.next = aws.ToString(out.NextContinuationToken)
		if p.next == "" || p.next == l.token {
			return nil, fault(syscall.EIO, "listing goes on without a new continuation token")
		}
	}
	decode := func(encoded *string) (key string, ok bool) {
		key, ok = aws.ToString(encoded), true
		if out.EncodingType != types.EncodingTypeUrl {
			ok = !strings.ContainsRune(key, utf8.RuneError)
		} else if key, err = url.QueryUnescape(key); err != nil {
			ok = false
		}
		return key, ok && strings.HasPrefix(key, l.prefix)
	}
	for _, o := range out.Contents {
		if key, ok := decode(o.Key); ok {
			p.versions = append(p.versions, version{
				bucket: b, key: key, size: aws.ToInt64(o.Size), modTime: aws.ToTime(o.LastModified),
				etag: aws.ToString(o.ETag), class: types.StorageClass(o.StorageClass),
			})
		} else {
			p.unreadable++
		}
	}
	for _, o := range out.CommonPrefixes {
		if prefix, ok := decode(o.Prefix); ok {
			p.prefixes = append(p.prefixes, prefix)
		} else {
			p.unreadable++
		}
	}
	return p, nil
}

// walk lists every object whose key starts with prefix, in the order of the keys. Where one cannot be read, because the server
// cannot write its key, it ends with EILSEQ: whoever walks means to take all.
func (b *bucket) walk(ctx context.Context, prefix string) iter.Seq2[version, error] {
	return func(yield func(version, error) bool) {
		for in := (listing{prefix: prefix}); ; {
			page, err := b.list(ctx, in)
			if err == nil && page.unreadable > 0 {
				err = fault(syscall.EILSEQ, "listing holds keys that the server cannot write")
			}
			if err != nil {
				yield(version{}, err)
				return
			}
			for _, v := range page.versions {
				if !yield(v, nil) {
					return
				}
			}
			if page.next == "" {
				return
			}
			in.token = page.next
		}
	}
}

// A lister is a directory open for Readdir and Readdirnames.
type lister struct {
	handle
	info    *fileInfo
	entries iter.Seq2[fs.FileInfo, error]
	next    func() (fs.FileInfo, error, bool) // nil until the first entry is asked for
	stop    func()
}

func (f *Fs) openDirectory(name, key string) (*lister, error) {
	entries, err := f.ReadDirSeq(name)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	info := directory(f.keys.base(key), f.keys.directory(key), time.Time{})
	return &lister{handle: handle{name: name, kind: syscall.EISDIR}, info: info, entries: entries}, nil
}

// Stat describes the directory as it was opened.
func (d *lister) Stat() (fs.FileInfo, error) { return d.info, nil }

// Readdir returns the next count entries, and io.EOF after the last; a count of 0 or less stands for all that are left, without
// an io.EOF. A listing is in the order of [Fs.ReadDirSeq].
func (d *lister) Readdir(count int) ([]fs.FileInfo, error) {
	if d.closed {
		return nil, pathError("readdir", d.name, fs.ErrClosed)
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
		return pathError("close", d.name, fs.ErrClosed)
	}
	d.closed = true
	if d.stop != nil {
		d.stop()
	}
	return nil
}
