package upload

import (
	"context"
	"io"
	"time"

	"github.com/babelftp/babelftp/driver/internal/file"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
)

const (
	// minCopyPart is the minimum number of bytes that one request copies, except for smaller objects. S3 copies them
	// within seconds.
	minCopyPart = 128 << 20

	// copyPartSize is the usual number of bytes of the kept head or tail that one request copies. It is small enough
	// that a large object is copied by several requests in parallel.
	copyPartSize = 1 << 30
)

// copyHead begins the upload with the kept bytes before the written ones. S3 copies as many of them as possible, as
// whole parts. The driver downloads the rest.
func (w *Writer) copyHead() error {
	p := &w.u.Bucket.Profile
	copied, size := w.kept.head, w.u.copySizeFor(w.kept.head)
	if !p.UnequalParts {
		size = w.u.partSizeAt(w.partSize, 0)
		copied = copied / size * size
	}
	if copied < w.u.SmallestPart || !w.copiesParts() {
		w.offset = 0
		return w.read(w.kept.Version, 0, w.kept.head)
	}
	if err := w.start(); err != nil {
		return err
	}
	if err := w.upload.copy(w.kept.Version, 0, copied, size); err != nil {
		return err
	}
	w.offset = copied
	rest := file.NewRange(w.ctx, w.u.Bucket, w.kept.Version, copied, w.kept.head)
	defer rest.Close()
	_, err := w.fill(rest)
	return err
}

// copyTail adds the kept bytes after the written ones. S3 copies as many of them as possible, as parts. The driver
// downloads the bytes that fill up the current buffer, because only the last part may be smaller than the minimum, and
// some servers require parts of the same size.
func (w *Writer) copyTail() error {
	if w.offset >= w.kept.end {
		return nil
	}
	p := &w.u.Bucket.Profile
	need, size := max(w.u.SmallestPart-w.part.Len(), 0), w.u.copySizeFor(w.kept.end-w.offset)
	if !p.UnequalParts {
		size = w.u.partSizeAt(w.partSize, 0)
		need = size - w.part.Len()
	}
	copied := w.offset + need
	if !w.copiesParts() || w.kept.end-copied < w.u.SmallestPart {
		return w.read(w.kept.Version, w.offset, w.kept.end)
	}
	if err := w.read(w.kept.Version, w.offset, copied); err != nil {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	w.offset = w.kept.end
	return w.upload.copy(w.kept.Version, copied, w.kept.end, size)
}

// copySizeFor returns the size of one copied part. The copied bytes take at most half of the parts that an upload may
// have.
func (u *Uploader) copySizeFor(bytes int64) int64 {
	return min(max(copyPartSize, 2*bytes/u.Bucket.Profile.MaxParts()), s3api.MaxPartSize)
}

// copiesParts reports whether S3 can copy the kept bytes. With an inspector, it cannot, because the inspector has to
// see them too.
func (w *Writer) copiesParts() bool { return w.u.Inspect == nil && w.u.Bucket.CopiesParts(w.kept.Key) }

// CopyByParts copies a version with a multipart upload, because it is too large for CopyObject or because c has to hold
// for the object that the copy replaces.
func (u *Uploader) CopyByParts(
	ctx context.Context, v s3api.Version, a *s3object.Attributes, to string, c s3api.Condition,
) (made s3api.Result, err error) {
	if err := v.Bucket.ReadTags(ctx, v.Key, a); err != nil {
		return s3api.Result{}, err
	}
	return u.copyByParts(ctx, v, a, to, c, func() {})
}

// copyByParts is like CopyByParts, but takes the tags from a and not from the version. It calls beforeCommit before the
// request that makes the copy visible.
func (u *Uploader) copyByParts(
	ctx context.Context, v s3api.Version, a *s3object.Attributes, to string, c s3api.Condition, beforeCommit func(),
) (made s3api.Result, err error) {
	partsCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	options := uploadOptions{key: to, partSize: u.PartSize, cancel: cancel, began: time.Now(), kind: inParts}
	m, err := u.createMultipart(partsCtx, partsCtx, options, a)
	if err != nil {
		return s3api.Result{}, err
	}
	phase := live
	err = u.addAll(ctx, m, v)
	if waitErr := m.wait(); err == nil {
		err = waitErr
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		beforeCommit()
		made, err = m.complete(ctx, c, m.entry.IsHolder)
		phase = committing.settled(err, live, stored)
		err = c.Failed(err) // only here: the condition of a part is about the source
	}
	if err != nil {
		m.abort(phase)
		return made, err
	}
	u.StoreTags(ctx, to, a)
	m.entry.Remove(ctx)
	return made, nil
}

// addAll adds all bytes of a version to an upload.
func (u *Uploader) addAll(ctx context.Context, m *multipart, v s3api.Version) error {
	if !u.Bucket.CopiesParts(v.Key) {
		return u.stream(ctx, m, v)
	}
	// Twice the smallest part, so that no part is too small when the object is divided evenly; and at most half as many
	// parts as S3 accepts.
	size := min(max(u.CopyLimit, 2*u.SmallestPart), max(minCopyPart, 2*v.Size/u.Bucket.Profile.MaxParts()))
	return m.copy(v, 0, v.Size, size)
}

// stream adds all bytes of a version to an upload by downloading and uploading them, because the S3 server does not
// copy parts.
func (u *Uploader) stream(ctx context.Context, m *multipart, v s3api.Version) error {
	source := file.NewRange(ctx, v.Bucket, v, 0, v.Size)
	defer source.Close()
	first := u.partSizeFor(v.Size)
	for offset := int64(0); offset < v.Size; {
		if err := m.waitToFill(); err != nil {
			return err
		}
		part := u.Memory.Buffer(min(u.partSizeAt(first, offset), v.Size-offset))
		err := part.FillFrom(ctx, source)
		if err == nil {
			offset += part.Len()
			err = m.send(part, part.Release)
		}
		if err != nil {
			part.Release()
			return err
		}
	}
	_, err := io.Copy(io.Discard, source) // the SDK verifies the checksum at the end of the body
	return err
}
