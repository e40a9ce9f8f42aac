package upload

import (
	"context"
	"io"

	"github.com/babelftp/babelftp/driver/internal/file"
	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
)

const (
	// partGrowth makes a part at least this fraction of the bytes before it, for each 10,000 parts that an upload may
	// have. So 10,000 parts hold 5 TiB even if the first has 5 MiB, the smallest that S3 takes. The last parts have 4
	// GiB then, which S3 takes too.
	partGrowth = 1280

	// partSizeStep is the step, in bytes, to which partSizeFor rounds up.
	partSizeStep = 1 << 20

	// minCopyPart is the fewest bytes that one request copies, except of a smaller object. S3 copies them within
	// seconds.
	minCopyPart = 128 << 20

	// copyPartSize is how many bytes of the kept head or tail one request copies: few enough that requests in
	// parallel copy a large object.
	copyPartSize = 1 << 30
)

// partSizeAt returns the size in bytes of the part that begins at offset, where the first has size. Nothing else
// decides the size. So the number of a part says where it begins. Parts grow where the S3 server takes parts of
// different sizes.
func (u *Uploader) partSizeAt(size, offset int64) int64 {
	if !u.Bucket.Profile.UnequalParts {
		offset = 0
	}
	growth := partGrowth * u.Bucket.Profile.MaxParts() / 10_000
	return min(max(size, offset/growth), s3api.MaxPartSize, u.Memory.Share())
}

// partSizeFor returns the size in bytes of the first part of an upload. known is how many bytes the upload has at
// least; it may have twice as many. If all parts must have one size, that size bounds the upload: 10,000 parts, or
// 1,000 where the server takes no more. No part is larger than what its user may hold of the memory, whatever size a
// client announces.
func (u *Uploader) partSizeFor(known int64) int64 {
	size := u.PartSize
	if !u.Bucket.Profile.UnequalParts {
		steps := (2*known/u.Bucket.Profile.MaxParts() + partSizeStep - 1) / partSizeStep
		size = max(size, steps*partSizeStep)
	}
	return u.partSizeAt(size, 0)
}

// Announce says how many bytes the file will probably have, before the first write. It is a hint: if all parts of an
// upload must have one size, it makes them large enough.
func (w *Writer) Announce(size int64) {
	if w.offset == 0 && w.upload == nil && w.part == nil && w.resumed == nil {
		w.partSize = max(w.partSize, w.u.partSizeFor(size))
	}
}

// copyHead begins the upload with the bytes of the object that stay. S3 copies them as whole parts, where it can. The
// driver reads the others.
func (w *Writer) copyHead() error {
	p := &w.u.Bucket.Profile
	copied, size := w.headSize, int64(copyPartSize)
	if !p.UnequalParts {
		size = w.u.partSizeAt(w.partSize, 0)
		copied = copied / size * size
	}
	if copied < w.u.SmallestPart || !w.copiesParts() {
		w.offset = 0
		return w.read(w.head, 0, w.headSize)
	}
	if err := w.start(); err != nil {
		return err
	}
	if err := w.upload.copy(w.head, 0, copied, size); err != nil {
		return err
	}
	w.offset = copied
	rest := file.NewRange(w.ctx, w.u.Bucket, w.head, copied, w.headSize)
	defer rest.Close()
	_, err := w.fill(rest)
	return err
}

// copyTail adds the bytes of the object that stay after the written ones. S3 copies them as parts, where it can. The
// driver reads those that the part under way lacks: S3 takes only a last part below its smallest size, and some
// servers want equal parts.
func (w *Writer) copyTail() error {
	if w.offset >= w.keptEnd {
		return nil
	}
	p := &w.u.Bucket.Profile
	need, size := max(w.u.SmallestPart-w.part.Len(), 0), int64(copyPartSize)
	if !p.UnequalParts {
		size = w.u.partSizeAt(w.partSize, 0)
		need = size - w.part.Len()
	}
	copied := w.offset + need
	if !w.copiesParts() || w.keptEnd-copied < w.u.SmallestPart {
		return w.read(w.head, w.offset, w.keptEnd)
	}
	if err := w.read(w.head, w.offset, copied); err != nil {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	w.offset = w.keptEnd
	return w.upload.copy(w.head, copied, w.keptEnd, size)
}

// copiesParts tells whether S3 copies the bytes of the object that stay. The inspector has to see them too.
func (w *Writer) copiesParts() bool { return w.u.Inspect == nil && w.u.Bucket.CopiesParts(w.head.Key) }

// CopyByParts copies a version that is too large for one request, or copies it on a condition.
func (u *Uploader) CopyByParts(
	ctx context.Context, v s3api.Version, a *s3object.Attributes, to string, c s3api.Condition,
) (made s3api.Stored, err error) {
	if err := v.Bucket.ReadTags(ctx, v.Key, a); err != nil {
		return s3api.Stored{}, err
	}
	return u.copyByParts(ctx, v, a, to, c, func() {})
}

// copyByParts is CopyByParts with other tags than those of the version. It calls ask before S3 is asked to make the
// copy visible.
func (u *Uploader) copyByParts(
	ctx context.Context, v s3api.Version, a *s3object.Attributes, to string, c s3api.Condition, ask func(),
) (made s3api.Stored, err error) {
	partsCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	options := uploadOptions{key: to, partSize: u.PartSize, cancel: cancel, base: func() string { return "" }}
	m, err := u.createMultipart(partsCtx, partsCtx, options, a)
	if err != nil {
		return s3api.Stored{}, err
	}
	err = u.addAll(ctx, m, v)
	if waitErr := m.wait(); err == nil {
		err = waitErr
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		ask()
		made, err = m.complete(ctx, c)
		err = c.Failed(err)
	}
	if err != nil {
		m.abort()
	}
	return made, err
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
