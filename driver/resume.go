package driver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// keepTimeout is how long a broken upload may take to store what is in memory. Its client has gone; its session waits.
const keepTimeout = 20 * time.Second

// A kept is an upload that broke, as far as it can be gone on with.
//
// S3 holds the parts, but does not let anybody read them. So the parts stay as they are, up to the first that is missing, and what
// came after the last whole one, which could not stand between parts where it is less than 5 MiB, is the body of the record. The
// places of the parts are known from their numbers alone (partSizeAt): a part that is late, because its session did not know that
// its client had gone, lands where it belongs.
//
// Two clients that go on with the same upload at once cannot mix their bytes unnoticed: S3 completes an upload by the checksums that
// whoever completes it has seen.
type kept struct {
	record
	parts    []*types.CompletedPart
	ends     []int64                 // offset behind each part
	checksum types.ChecksumAlgorithm // that parts come with, empty for none
}

// end is the offset behind the last part.
func (k *kept) end() int64 {
	if len(k.ends) == 0 {
		return 0
	}
	return k.ends[len(k.ends)-1]
}

// tail is how many bytes follow the parts. A record that tells of another place is from before these parts.
func (k *kept) tail() int64 {
	if k.offset != k.end() {
		return 0
	}
	return k.record.size
}

func (k *kept) size() int64 { return k.end() + k.tail() }

// reaches tells whether an upload can go on from an offset: between parts, or among the bytes that can be read.
func (k *kept) reaches(offset int64) bool {
	return slices.Contains(k.ends, offset) || offset >= k.end() && offset <= k.size()
}

// told is what KeptUpload has told last: who appends to an upload has seen that much of it.
type told struct {
	mu   sync.Mutex
	key  string
	size int64
}

func (t *told) set(key string, size int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.key, t.size = key, size
}

func (t *told) of(key string) (int64, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.size, t.key == key
}

// KeptUpload describes the upload of a file that this owner can go on with: the bytes that S3 holds of it. There is none, which is
// an fs.ErrNotExist, once the file has been stored. It takes one request where nothing is kept.
func (f *Fs) KeptUpload(name string) (fs.FileInfo, error) {
	return f.stat(name, func(key string) (*fileInfo, error) {
		k, err := f.findKept(key)
		if err == nil && k == nil {
			err = fs.ErrNotExist
		}
		if err != nil {
			return nil, err
		}
		f.told.set(key, k.size())
		return file(f.keys.base(key), &version{key: key, size: k.size(), modTime: k.modTime}, &attributes{}), nil
	})
}

// goOn finds the kept upload to go on with, and where: at the end for an append, which is the one that was told. It returns nil
// where there is none, or none that could go on from there although there is an object.
func (f *Fs) goOn(key string, offset int64, whole bool) (*kept, int64, error) {
	k, err := f.findKept(key)
	if k == nil || err != nil {
		return nil, 0, err
	}
	if whole {
		offset = k.size()
		if size, ok := f.told.of(key); ok && k.reaches(size) {
			offset = size
		}
	}
	if k.reaches(offset) {
		return k, offset, nil
	}
	if _, err := f.statFile(key); errors.Is(err, fs.ErrNotExist) {
		return nil, 0, errInvalid
	}
	return nil, 0, nil
}

// findKept finds what is kept of an upload, or nil: the latest of this owner's, unless the file has been stored since.
func (f *Fs) findKept(key string) (*kept, error) {
	l := f.opts.Ledger
	if f.opts.Owner == "" || f.keys.isRoot(key) {
		return nil, nil
	}
	records, err := f.records(f.ctx, key)
	if err != nil || len(records) == 0 {
		return nil, err
	}
	latest := slices.MaxFunc(records, func(a, b version) int { return a.modTime.Compare(b.modTime) })
	r, err := l.read(f.ctx, latest.key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // it ended a moment ago
	}
	if err != nil {
		return nil, err
	}
	k := &kept{record: *r}
	switch err := f.readParts(k); {
	case isNoSuchUpload(err): // it was completed or aborted, and its record came late
		return nil, l.delete(f.ctx, r)
	case err != nil:
		return nil, err
	case k.size() == 0:
		return nil, nil
	}
	v, _, err := f.bucket.head(f.ctx, key)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !v.modTime.After(k.modTime) {
		return k, nil
	}
	return nil, err
}

// records are those of this owner's uploads to a key.
func (f *Fs) records(ctx context.Context, key string) ([]version, error) {
	l := f.opts.Ledger
	page, err := l.bucket.list(ctx, listing{prefix: l.recordsOf(f.opts.Owner, key)})
	if err != nil {
		return nil, err
	}
	return page.versions, nil
}

// readParts finds the parts that follow each other from the first on.
func (f *Fs) readParts(k *kept) error {
	if k.upload == "" {
		return nil
	}
	in := &s3.ListPartsInput{Bucket: &f.bucket.name, Key: &k.key, UploadId: &k.upload}
	for {
		out, err := f.bucket.client.ListParts(f.ctx, in, repeatable)
		if err != nil {
			return fromS3(err)
		}
		if a := out.ChecksumAlgorithm; a == checksumAlgorithm || a == f.opts.Objects.Checksum {
			k.checksum = a
		}
		for _, part := range out.Parts {
			size := f.memory.partSizeAt(k.partSize, k.end())
			if aws.ToInt32(part.PartNumber) != int32(len(k.parts)+1) || aws.ToInt64(part.Size) != size {
				return nil
			}
			k.parts = append(k.parts, &types.CompletedPart{
				PartNumber: part.PartNumber, ETag: part.ETag,
				ChecksumCRC32: part.ChecksumCRC32, ChecksumCRC32C: part.ChecksumCRC32C, ChecksumCRC64NVME: part.ChecksumCRC64NVME,
			})
			k.ends = append(k.ends, k.end()+size)
		}
		if !aws.ToBool(out.IsTruncated) || len(out.Parts) == 0 {
			return nil
		}
		in.PartNumberMarker = out.NextPartNumberMarker
	}
}

// resume goes on with a kept upload at w.offset.
func (w *writer) resume() error {
	k, offset := w.resumed, w.offset
	count, _ := slices.BinarySearch(k.ends, offset+1) // parts that end at offset or before
	w.offset = 0
	if k.upload != "" {
		w.upload = w.f.multipart(w.ctx, w.partsContext(), w.key, k.upload)
		w.upload.parts, w.upload.number, w.upload.checksum = k.parts[:count], int32(count), k.checksum
		w.upload.entry = w.f.opts.Ledger.resume(w.ctx, k.record)
	}
	if count > 0 {
		w.offset = k.ends[count-1]
	}
	if w.offset == offset {
		return nil
	}
	return w.read(version{bucket: w.f.bucket, key: k.name, size: k.record.size}, offset-w.offset)
}

// keepable tells whether the upload is one that can be kept when it breaks. One that goes on from an object is not: the object is
// there, to go on from it once more.
func (w *writer) keepable() bool { return w.f.opts.Owner != "" && w.kept.key == "" }

// canGoOnAfter tells whether an upload that ended with an error may be gone on with. It may not where the bytes are wrong, or where
// there must be no such object.
func canGoOnAfter(err error) bool {
	return !slices.ContainsFunc([]error{fs.ErrInvalid, fs.ErrExist, syscall.ESTALE, syscall.EFBIG, syscall.EDQUOT, syscall.EILSEQ},
		func(kind error) bool { return errors.Is(err, kind) })
}

// leave ends the upload so that its owner can go on with it: the parts on their way arrive, and what follows them goes into the
// record, but for its last byte, which a client that has sent all shall find missing (see fill).
func (w *writer) leave() {
	ctx, done := context.WithTimeout(context.WithoutCancel(w.ctx), keepTimeout)
	defer done()
	var e *entry
	var err error
	if w.upload != nil {
		e = w.upload.entry
		err = w.upload.drain(ctx)
	}
	if err == nil {
		e, err = w.keepTail(ctx, e)
	}
	if err != nil {
		w.f.log.Warn("end of a broken upload could not be kept", "bucket", w.f.bucket.name, "key", w.key, "error", err)
	}
	if w.upload != nil && !e.recorded() || errors.Is(err, errStored) {
		w.drop() // nobody would find it, or should
		return
	}
	e.leave()
}

// errStored is why a broken upload is not kept whose file was stored meanwhile.
var errStored = errors.New("the file has been stored by now")

// keepTail writes what follows the parts into the record of the upload, or into a new one where there are no parts.
func (w *writer) keepTail(ctx context.Context, e *entry) (*entry, error) {
	offset, length := w.offset, int64(0)
	if w.part != nil {
		offset -= w.part.length
		length = max(w.part.length-1, 0)
	}
	if w.resumed != nil && offset+length <= w.resumed.size() || w.upload == nil && length == 0 {
		return e, nil // nothing has come
	}
	stored, err := w.f.storedSince(ctx, w.key, w.opened)
	switch {
	case err != nil:
		return e, err
	case stored:
		return e, errStored
	case e == nil:
		l := w.f.opts.Ledger
		e = l.take(l.newRecord(w.f.opts.Owner, w.key, w.partSize))
	}
	if err := e.keep(ctx, offset, w.tail(length)); err != nil {
		return e, err
	}
	if w.resumed != nil && w.resumed.upload == "" { // its bytes are in the new record
		return e, w.f.opts.Ledger.delete(ctx, &w.resumed.record)
	}
	return e, nil
}

// tail is the first length bytes of the buffer.
func (w *writer) tail(length int64) content {
	if w.part == nil {
		return bytes.NewReader(nil)
	}
	return io.NewSectionReader(w.part, 0, length)
}

// drop ends the upload so that nothing is left of it.
func (w *writer) drop() {
	if w.upload != nil {
		w.upload.abort()
	}
	if w.resumed == nil || w.resumed.upload != "" && w.upload != nil {
		return
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(w.ctx), abortTimeout)
	defer done()
	if err := w.f.opts.Ledger.delete(ctx, &w.resumed.record); err != nil {
		w.f.log.Warn("kept upload could not be removed", "bucket", w.f.bucket.name, "key", w.key, "error", err)
	}
}

// storedSince tells whether an object was stored, by somebody who came after this upload had begun: then its client has come back
// and was faster than the news that it had gone. Both times are by the clock of S3, which tells seconds.
func (f *Fs) storedSince(ctx context.Context, key string, begun time.Time) (bool, error) {
	took := time.Since(begun)
	out, err := f.bucket.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &f.bucket.name, Key: &key})
	if err != nil {
		if err = fromS3(err); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	now, ok := awsmiddleware.GetServerTime(out.ResultMetadata)
	if !ok {
		now = time.Now()
	}
	return now.Sub(aws.ToTime(out.LastModified)) < took-time.Second, nil
}

// findOlder finds the kept uploads that end when this one is published. It does not wait: most files have none.
func (w *writer) findOlder() {
	if w.f.opts.Owner == "" {
		return
	}
	w.older = make(chan []version, 1)
	go func() {
		records, err := w.f.records(w.ctx, w.key)
		if err != nil {
			w.f.log.Debug("kept uploads could not be listed", "bucket", w.f.bucket.name, "key", w.key, "error", err)
		}
		w.older <- records
	}()
}

// removeOlder removes them, but for those that another session works on.
func (w *writer) removeOlder() {
	if w.older == nil {
		return
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(w.ctx), keepTimeout)
	defer done()
	w.f.removeKept(ctx, <-w.older)
}

// removeUploads removes what is kept of this owner's uploads to a key, and tells whether there was something.
func (f *Fs) removeUploads(key string) (bool, error) {
	if f.opts.Owner == "" {
		return false, nil
	}
	records, err := f.records(f.ctx, key)
	if err != nil {
		return false, err
	}
	return f.removeKept(f.ctx, records), nil
}

func (f *Fs) removeKept(ctx context.Context, records []version) (removed bool) {
	l := f.opts.Ledger
	for _, v := range records {
		if l.entry(v.key) != nil {
			continue
		}
		r, err := l.read(ctx, v.key)
		if err == nil {
			err = l.delete(ctx, r)
		}
		switch {
		case err == nil:
			removed = true
		case !errors.Is(err, fs.ErrNotExist):
			f.log.Warn("kept upload could not be removed", "bucket", f.bucket.name, "record", v.key, "error", err)
		}
	}
	return removed
}
