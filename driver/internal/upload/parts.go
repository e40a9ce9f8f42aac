package upload

import (
	"github.com/babelftp/babelftp/driver/internal/s3api"
)

const (
	// partGrowth determines how parts grow: a part has at least 1/partGrowth of the bytes before it if an upload may
	// have 10,000 parts. With this value 10,000 parts hold 5 TiB, the maximum size of an object, even if the first part
	// has the minimum of 5 MiB. The last parts then have 4 GiB, which is below the maximum of S3.
	partGrowth = 1280

	// partSizeStep is the multiple to which partSizeFor rounds up, in bytes. Tests with smaller parts round less.
	partSizeStep = 1 << 20
)

// partSizeAt returns the size in bytes of the part that begins at offset, if the first part has the given size. The
// result depends on nothing else, so a session that resumes an upload can compute from the number of a part where it
// begins. Parts grow if the S3 server accepts parts of different sizes.
func (u *Uploader) partSizeAt(size, offset int64) int64 {
	if !u.Bucket.Profile.UnequalParts {
		offset = 0
	}
	growth := max(partGrowth*u.Bucket.Profile.MaxParts()/10_000, 1)
	return min(max(size, offset/growth), s3api.MaxPartSize, u.Memory.Share())
}

// partSizeFor returns the size in bytes of the first part of an upload that has at least known bytes. If all parts must
// have the same size, that size limits the upload to 10,000 parts, or to 1,000 on some servers. partSizeFor leaves room
// for twice the known bytes. A part never exceeds the share of memory that one user may hold, regardless of the size
// that a client announces.
func (u *Uploader) partSizeFor(known int64) int64 {
	size := u.PartSize
	if !u.Bucket.Profile.UnequalParts {
		step := min(partSizeStep, u.SmallestPart)
		size = max(size, (2*known/u.Bucket.Profile.MaxParts()+step-1)/step*step)
	}
	return u.partSizeAt(size, 0)
}

// Announce sets the expected size of the file. Call it before the first write. It is a hint that makes the parts large
// enough if all parts of an upload must have the same size.
func (w *Writer) Announce(size int64) {
	if w.phase == opened && w.offset == 0 {
		w.partSize = max(w.partSize, w.u.partSizeFor(size))
	}
}
