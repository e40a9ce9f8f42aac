package upload

import (
	"github.com/babelftp/babelftp/driver/internal/s3api"
)

const (
	// partGrowth makes a part at least this fraction of the bytes before it, for each 10,000 parts that an upload may
	// have. So 10,000 parts hold 5 TiB even if the first has 5 MiB, the smallest that S3 takes. The last parts have 4
	// GiB then, which S3 takes too.
	partGrowth = 1280

	// partSizeStep is the step, in bytes, to which partSizeFor rounds up, unless a test has smaller parts.
	partSizeStep = 1 << 20
)

// partSizeAt returns the size in bytes of the part that begins at offset, where the first has size. Nothing else
// decides the size. So the number of a part says where it begins. Parts grow where the S3 server takes parts of
// different sizes.
func (u *Uploader) partSizeAt(size, offset int64) int64 {
	if !u.Bucket.Profile.UnequalParts {
		offset = 0
	}
	growth := max(partGrowth*u.Bucket.Profile.MaxParts()/10_000, 1)
	return min(max(size, offset/growth), s3api.MaxPartSize, u.Memory.Share())
}

// partSizeFor returns the size in bytes of the first part of an upload. known is how many bytes the upload has at
// least; it may have twice as many. If all parts must have one size, that size bounds the upload: 10,000 parts, or
// 1,000 where the server takes no more. No part is larger than what its user may hold of the memory, whatever size a
// client announces.
func (u *Uploader) partSizeFor(known int64) int64 {
	size := u.PartSize
	if !u.Bucket.Profile.UnequalParts {
		step := min(partSizeStep, u.SmallestPart)
		size = max(size, (2*known/u.Bucket.Profile.MaxParts()+step-1)/step*step)
	}
	return u.partSizeAt(size, 0)
}

// Announce says how many bytes the file will probably have, before the first write. It is a hint: if all parts of an
// upload must have one size, it makes them large enough.
func (w *Writer) Announce(size int64) {
	if w.phase == opened && w.offset == 0 {
		w.partSize = max(w.partSize, w.u.partSizeFor(size))
	}
}
