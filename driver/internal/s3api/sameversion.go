package s3api

import (
	"maps"
	"time"
)

// identified reports whether HeadObject has shown more of a version than an equal object of another client may have.
func (v *Version) identified() bool { return v.Name != "" || v.ID != "" }

// IsStill reports whether another response about the key may describe the same version. Both have the same size and
// time. If both come from HeadObject, they also have the same ETag, ID and metadata. Listings may have another ETag:
// MinIO's of objects with a customer key, and Swift's of copies.
func (v *Version) IsStill(now Version) bool {
	return v.Key == now.Key && v.Size == now.Size && v.sameTime(now) && (!v.Looked || !now.Looked ||
		sameETag(v.ETag, now.ETag) && v.ID == now.ID && maps.Equal(v.metadata, now.metadata))
}

// sameTime reports whether two responses may have the time of one version. Times in listings may have parts of a
// second. HeadObject rounds them, and Swift rounds up.
func (v *Version) sameTime(now Version) bool {
	later := now.ModTime.Sub(v.ModTime)
	if v.Looked == now.Looked {
		return later.Abs() < time.Second
	}
	return later.Abs() <= time.Second
}
