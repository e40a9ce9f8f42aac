package s3sim

import (
	"cmp"
	"encoding/base64"
	"encoding/xml"
	"hash/crc32"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// pageSize returns the maximum number of entries on a page.
func (s *Server) pageSize(q *request, parameter string) (int, *reply) {
	value := q.query.Get(parameter)
	if value == "" {
		return s.opts.PageSize, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		return 0, invalidArg()
	}
	return min(n, s.opts.PageSize), nil
}

// encoder returns the function that encodes names in a listing.
func encoder(q *request) func(string) string {
	if q.query.Get("encoding-type") == "url" {
		return func(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "%2F", "/") }
	}
	return func(text string) string { return text }
}

// order compares two names by their position in listings: in byte order, or in an order that looks random.
func (s *Server) order(a, b string) int {
	if s.opts.Profile.SortedListings {
		return strings.Compare(a, b)
	}
	return cmp.Or(cmp.Compare(crc32.ChecksumIEEE([]byte(a)), crc32.ChecksumIEEE([]byte(b))), strings.Compare(a, b))
}

// names yields the keys and common prefixes of a listing in listing order. It includes only keys for which shows
// returns true. A sorted listing starts at from, or at the common prefix that contains it.
func (s *Server) names(b *bucket, q *request, from string, shows func(key string) bool) iter.Seq[string] {
	if s.opts.Profile.SortedListings {
		return b.sortedNames(q, from, shows)
	}
	return slices.Values(slices.SortedFunc(b.sortedNames(q, "", shows), s.order))
}

// sortedNames is like names but always in key order.
func (b *bucket) sortedNames(q *request, from string, shows func(key string) bool) iter.Seq[string] {
	delimiter := q.query.Get("delimiter")
	return func(yield func(string) bool) {
		at, _ := slices.BinarySearch(b.sortedKeys(), max(q.Prefix, from))
		last := ""
		for _, key := range b.keys[at:] {
			rest, found := strings.CutPrefix(key, q.Prefix)
			if !found {
				return
			}
			if !shows(key) {
				continue
			}
			if segment, _, found := strings.Cut(rest, delimiter); found && delimiter != "" {
				key = q.Prefix + segment + delimiter
			}
			if key != last && !yield(key) {
				return
			}
			last = key
		}
	}
}

type prefixElement struct{ Prefix string }

type contentElement struct {
	Key, LastModified, ETag string
	Size                    int64
	StorageClass            string
	ChecksumAlgorithm       string `xml:",omitempty"`
	ChecksumType            string `xml:",omitempty"`
}

// element returns the object as an entry of a listing.
func (o *Object) element(encode func(string) string) contentElement {
	return contentElement{
		Key: encode(o.Key), LastModified: stamp(o.Modified), ETag: o.ETag, Size: o.Content.Size(),
		StorageClass:      cmp.Or(o.header.Get("X-Amz-Storage-Class"), "STANDARD"),
		ChecksumAlgorithm: strings.ToUpper(o.checksum.algorithm), ChecksumType: o.checksum.kind(),
	}
}

// refusesPrefix reports whether the server accepts only prefixes that end in a slash and this one does not.
func (s *Server) refusesPrefix(q *request) bool {
	return s.opts.Profile.SlashPrefixes && q.Prefix != "" && !strings.HasSuffix(q.Prefix, "/")
}

func (s *Server) list(b *bucket, q *request) *reply {
	if s.refusesPrefix(q) {
		return notImplemented()
	}
	size, refusal := s.pageSize(q, "max-keys")
	if refusal != nil {
		return refusal
	}
	start, token := q.query.Get("start-after"), q.query.Get("continuation-token")
	after := start
	if token != "" {
		last, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil {
			return invalidArg()
		}
		after = string(last)
	} else if after != "" && !s.opts.Profile.SortedListings {
		return notImplemented()
	}
	p := s.page(b, q, after, size)
	encode := encoder(q)
	out := struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		Name, Prefix          string
		Delimiter             string `xml:",omitempty"`
		EncodingType          string `xml:",omitempty"`
		StartAfter            string `xml:",omitempty"`
		KeyCount, MaxKeys     int
		IsTruncated           bool
		ContinuationToken     string `xml:",omitempty"`
		NextContinuationToken string `xml:",omitempty"`
		Contents              []contentElement
		CommonPrefixes        []prefixElement
	}{
		Name: q.Bucket, Prefix: encode(q.Prefix), Delimiter: encode(q.query.Get("delimiter")),
		EncodingType: q.query.Get("encoding-type"),
		StartAfter:   encode(start), MaxKeys: size, KeyCount: len(p.objects) + len(p.prefixes),
		IsTruncated:       p.truncated,
		ContinuationToken: token, Contents: p.objects, CommonPrefixes: p.prefixes,
	}
	if out.IsTruncated {
		out.NextContinuationToken = base64.RawURLEncoding.EncodeToString([]byte(p.last))
	}
	return replyXML(http.StatusOK, &out)
}

// A page is one page of a listing.
type page struct {
	objects   []contentElement
	prefixes  []prefixElement
	last      string // name of the last entry
	truncated bool
}

// page returns the page of a listing that starts after a name.
func (s *Server) page(b *bucket, q *request, after string, size int) (p page) {
	delimiter, encode := q.query.Get("delimiter"), encoder(q)
	shows := func(key string) bool { return b.current(key) != nil || s.isGhost(key, q.Prefix, delimiter) }
	for name := range s.names(b, q, after, shows) {
		isPrefix := delimiter != "" && strings.HasSuffix(name, delimiter) && name != q.Prefix
		if after != "" && (s.order(name, after) <= 0 || isPrefix && strings.HasPrefix(after, name)) {
			continue
		}
		if len(p.objects)+len(p.prefixes) == size {
			p.truncated = true
			break
		}
		p.last = name
		if isPrefix {
			p.prefixes = append(p.prefixes, prefixElement{encode(name)})
		} else {
			p.objects = append(p.objects, q.torn(b.current(name)).element(encode))
		}
	}
	return p
}

// isGhost reports whether a key whose latest version is a delete marker still produces a common prefix.
func (s *Server) isGhost(key, prefix, delimiter string) bool {
	rest, found := strings.CutPrefix(key, prefix)
	return s.opts.Profile.GhostPrefixes && found && delimiter != "" && strings.Contains(rest, delimiter)
}

// A versionElement is a version in XML form.
type versionElement struct {
	XMLName        xml.Name
	Key, VersionId string
	IsLatest       bool
	LastModified   string
	ETag           string `xml:",omitempty"`
	Size           *int64 `xml:",omitempty"`
	StorageClass   string `xml:",omitempty"`

	ChecksumAlgorithm string `xml:",omitempty"`
	ChecksumType      string `xml:",omitempty"`
}

// listVersions lists versions and delete markers, the latest version of a key first.
func (s *Server) listVersions(b *bucket, q *request) *reply {
	size, refusal := s.pageSize(q, "max-keys")
	if refusal != nil {
		return refusal
	}
	keyMarker, idMarker, encode := q.query.Get("key-marker"), q.query.Get("version-id-marker"), encoder(q)
	out := struct {
		XMLName                            xml.Name `xml:"ListVersionsResult"`
		Name, Prefix                       string
		NextKeyMarker, NextVersionIdMarker string `xml:",omitempty"`
		EncodingType                       string `xml:",omitempty"`
		MaxKeys                            int
		IsTruncated                        bool
		Versions                           []versionElement
		CommonPrefixes                     []prefixElement
	}{
		Name: q.Bucket, Prefix: encode(q.Prefix), EncodingType: q.query.Get("encoding-type"), MaxKeys: size,
	}
	var last versionElement
	for _, e := range s.versions(b, q, keyMarker, idMarker) {
		if len(out.Versions)+len(out.CommonPrefixes) == size {
			out.IsTruncated = true
			out.NextKeyMarker, out.NextVersionIdMarker = last.Key, last.VersionId
			break
		}
		if last = e; e.VersionId == "" {
			out.CommonPrefixes = append(out.CommonPrefixes, prefixElement{e.Key})
			continue
		}
		out.Versions = append(out.Versions, e)
	}
	if s.opts.Profile.MarkersApart { // two separate lists
		slices.SortStableFunc(out.Versions, func(a, b versionElement) int {
			return -strings.Compare(a.XMLName.Local, b.XMLName.Local)
		})
	}
	return replyXML(http.StatusOK, &out)
}

// versions returns the versions after a key, or after one of its versions. Common prefixes have no ID.
func (s *Server) versions(b *bucket, q *request, keyMarker, idMarker string) (all []versionElement) {
	encode := encoder(q)
	delimiter := q.query.Get("delimiter")
	shows := func(string) bool { return true }
	names, order := s.names(b, q, keyMarker, shows), s.order
	if s.opts.Profile.MarkersApart { // SeaweedFS sorts versions but not objects
		names, order = b.sortedNames(q, keyMarker, shows), strings.Compare
	}
	for name := range names {
		isPrefix := delimiter != "" && strings.HasSuffix(name, delimiter) && name != q.Prefix
		if keyMarker != "" && order(name, keyMarker) < 0 || name == keyMarker && idMarker == "" ||
			isPrefix && strings.HasPrefix(keyMarker, name) {
			continue
		}
		if isPrefix {
			all = append(all, versionElement{Key: encode(name)})
			continue
		}
		passed := name == keyMarker // false until the version of the marker
		for i, o := range slices.Backward(b.objects[name]) {
			e := o.version(encode, i == len(b.objects[name])-1)
			if !passed {
				all = append(all, e)
			}
			passed = passed && e.VersionId != idMarker
		}
	}
	return all
}

// version returns the object as an entry of a version listing.
func (o *Object) version(encode func(string) string, latest bool) versionElement {
	e := versionElement{
		XMLName: xml.Name{Local: "DeleteMarker"}, Key: encode(o.Key), VersionId: cmp.Or(o.VersionID, nullVersion),
		IsLatest:     latest,
		LastModified: stamp(o.Modified),
	}
	if !o.deleted {
		size := o.Content.Size()
		e.XMLName.Local = "Version"
		e.ETag, e.Size, e.StorageClass = o.ETag, &size, cmp.Or(o.header.Get("X-Amz-Storage-Class"), "STANDARD")
		e.ChecksumAlgorithm, e.ChecksumType = strings.ToUpper(o.checksum.algorithm), o.checksum.kind()
	}
	return e
}

// listUploads returns all uploads below a prefix on one page.
func (s *Server) listUploads(b *bucket, q *request) *reply {
	type element struct{ Key, UploadId, Initiated string }
	encode := encoder(q)
	out := struct {
		XMLName      xml.Name `xml:"ListMultipartUploadsResult"`
		Bucket       string
		Prefix       string
		EncodingType string    `xml:",omitempty"`
		Uploads      []element `xml:"Upload"`
	}{Bucket: q.Bucket, Prefix: encode(q.Prefix), EncodingType: q.query.Get("encoding-type")}
	for _, id := range slices.Sorted(maps.Keys(b.uploads)) {
		if u := b.uploads[id]; strings.HasPrefix(u.key, q.Prefix) {
			out.Uploads = append(out.Uploads, element{encode(u.key), u.id, stamp(u.begun)})
		}
	}
	slices.SortStableFunc(out.Uploads, func(a, b element) int { return strings.Compare(a.Key, b.Key) })
	return replyXML(http.StatusOK, &out)
}
