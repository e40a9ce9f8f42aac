package s3api

import (
	"maps"
	"time"
)

// identified reports whether HeadObject has returned a name or an ID, which an equal object of another client would not
// have.
func (v *Version) identified() bool { return v.Name != "" || v.ID != "" }

// IsStill reports whether another response for the key may describe the same version. Both must have the same size and
// time. If both come from HeadObject, they must also have the same ETag, ID and metadata. Listings may have another
// ETag, for example in MinIO for objects with a customer key and in Swift for copies.
func (v *Version) IsStill(now Version) bool {
	return v.Key == now.Key && v.Size == now.Size && v.sameTime(now) && (!v.FromHead || !now.FromHead ||
		sameETag(v.ETag, now.ETag) && v.ID == now.ID && maps.Equal(v.metadata, now.metadata))
}

// sameTime reports whether two responses may have the time of the same version. Times in listings may have fractions of
// a second. HeadObject rounds them, and Swift rounds up.
func (v *Version) sameTime(now Version) bool {
	later := now.ModTime.Sub(v.ModTime)
	if v.FromHead == now.FromHead {
		return later.Abs() < time.Second
	}
	return later.Abs() <= time.Second
}
