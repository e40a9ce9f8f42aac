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

// pageSize returns the maximum number of entries of a page.
func (s *Server) pageSize(q *request, parameter string) (int, *reply) {
	value := q.query.Get(parameter)
	if value == "" {
		return s.opts.PageSize, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		return 0, invalidArg("Argument " + value + " must be an integer between 0 and 2147483647")
	}
	return min(n, s.opts.PageSize), nil
}

// encoder returns how names are written in a listing.
func encoder(q *request) func(string) string {
	if q.query.Get("encoding-type") == "url" {
		return func(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "%2F", "/") }
	}
	return func(text string) string { return text }
}

// order compares two names by their place in listings: by their bytes, or in an order that looks random.
func (s *Server) order(a, b string) int {
	if s.opts.Profile.SortedListings {
		return strings.Compare(a, b)
	}
	return cmp.Or(cmp.Compare(crc32.ChecksumIEEE([]byte(a)), crc32.ChecksumIEEE([]byte(b))), strings.Compare(a, b))
}

// names yields the keys and common prefixes of a listing in its order, those of the keys that it shows. A listing in
// the order of the keys begins with from, or with the prefix of from.
func (s *Server) names(b *bucket, q *request, from string, shows func(key string) bool) iter.Seq[string] {
	if s.opts.Profile.SortedListings {
		return b.sortedNames(q, from, shows)
	}
	return slices.Values(slices.SortedFunc(b.sortedNames(q, "", shows), s.order))
}

// sortedNames is names in the order of the keys.
func (b *bucket) sortedNames(q *request, from string, shows func(key string) bool) iter.Seq[string] {
	delimiter := q.query.Get("delimiter")
	return func(yield func(string) bool) {
		at, _ := slices.BinarySearch(b.ordered(), max(q.Prefix, from))
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

// element is an object in a listing.
func (o *Object) element(encode func(string) string) contentElement {
	return contentElement{
		Key: encode(o.Key), LastModified: stamp(o.Modified), ETag: o.ETag, Size: o.Content.Size(),
		StorageClass:      cmp.Or(o.header.Get("X-Amz-Storage-Class"), "STANDARD"),
		ChecksumAlgorithm: strings.ToUpper(o.checksum.algorithm), ChecksumType: o.checksum.kind(),
	}
}

// refusesPrefix reports whether the server takes only prefixes that end in a slash, and this prefix does not.
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
	return answerXML(http.StatusOK, &out)
}

// A page is a page of a listing.
type page struct {
	objects   []contentElement
	prefixes  []prefixElement
	last      string // the name of the last of them
	truncated bool
}

// page lists the objects after a name.
func (s *Server) page(b *bucket, q *request, after string, size int) (p page) {
	delimiter, encode := q.query.Get("delimiter"), encoder(q)
	shows := func(key string) bool { return b.current(key) != nil || s.isGhost(key, q.Prefix, delimiter) }
	for name := range s.names(b, q, after, shows) {
		isPrefix := delimiter != "" && strings.HasSuffix(name, delimiter) && name != q.Prefix
		if after != "" && (s.order(name, after) <= 0 || isPrefix && strings.HasPrefix(after, name)) {
			continue
		}
		if len(p.objects)+len(p.prefixes) == size {
			p.truncated = size > 0
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

// isGhost reports whether a key whose latest version is a delete marker is still behind a common prefix.
func (s *Server) isGhost(key, prefix, delimiter string) bool {
	rest, found := strings.CutPrefix(key, prefix)
	return s.opts.Profile.GhostPrefixes && found && delimiter != "" && strings.Contains(rest, delimiter)
}

// A versionElement is a version in XML.
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

// listVersions lists versions and delete markers. Those of a key begin with the latest.
func (s *Server) listVersions(b *bucket, q *request) *reply {
	size, refusal := s.pageSize(q, "max-keys")
	keyMarker, idMarker, delimiter := q.query.Get("key-marker"), q.query.Get("version-id-marker"),
		q.query.Get("delimiter")
	switch {
	case refusal != nil:
		return refusal
	case idMarker != "" && keyMarker == "":
		return invalidArg()
	}
	encode := encoder(q)
	out := struct {
		XMLName                            xml.Name `xml:"ListVersionsResult"`
		Name, Prefix                       string
		KeyMarker, VersionIdMarker         string
		NextKeyMarker, NextVersionIdMarker string `xml:",omitempty"`
		Delimiter                          string `xml:",omitempty"`
		EncodingType                       string `xml:",omitempty"`
		MaxKeys                            int
		IsTruncated                        bool
		Versions                           []versionElement
		CommonPrefixes                     []prefixElement
	}{
		Name: q.Bucket, Prefix: encode(q.Prefix), KeyMarker: encode(keyMarker), VersionIdMarker: idMarker,
		Delimiter:    encode(delimiter),
		EncodingType: q.query.Get("encoding-type"), MaxKeys: size,
	}
	for _, e := range s.versions(b, q, keyMarker, idMarker) {
		if len(out.Versions)+len(out.CommonPrefixes) == size {
			out.IsTruncated = size > 0
			break
		}
		out.NextKeyMarker, out.NextVersionIdMarker = e.Key, e.VersionId
		if e.VersionId == "" {
			out.CommonPrefixes = append(out.CommonPrefixes, prefixElement{e.Key})
		} else {
			out.Versions = append(out.Versions, e)
		}
	}
	if !out.IsTruncated {
		out.NextKeyMarker, out.NextVersionIdMarker = "", ""
	}
	return answerXML(http.StatusOK, &out)
}

// versions returns the versions after a key, or after one of its versions, and the common prefixes among them, which
// have no ID.
func (s *Server) versions(b *bucket, q *request, keyMarker, idMarker string) (all []versionElement) {
	delimiter, encode := q.query.Get("delimiter"), encoder(q)
	for name := range s.names(b, q, keyMarker, func(string) bool { return true }) {
		isPrefix := delimiter != "" && strings.HasSuffix(name, delimiter) && name != q.Prefix
		switch {
		case name < keyMarker, name == keyMarker && idMarker == "", isPrefix && strings.HasPrefix(keyMarker, name):
			continue
		case isPrefix:
			all = append(all, versionElement{Key: encode(name)})
			continue
		}
		passed := name == keyMarker // until the version of the marker
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

// version is a version in a listing.
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

func (s *Server) listUploads(b *bucket, q *request) *reply {
	size, refusal := s.pageSize(q, "max-uploads")
	if refusal != nil {
		return refusal
	}
	type element struct {
		Key, UploadId, Initiated string
		StorageClass             string
		ChecksumAlgorithm        string `xml:",omitempty"`
		ChecksumType             string `xml:",omitempty"`
	}
	keyMarker, idMarker, delimiter := q.query.Get("key-marker"), q.query.Get("upload-id-marker"),
		q.query.Get("delimiter")
	if keyMarker == "" {
		idMarker = "" // it means nothing alone
	} else if idMarker != "" && b.uploads[idMarker] == nil && s.aws() {
		return invalidArg("Invalid uploadId marker")
	}
	encode := encoder(q)
	out := struct {
		XMLName                           xml.Name `xml:"ListMultipartUploadsResult"`
		Bucket, Prefix                    string
		KeyMarker, UploadIdMarker         string
		Delimiter                         string `xml:",omitempty"`
		EncodingType                      string `xml:",omitempty"`
		NextKeyMarker, NextUploadIdMarker string `xml:",omitempty"`
		MaxUploads                        int
		IsTruncated                       bool
		Uploads                           []element `xml:"Upload"`
		CommonPrefixes                    []prefixElement
	}{
		Bucket: q.Bucket, Prefix: encode(q.Prefix), KeyMarker: encode(keyMarker), UploadIdMarker: idMarker,
		Delimiter:    encode(delimiter),
		EncodingType: q.query.Get("encoding-type"), MaxUploads: size,
	}
	open := slices.SortedFunc(maps.Values(b.uploads), func(a, b *upload) int {
		return cmp.Or(strings.Compare(a.key, b.key), strings.Compare(a.id, b.id))
	})
	lastPrefix := ""
	for _, u := range open {
		rest, found := strings.CutPrefix(u.key, q.Prefix)
		segment, _, grouped := strings.Cut(rest, delimiter)
		prefix := ""
		if delimiter != "" && grouped {
			prefix = q.Prefix + segment + delimiter
		}
		switch {
		case !found, u.key < keyMarker, u.key == keyMarker && (idMarker == "" || u.id <= idMarker),
			prefix != "" && (prefix == lastPrefix || strings.HasPrefix(keyMarker, prefix)):
			continue
		case len(out.Uploads)+len(out.CommonPrefixes) == size:
			out.IsTruncated = size > 0
		case prefix != "":
			lastPrefix = prefix
			out.CommonPrefixes = append(out.CommonPrefixes, prefixElement{encode(prefix)})
			out.NextKeyMarker, out.NextUploadIdMarker = encode(prefix), ""
		default:
			out.Uploads = append(out.Uploads, element{
				encode(u.key), u.id, stamp(u.begun), cmp.Or(u.header.Get("X-Amz-Storage-Class"), "STANDARD"),
				strings.ToUpper(u.algorithm), u.kind(),
			})
			out.NextKeyMarker, out.NextUploadIdMarker = encode(u.key), u.id
		}
	}
	if !out.IsTruncated {
		out.NextKeyMarker, out.NextUploadIdMarker = "", ""
	}
	return answerXML(http.StatusOK, &out)
}
