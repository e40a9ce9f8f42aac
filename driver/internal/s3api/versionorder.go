package s3api

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/babelftp/babelftp/internal/base/s3error"
)

// A versionOrder records the order of the versions and delete markers in a ListObjectVersions response, because the SDK
// returns them as two lists. The times do not show the order, because S3 rounds them to seconds. It also replaces
// characters that XML does not allow, so that the SDK can decode the rest: Ceph repeats the prefix and the markers of
// the request without encoding.
type versionOrder struct{ markers []bool }

// install is a request option. It must be used for one request only.
func (o *versionOrder) install(options *s3.Options) {
	options.APIOptions = append(options.APIOptions, func(stack *middleware.Stack) error {
		return stack.Deserialize.Insert(
			middleware.DeserializeMiddlewareFunc("NoteOrder", o.record), "OperationDeserializer", middleware.After)
	})
}

// record runs before the SDK's decoder.
func (o *versionOrder) record(
	ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler,
) (middleware.DeserializeOutput, middleware.Metadata, error) {
	out, metadata, err := next.HandleDeserialize(ctx, in)
	response, ok := out.RawResponse.(*smithyhttp.Response)
	if err != nil || !ok {
		return out, metadata, err
	}
	o.markers = nil
	return out, metadata, replaceBody(response, func(body []byte) []byte {
		for rest := body; ; {
			_, after, found := bytes.Cut(rest, []byte("<")) // text never contains an unescaped <
			if !found {
				return body
			}
			switch rest = after; {
			case bytes.HasPrefix(rest, []byte("Version>")):
				o.markers = append(o.markers, false)
			case bytes.HasPrefix(rest, []byte("DeleteMarker>")):
				o.markers = append(o.markers, true)
			}
		}
	})
}

// A listedVersion is a version or a delete marker in a page, in the order of S3.
type listedVersion struct {
	key, id  string
	marker   bool
	latest   bool // whether it is the latest version of the key
	modified time.Time
	listed   types.ObjectVersion // set for a version, not for a delete marker
}

// versions returns the versions and delete markers of a response in the order of S3. With markersApart (see the
// profile), it sorts them by the time in their IDs.
func (o *versionOrder) versions(out *s3.ListObjectVersionsOutput, markersApart bool) ([]listedVersion, error) {
	if len(o.markers) != len(out.Versions)+len(out.DeleteMarkers) {
		return nil, s3error.New(syscall.EIO, "invalid ListObjectVersions response")
	}
	page := Page{Encoded: out.EncodingType == types.EncodingTypeUrl}
	all := make([]listedVersion, 0, len(o.markers))
	versions, markers := out.Versions, out.DeleteMarkers
	for _, marker := range o.markers {
		var v listedVersion
		if marker {
			m := markers[0]
			markers = markers[1:]
			v.marker, v.id, v.modified = true, aws.ToString(m.VersionId), aws.ToTime(m.LastModified)
			v.key, _ = page.decode(m.Key)
			v.latest = aws.ToBool(m.IsLatest)
		} else {
			v.listed = versions[0]
			versions = versions[1:]
			v.id, v.modified = aws.ToString(v.listed.VersionId), aws.ToTime(v.listed.LastModified)
			v.key, _ = page.decode(v.listed.Key)
			v.latest = aws.ToBool(v.listed.IsLatest)
		}
		if markersApart {
			v.modified = idTime(v.id, v.modified)
		}
		all = append(all, v)
	}
	if markersApart {
		slices.SortStableFunc(all, func(a, b listedVersion) int {
			return cmp.Or(strings.Compare(a.key, b.key), b.modified.Compare(a.modified), strings.Compare(b.id, a.id))
		})
	}
	return all, nil
}

// idTime returns the time in the first digits of a version ID, or otherwise if the ID does not contain a time. ULIDs
// contain milliseconds (https://github.com/ulid/spec) and the IDs of SeaweedFS nanoseconds. For keys that were first
// stored by a SeaweedFS release of 2026 or later, the number is subtracted from the largest int64, so that later IDs
// sort first.
func idTime(id string, otherwise time.Time) time.Time {
	const (
		digits, ulid, ulidTimeDigits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ", 26, 10
		seaweedfs, hexTimeDigits     = 32, 16
	)
	switch len(id) {
	case ulid:
		var ms int64
		for _, c := range id[:ulidTimeDigits] {
			ms = ms<<5 + int64(strings.IndexRune(digits, c))
		}
		return time.UnixMilli(ms)
	case seaweedfs:
		ns, err := strconv.ParseInt(id[:hexTimeDigits], 16, 64)
		if err != nil {
			return otherwise
		}
		return time.Unix(0, min(ns, math.MaxInt64-ns)) // works until the year 2116
	}
	return otherwise
}

// nextVersions sets the markers for the next page of versions. The page ends with a key or a common prefix, which the
// key marker of the next page repeats. Ceph does not encode this marker, although it encodes everything else: it is
// either the plain name, or has U+FFFD instead of characters that XML does not allow. MinIO appends a suffix to the
// name.
func nextVersions(in *s3.ListObjectVersionsInput, out *s3.ListObjectVersionsOutput) error {
	page := Page{Encoded: out.EncodingType == types.EncodingTypeUrl}
	last := ""
	note := func(encoded *string) {
		if key, ok := page.decode(encoded); ok {
			last = max(last, key)
		}
	}
	if n := len(out.Versions); n > 0 {
		note(out.Versions[n-1].Key)
	}
	if n := len(out.DeleteMarkers); n > 0 {
		note(out.DeleteMarkers[n-1].Key)
	}
	if n := len(out.CommonPrefixes); n > 0 {
		note(out.CommonPrefixes[n-1].Prefix)
	}
	marker, ok := page.decode(out.NextKeyMarker)
	if !ok || aws.ToString(out.NextKeyMarker) == last {
		marker = last
	}
	if marker == "" || marker == aws.ToString(in.KeyMarker) &&
		aws.ToString(out.NextVersionIdMarker) == aws.ToString(in.VersionIdMarker) {
		return s3error.New(syscall.EIO, "the page of versions has no marker for the next page")
	}
	in.KeyMarker, in.VersionIdMarker = &marker, out.NextVersionIdMarker
	return nil
}
