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
	// minCopyPart is the fewest bytes that one request copies, except of a smaller object. S3 copies them within
	// seconds.
	minCopyPart = 128 << 20

	// copyPartSize is how many bytes of the kept head or tail one request copies: few enough that requests in
	// parallel copy a large object.
	copyPartSize = 1 << 30
)

// copyHead begins the upload with the bytes of the object that stay. S3 copies them as whole parts, where it can. The
// driver reads the others.
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

// copyTail adds the bytes of the object that stay after the written ones. S3 copies them as parts, where it can. The
// driver reads those that the part under way lacks: S3 takes only a last part below its smallest size, and some
// servers want equal parts.
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

// copySizeFor returns the size of one copied part, so that the copied bytes take at most half of the parts of an
// upload.
func (u *Uploader) copySizeFor(bytes int64) int64 {
	return min(max(copyPartSize, 2*bytes/u.Bucket.Profile.MaxParts()), s3api.MaxPartSize)
}

// copiesParts reports whether S3 copies the bytes of the object that stay. An inspector has to see them too.
func (w *Writer) copiesParts() bool { return w.u.Inspect == nil && w.u.Bucket.CopiesParts(w.kept.Key) }

// CopyByParts copies a version that is too large for one request, or copies it on a condition.
func (u *Uploader) CopyByParts(
	ctx context.Context, v s3api.Version, a *s3object.Attributes, to string, c s3api.Condition,
) (made s3api.Result, err error) {
	if err := v.Bucket.ReadTags(ctx, v.Key, a); err != nil {
		return s3api.Result{}, err
	}
	return u.copyByParts(ctx, v, a, to, c, func() {})
}

// copyByParts is CopyByParts with other tags than those of the version. It calls ask before S3 is asked to make the
// copy visible.
func (u *Uploader) copyByParts(
	ctx context.Context, v s3api.Version, a *s3object.Attributes, to string, c s3api.Condition, ask func(),
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
		ask()
		made, err = m.complete(ctx, c, m.entry.IsHolder)
		phase = asked.settled(err, live, stored)
	}
	if err != nil {
		m.abort(phase)
		return made, c.Failed(err)
	}
	m.entry.Remove(ctx)
	return made, nil
}

// addAll adds all bytes of a version to an upload.
func (u *Uploader) addAll(ctx context.Context, m *multipart, v s3api.Version) error {
	if !u.Bucket.CopiesParts(v.Key) {
		return u.stream(ctx, m, v)
	}
	// Twice the smallest part, so that no part is too small however the object divides. Half as many parts as S3 takes.
	size := min(max(u.CopyLimit, 2*u.SmallestPart), max(minCopyPart, 2*v.Size/u.Bucket.Profile.MaxParts()))
	return m.copy(v, 0, v.Size, size)
}

// stream adds all bytes of a version to an upload, through the memory of this process, for an S3 server that does not
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
	_, err := io.Copy(io.Discard, source) // the SDK compares the checksum at the end of the body
	return err
}
