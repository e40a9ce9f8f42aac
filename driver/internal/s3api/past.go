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

// A Past chooses a version of each key in a bucket that keeps versions, or none.
type Past struct {
	// Time chooses what a key had at the end of that second: the first version, in the order of S3, that is not
	// younger. A delete marker hides the key. S3 tells some times by the second only, and knows the order of versions
	// that it stored within one.
	Time time.Time
	// Deleted chooses what a key had before it was deleted, if it has nothing now. Markers of directories do not count.
	Deleted bool
}

// AsOf returns the bucket as it was. Its methods that read see the versions that are chosen, at the cost of listings of
// versions. Those that change something fail with EROFS. Requests that use one version several times look for it once.
func (b *Bucket) AsOf(p Past) *Bucket {
	past := *b
	past.interceptor = (&pastReader{bucket: b, past: p, found: map[string]string{}}).intercept
	past.isPast, past.Profile.GhostPrefixes = true, true
	return &past
}

// IsPast tells whether [Bucket.AsOf] has made the bucket.
func (b *Bucket) IsPast() bool { return b.isPast }

// A pastReader responds to requests from the versions of a bucket.
type pastReader struct {
	bucket *Bucket // as it is now
	past   Past

	mu    sync.Mutex
	found map[string]string // IDs of versions by key
}

// intercept is the [interceptor] of the past. It allows only requests that read, or restore what is archived.
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
		err = s3error.New(syscall.EROFS, "the past of a bucket cannot be changed")
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
	// maxFound is how many IDs of versions a pastReader remembers at most.
	maxFound = 4 * maxVersions

	// fewVersions is how many versions the first page has that looks for one key or directory, and maxVersions how many
	// S3 puts into a page at most.
	fewVersions = 20
	maxVersions = 1000

	// tokenSeparator is between the parts of the token of a page, which is in percent-encoding. No key has a NUL.
	tokenSeparator = "\x00"

	// maxLookPages is after how many pages a look takes a directory for one that has something. So it costs no more
	// than twenty requests to find out that there are only delete markers, or younger versions, in it.
	maxLookPages = 20
)

var errNotThen = s3error.New(fs.ErrNotExist, "no version of the key is chosen")

// find returns the ID of the version that is chosen of a key. The error is [fs.ErrNotExist] if there is none.
func (c *pastReader) find(ctx context.Context, key string) (*string, error) {
	c.mu.Lock()
	id, known := c.found[key]
	c.mu.Unlock()
	if known {
		return &id, nil
	}
	in := &s3.ListObjectVersionsInput{Bucket: &c.bucket.Name, Prefix: &key, Delimiter: aws.String("/"),
		EncodingType: types.EncodingTypeUrl}
	sorted := c.bucket.Profile.SortedListings // otherwise keys that begin with this one may come first
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
				return nil, errNotThen
			case v.key == key && chosen.takes(v):
				c.remember(v)
				return &v.id, nil
			}
		}
		if !aws.ToBool(out.IsTruncated) || chosen.state == decided {
			return nil, errNotThen
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

// list responds to ListObjectsV2. The page has what is chosen of one page of versions, or of as many as it takes to
// find something.
func (c *pastReader) list(ctx context.Context, in *s3.ListObjectsV2Input) (*s3.ListObjectsV2Output, error) {
	of := &s3.ListObjectVersionsInput{Bucket: in.Bucket, Prefix: in.Prefix, Delimiter: in.Delimiter,
		EncodingType: in.EncodingType, MaxKeys: in.MaxKeys}
	looks := in.MaxKeys != nil && *in.MaxKeys <= fewKeys
	if looks {
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
			if chosen.takes(v) {
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
		if len(out.Contents)+len(out.CommonPrefixes) > 0 || looks && pages == maxLookPages {
			token := url.QueryEscape(strings.Join([]string{
				*of.KeyMarker, aws.ToString(of.VersionIdMarker), string(chosen.state), chosen.key,
			}, tokenSeparator))
			out.NextContinuationToken = &token
			return out, nil
		}
		idleProgress(ctx)() // there may be many versions and nothing to show
	}
}

// next makes the request for the page after one.
func next(in *s3.ListObjectVersionsInput, page *s3.ListObjectVersionsOutput) error {
	if aws.ToInt32(in.MaxKeys) == fewVersions {
		in.MaxKeys = nil // a look needs more than one page
	}
	return nextVersions(in, page)
}

// versions requests a page of versions and delete markers.
func (c *pastReader) versions(
	ctx context.Context, in *s3.ListObjectVersionsInput,
) ([]listedVersion, *s3.ListObjectVersionsOutput, error) {
	if c.past == (Past{}) { // before everything
		return nil, &s3.ListObjectVersionsOutput{}, nil
	}
	var order versionOrder
	out, err := call(ctx, c.bucket, c.bucket.client.ListObjectVersions, in, order.install)
	if err != nil {
		return nil, nil, err
	}
	all, err := order.versions(out, c.bucket.Profile.MarkersApart)
	if err == nil && !c.bucket.Profile.MarkersApart && !inOrder(all) {
		err = s3error.New(syscall.EIO, "S3 lists delete markers apart from versions: s3.profile names another server")
	}
	return all, out, err
}

// inOrder tells whether the versions of each key of a page are together, the latest first.
func inOrder(page []listedVersion) bool {
	keys := map[string]bool{}
	last := ""
	for _, v := range page {
		switch {
		case strings.ContainsRune(v.key, utf8.RuneError): // perhaps of several keys that the server could not write
		case v.key == last && v.latest, v.key != last && keys[v.key]:
			return false
		}
		last = v.key
		keys[last] = true
	}
	return true
}

// A chooser gets the versions of keys in the order of S3, those of a key one after another, the latest first.
type chooser struct {
	past  Past
	key   string
	state choice // of the key
}

// A choice is what is known of a key from its versions so far.
type choice string

const (
	begun   choice = ""        // nothing has come
	covered choice = "covered" // the latest is a delete marker
	decided choice = "decided" // no other version is chosen
)

// takes tells whether a version is the one that is chosen of its key.
func (c *chooser) takes(v listedVersion) bool {
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
