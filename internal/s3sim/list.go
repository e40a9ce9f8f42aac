package s3sim

import (
	"cmp"
	"encoding/base64"
	"encoding/xml"
	"hash/crc32"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// pageSize returns the maximum number of entries of a page.
func pageSize(q *request, parameter string) int {
	n, err := strconv.Atoi(q.query.Get(parameter))
	if err != nil || n > maxPage {
		return maxPage
	}
	return n
}

// order compares two names by their place in listings: by their bytes, or in an order that looks random.
func (s *Server) order(a, b string) int {
	if s.opts.Profile.SortedListings {
		return strings.Compare(a, b)
	}
	return cmp.Or(cmp.Compare(crc32.ChecksumIEEE([]byte(a)), crc32.ChecksumIEEE([]byte(b))), strings.Compare(a, b))
}

// names returns keys and common prefixes in the order of listings.
func (s *Server) names(keys []string, prefix, delimiter string) []string {
	var names []string
	for _, key := range keys {
		rest, found := strings.CutPrefix(key, prefix)
		if !found {
			continue
		}
		if segment, _, found := strings.Cut(rest, delimiter); found && delimiter != "" {
			key = prefix + segment + delimiter
		}
		names = append(names, key)
	}
	slices.SortFunc(names, s.order)
	return slices.Compact(names)
}

type prefixElement struct{ Prefix string }

type contentElement struct {
	Key, LastModified, ETag string
	Size                    int64
	StorageClass            string
}

// refusesPrefix reports whether the server takes only prefixes that end in a slash, and this prefix does not.
func (s *Server) refusesPrefix(q *request) bool {
	return s.opts.Profile.SlashPrefixes && q.Prefix != "" && !strings.HasSuffix(q.Prefix, "/")
}

func (s *Server) list(b *bucket, q *request) *reply {
	if s.refusesPrefix(q) {
		return notImplemented()
	}
	encode := func(text string) string { return text }
	if q.query.Get("encoding-type") == "url" {
		encode = func(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "%2F", "/") }
	}
	delimiter, after, token := q.query.Get("delimiter"), q.query.Get("start-after"), q.query.Get("continuation-token")
	if token != "" {
		last, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil {
			return invalidArg()
		}
		after = string(last)
	} else if after != "" && !s.opts.Profile.SortedListings {
		return notImplemented()
	}
	out := struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		Name, Prefix          string
		Delimiter             string `xml:",omitempty"`
		EncodingType          string `xml:",omitempty"`
		KeyCount, MaxKeys     int
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
		Contents              []contentElement
		CommonPrefixes        []prefixElement
	}{
		Name: q.Bucket, Prefix: encode(q.Prefix), Delimiter: encode(delimiter), EncodingType: q.query.Get("encoding-type"),
		MaxKeys: pageSize(q, "max-keys"),
	}
	var last string
	for _, name := range s.names(slices.Collect(maps.Keys(b.objects)), q.Prefix, delimiter) {
		o := b.current(name)
		isPrefix := delimiter != "" && strings.HasSuffix(name, delimiter) && name != q.Prefix
		switch {
		case after != "" && s.order(name, after) <= 0, isPrefix && strings.HasPrefix(after, name):
			continue
		case o == nil && !isPrefix:
			continue // a delete marker
		}
		if out.KeyCount == out.MaxKeys {
			out.IsTruncated = out.MaxKeys > 0
			break
		}
		last = name
		out.KeyCount++
		if isPrefix {
			out.CommonPrefixes = append(out.CommonPrefixes, prefixElement{encode(name)})
			continue
		}
		out.Contents = append(out.Contents, contentElement{
			Key: encode(name), LastModified: stamp(o.Modified), ETag: o.ETag, Size: o.Content.Size(),
			StorageClass: cmp.Or(o.header.Get("X-Amz-Storage-Class"), "STANDARD"),
		})
	}
	if out.IsTruncated {
		out.NextContinuationToken = base64.RawURLEncoding.EncodeToString([]byte(last))
	}
	return answerXML(http.StatusOK, &out)
}

// listVersions lists all versions in one page. Those of a key begin with the latest.
func (b *bucket) listVersions(q *request) *reply {
	type element struct {
		Key, VersionId string
		IsLatest       bool
		ETag           string `xml:",omitempty"`
		LastModified   string
		Size           int64
	}
	out := struct {
		XMLName     xml.Name `xml:"ListVersionsResult"`
		IsTruncated bool
		Versions    []element `xml:"Version"`
		Markers     []element `xml:"DeleteMarker"`
	}{}
	for _, key := range slices.Sorted(maps.Keys(b.objects)) {
		if !strings.HasPrefix(key, q.Prefix) {
			continue
		}
		latest := true
		for _, o := range slices.Backward(b.objects[key]) {
			e := element{o.Key, cmp.Or(o.VersionID, "null"), latest, o.ETag, stamp(o.Modified), o.Content.Size()}
			if latest = false; o.deleted {
				out.Markers = append(out.Markers, e)
			} else {
				out.Versions = append(out.Versions, e)
			}
		}
	}
	return answerXML(http.StatusOK, &out)
}

func (s *Server) listUploads(b *bucket, q *request) *reply {
	if s.opts.HideUploads && (!s.opts.Profile.ListUploads || s.refusesPrefix(q)) {
		return notImplemented()
	}
	type element struct{ Key, UploadId, Initiated string }
	out := struct {
		XMLName                           xml.Name `xml:"ListMultipartUploadsResult"`
		Bucket, Prefix                    string
		EncodingType                      string `xml:",omitempty"`
		NextKeyMarker, NextUploadIdMarker string `xml:",omitempty"`
		IsTruncated                       bool
		Uploads                           []element `xml:"Upload"`
	}{Bucket: q.Bucket, Prefix: q.Prefix, EncodingType: q.query.Get("encoding-type")}
	keyMarker, idMarker := q.query.Get("key-marker"), q.query.Get("upload-id-marker")
	open := slices.SortedFunc(maps.Values(b.uploads), func(a, b *upload) int {
		return cmp.Or(strings.Compare(a.key, b.key), strings.Compare(a.id, b.id))
	})
	for _, u := range open {
		switch {
		case !strings.HasPrefix(u.key, q.Prefix), u.key < keyMarker, u.key == keyMarker && (idMarker == "" || u.id <= idMarker):
			continue
		case len(out.Uploads) == pageSize(q, "max-uploads"):
			out.IsTruncated = true
		default:
			key := u.key
			if out.EncodingType == "url" {
				key = strings.ReplaceAll(url.QueryEscape(key), "%2F", "/")
			}
			out.Uploads = append(out.Uploads, element{key, u.id, stamp(u.begun)})
			out.NextKeyMarker, out.NextUploadIdMarker = u.key, u.id
		}
	}
	return answerXML(http.StatusOK, &out)
}
