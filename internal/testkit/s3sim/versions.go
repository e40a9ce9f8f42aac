package s3sim

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"
)

// Versioning states.
const enabled, suspended = "Enabled", "Suspended"

// nullVersion is the ID of a version stored without versioning. Its [Object.VersionID] is empty.
const nullVersion = "null"

func (b *bucket) getVersioning() *reply {
	return replyXML(http.StatusOK, &struct {
		XMLName xml.Name `xml:"VersioningConfiguration"`
		Status  string   `xml:",omitempty"`
	}{Status: b.versioning})
}

func (s *Server) putVersioning(b *bucket, q *request) *reply {
	var in struct{ Status string }
	switch {
	case s.opts.Profile.Name == "r2":
		return notImplemented() // R2 does not support versioning
	case xml.Unmarshal(q.body, &in) != nil, in.Status != enabled && in.Status != suspended:
		return malformed()
	}
	b.versioning = in.Status
	return ok()
}

// store makes o the current object of its key. Unless versioning is enabled, it replaces the null version.
func (s *Server) store(b *bucket, o *Object) {
	b.changes[o.Key]++
	if b.objects[o.Key] == nil {
		b.keys = nil
	}
	if b.versioning == enabled {
		o.VersionID = s.nextVersion()
	} else {
		b.objects[o.Key] = slices.DeleteFunc(slices.Clone(b.objects[o.Key]), func(old *Object) bool {
			return old.VersionID == ""
		})
	}
	b.objects[o.Key] = append(b.objects[o.Key], o)
}

// nextVersion returns a new version ID. If listings do not reveal the order of versions, the ID starts with a
// unique time that does, as in SeaweedFS.
func (s *Server) nextVersion() string {
	if !s.opts.Profile.MarkersApart {
		return s.next()
	}
	s.newest = max(s.newest+1, time.Now().Add(s.opts.Ahead).UnixNano())
	return fmt.Sprintf("%016x%016s", math.MaxInt64-s.newest, s.next())
}

// remove deletes the current object of a key. It returns the delete marker if versioning is or was enabled.
func (s *Server) remove(b *bucket, key string) (marker *Object) {
	if b.current(key) != nil {
		defer b.recordEmptied(key)
	}
	if b.versioning == "" {
		b.changes[key]++
		delete(b.objects, key)
		b.keys = nil
		return nil
	}
	marker = &Object{Key: key, Modified: s.now(), deleted: true}
	s.store(b, marker)
	return marker
}

// removeVersion permanently deletes a version of a key. It returns the version, or nil if it does not exist.
func (b *bucket) removeVersion(key, id string) *Object {
	o := b.find(key, id)
	if o == nil {
		return nil
	}
	b.changes[key]++
	b.objects[key] = slices.DeleteFunc(slices.Clone(b.objects[key]), func(other *Object) bool { return other == o })
	if len(b.objects[key]) == 0 {
		delete(b.objects, key)
		b.keys = nil
	}
	return o
}

// find returns a version of a key, or the latest version if id is empty. The version may be a delete marker. find
// returns nil if the version does not exist.
func (b *bucket) find(key, id string) *Object {
	for _, o := range slices.Backward(b.objects[key]) {
		if id == "" || cmp.Or(o.VersionID, nullVersion) == id {
			return o
		}
	}
	return nil
}

// lookup returns the object that a request reads.
func (b *bucket) lookup(q *request) (*Object, *reply) {
	return b.version(q.Key, q.query.Get("versionId"))
}

// version returns a version of a key, or the current object if id is empty.
func (b *bucket) version(key, id string) (*Object, *reply) {
	switch o := b.find(key, id); {
	case id != "" && o == nil:
		return nil, refuse(http.StatusNotFound, "NoSuchVersion")
	case id != "" && o.deleted:
		return nil, refuse(http.StatusMethodNotAllowed, "MethodNotAllowed")
	case o == nil:
		return nil, noSuchKey()
	case o.deleted:
		missing := noSuchKey()
		b.describe(missing.header, o)
		return nil, missing
	default:
		return o, nil
	}
}

// describeNew sets the version header for a new object. S3 omits it for the null version.
func (b *bucket) describeNew(h http.Header, o *Object) {
	if b.versioning == enabled {
		b.describe(h, o)
	}
}

// describe sets the version headers of an object.
func (b *bucket) describe(h http.Header, o *Object) {
	if b.versioning != "" {
		h.Set("X-Amz-Version-Id", cmp.Or(o.VersionID, nullVersion))
	}
	if o.deleted {
		h.Set("X-Amz-Delete-Marker", "true")
	}
}
