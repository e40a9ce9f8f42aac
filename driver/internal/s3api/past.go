package s3api

import (
	"context"
	"io/fs"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/internal/base/s3error"
)

// A Past chooses at most one version of each key in a bucket with versioning.
type Past struct {
	// Time chooses the version that each key had at the end of this second: the first version, in the order of S3, that
	// was not stored later. If that is a delete marker, the key does not exist. S3 rounds some times to seconds, but
	// returns the versions of one second in their order.
	Time time.Time
	// Deleted chooses the last version of each key that is deleted now. It ignores the markers of directories.
	Deleted bool
}

// AsOf returns the bucket as it was in the past. Its read methods see only the chosen versions, which costs listings of
// versions. Methods that change something fail with EROFS. The returned bucket remembers the IDs of versions that it
// has found, so a caller that reads a version several times should use the same bucket.
func (b *Bucket) AsOf(p Past) *Bucket {
	past := *b
	past.interceptor = (&pastReader{bucket: b, past: p, found: map[string]string{}}).intercept
	past.isPast, past.Profile.GhostPrefixes = true, true
	return &past
}

// IsPast reports whether the bucket was returned by [Bucket.AsOf].
func (b *Bucket) IsPast() bool { return b.isPast }

// A pastReader responds to requests from the earlier versions in a bucket.
type pastReader struct {
	bucket *Bucket // the bucket as it is now
	past   Past

	mu    sync.Mutex
	found map[string]string // version ID by key
}

// intercept is the [interceptor] of the past. It allows only requests that read objects or restore archived ones.
func (c *pastReader) intercept(ctx context.Context, in any, send func() (any, error)) (any, error) {
	var id *string
	var err error
	switch in := in.(type) {
	case *s3.ListObjectsV2Input:
		return c.list(ctx, in)
	case *s3.HeadObjectInput:
		id, err = c.find(ctx, *in.Key)
		in.VersionId = id
	case *s3.GetObjectInput:
		id, err = c.find(ctx, *in.Key)
		in.VersionId = id
	case *s3.GetObjectTaggingInput:
		id, err = c.find(ctx, *in.Key)
		in.VersionId = id
	case *s3.RestoreObjectInput:
	default:
		err = s3error.New(syscall.EROFS, "earlier versions of a bucket cannot be changed")
	}
	if err != nil {
		return nil, err
	}
	out, err := c.bucket.intercept(ctx, in, send)
	if head, ok := out.(*s3.HeadObjectOutput); ok && err == nil {
		head.VersionId = id
	}
	return out, err
}

const (
	// maxFound limits the number of version IDs that a pastReader remembers.
	maxFound = 4 * maxVersions

	// fewVersions is the size of the first page when looking for one key or checking one directory. maxVersions is the
	// largest page that S3 returns.
	fewVersions = 20
	maxVersions = 1000

	// tokenSeparator separates the parts of a continuation token, which is percent-encoded. Keys do not contain NUL.
	tokenSeparator = "\x00"

	// maxProbePages limits the requests to check whether a directory is empty. After this number of pages with only
	// delete markers or later versions, the directory counts as not empty.
	maxProbePages = 20
)

var errNotChosen = s3error.New(fs.ErrNotExist, "the key has no version at the requested time")

// find returns the ID of the chosen version of a key. The error is [fs.ErrNotExist] if no version is chosen.
func (c *pastReader) find(ctx context.Context, key string) (*string, error) {
	c.mu.Lock()
	id, known := c.found[key]
	c.mu.Unlock()
	if known {
		return &id, nil
	}
	in := &s3.ListObjectVersionsInput{Bucket: &c.bucket.Name, Prefix: &key, Delimiter: aws.String("/"),
		EncodingType: types.EncodingTypeUrl}
	sorted := c.bucket.Profile.SortedListings // if not sorted, keys that begin with this one may come first
	if sorted {
		in.MaxKeys = aws.Int32(fewVersions)
	}
	chosen := chooser{past: c.past}
	for {
		versions, out, err := c.versions(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, v := range versions {
			switch {
			case v.key != key && sorted:
				return nil, errNotChosen
			case v.key == key && chosen.chooses(v):
				c.remember(v)
				return &v.id, nil
			}
		}
		if !aws.ToBool(out.IsTruncated) || chosen.state == decided {
			return nil, errNotChosen
		}
		if err := next(in, out); err != nil {
			return nil, err
		}
	}
}

func (c *pastReader) remember(v listedVersion) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.found) >= maxFound {
		clear(c.found)
	}
	c.found[v.key] = v.id
}

// list responds to ListObjectsV2. It returns the chosen versions of one page of versions, and reads more pages if that
// page has none.
func (c *pastReader) list(ctx context.Context, in *s3.ListObjectsV2Input) (*s3.ListObjectsV2Output, error) {
	of := &s3.ListObjectVersionsInput{Bucket: in.Bucket, Prefix: in.Prefix, Delimiter: in.Delimiter,
		EncodingType: in.EncodingType, MaxKeys: in.MaxKeys}
	probes := in.MaxKeys != nil && *in.MaxKeys <= fewKeys
	if probes {
		of.MaxKeys = aws.Int32(fewVersions)
	}
	chosen := chooser{past: c.past}
	of.KeyMarker = in.StartAfter
	if token := aws.ToString(in.ContinuationToken); token != "" {
		token, err := url.QueryUnescape(token)
		if err != nil {
			return nil, err
		}
		parts := append(strings.SplitN(token, tokenSeparator, 4), make([]string, 3)...)
		if of.KeyMarker = &parts[0]; parts[1] != "" {
			of.VersionIdMarker = &parts[1]
		}
		chosen.state, chosen.key = choice(parts[2]), parts[3]
	}
	out := &s3.ListObjectsV2Output{Name: in.Bucket, Prefix: in.Prefix}
	for pages := 1; ; pages++ {
		versions, page, err := c.versions(ctx, of)
		if err != nil {
			return nil, err
		}
		for _, v := range versions {
			if chosen.chooses(v) {
				c.remember(v)
				out.Contents = append(out.Contents, types.Object{Key: v.listed.Key, Size: v.listed.Size,
					ETag: v.listed.ETag, LastModified: v.listed.LastModified,
					StorageClass: types.ObjectStorageClass(v.listed.StorageClass)})
			}
		}
		out.CommonPrefixes = append(out.CommonPrefixes, page.CommonPrefixes...)
		out.EncodingType, out.IsTruncated, out.ResultMetadata = page.EncodingType, page.IsTruncated, page.ResultMetadata
		if !aws.ToBool(page.IsTruncated) {
			return out, nil
		}
		if err := next(of, page); err != nil {
			return nil, err
		}
		if len(out.Contents)+len(out.CommonPrefixes) > 0 || probes && pages == maxProbePages {
			token := url.QueryEscape(strings.Join([]string{
				*of.KeyMarker, aws.ToString(of.VersionIdMarker), string(chosen.state), chosen.key,
			}, tokenSeparator))
			out.NextContinuationToken = &token
			return out, nil
		}
		idleProgress(ctx)() // keep the request alive: there may be many versions and no object to return
	}
}

// next sets the markers for the next page.
func next(in *s3.ListObjectVersionsInput, page *s3.ListObjectVersionsOutput) error {
	if aws.ToInt32(in.MaxKeys) == fewVersions {
		in.MaxKeys = nil // the small first page was not enough
	}
	return nextVersions(in, page)
}

// versions requests a page of versions and delete markers.
func (c *pastReader) versions(
	ctx context.Context, in *s3.ListObjectVersionsInput,
) ([]listedVersion, *s3.ListObjectVersionsOutput, error) {
	if c.past == (Past{}) { // the zero time is before all versions
		return nil, &s3.ListObjectVersionsOutput{}, nil
	}
	var order versionOrder
	out, err := call(ctx, c.bucket, c.bucket.client.ListObjectVersions, in, order.install)
	if err != nil {
		return nil, nil, err
	}
	all, err := order.versions(out, c.bucket.Profile.MarkersApart)
	if err == nil && !c.bucket.Profile.MarkersApart && !inOrder(all) {
		err = s3error.New(syscall.EIO, "S3 lists delete markers after the versions; correct s3.profile, which describes another server")
	}
	return all, out, err
}

// inOrder reports whether the versions of each key in a page are adjacent, with the latest first.
func inOrder(page []listedVersion) bool {
	keys := map[string]bool{}
	last := ""
	for _, v := range page {
		switch {
		case strings.ContainsRune(v.key, utf8.RuneError): // may belong to several keys that the server could not write
		case v.key == last && v.latest, v.key != last && keys[v.key]:
			return false
		}
		last = v.key
		keys[last] = true
	}
	return true
}

// A chooser receives the versions of all keys in the order of S3: the versions of one key follow each other, the latest
// first.
type chooser struct {
	past  Past
	key   string
	state choice // what is known about the current key
}

// A choice holds what the versions received so far have shown about a key.
type choice string

const (
	begun   choice = ""        // no version received yet
	covered choice = "covered" // the latest version is a delete marker
	decided choice = "decided" // no further version is chosen
)

// chooses reports whether this version is the chosen version of its key.
func (c *chooser) chooses(v listedVersion) bool {
	if v.key != c.key {
		c.key, c.state = v.key, begun
	}
	before := c.state
	switch {
	case before == decided:
		return false
	case c.past.Deleted && v.marker:
		c.state = covered
		return false
	case c.past.Deleted:
		c.state = decided
		return before == covered && !strings.HasSuffix(v.key, "/")
	case v.modified.Truncate(time.Second).After(c.past.Time):
		return false
	}
	c.state = decided
	return !v.marker
}
