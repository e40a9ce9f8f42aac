package driver

import (
	"context"
	"iter"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver/internal/keys"
	"github.com/babelftp/babelftp/driver/internal/s3errors"
)

// A listing is what to ask ListObjectsV2 for.
type listing struct {
	prefix    string
	delimiter string
	limit     int32  // keys and prefixes in a page, S3's own 1,000 when 0
	token     string // of the page before, empty for the first
	after     string // what is listed begins after it, where there is no token; empty for all
}

// A page is an answer to a listing, with keys and prefixes in order.
type page struct {
	versions   []version
	prefixes   []string
	unreadable int    // keys that the server could not write
	next       string // token of the page that follows, empty when there is none
	limit      int32  // that was asked for, 0 for S3's own
	encoded    bool   // the server writes every key, in percent-encoding
	took       time.Duration
}

// empty tells whether nothing at all has the prefix that was asked for.
func (p *page) empty() bool {
	return len(p.versions) == 0 && len(p.prefixes) == 0 && p.unreadable == 0 && p.next == ""
}

// last is the last key or prefix, empty when there is none.
func (p *page) last() string {
	last := ""
	if n := len(p.versions); n > 0 {
		last = p.versions[n-1].key
	}
	if n := len(p.prefixes); n > 0 {
		last = max(last, p.prefixes[n-1])
	}
	return last
}

// names are all keys and prefixes in order, the prefixes without the slash at their end, and without the marker of the directory
// itself.
func (p *page) names(dir string) []string {
	names := make([]string, 0, len(p.versions)+len(p.prefixes))
	for _, v := range p.versions {
		if v.key != dir {
			names = append(names, v.key)
		}
	}
	for _, prefix := range p.prefixes {
		names = append(names, strings.TrimSuffix(prefix, keys.Separator))
	}
	slices.Sort(names)
	return names
}

// inOrder tells whether the page has all keys from where it begins to its last, in order. Most servers see to that, but not those
// that cannot write each key, and not S3's own directory buckets.
func (p *page) inOrder() bool {
	return p.encoded && p.unreadable == 0 && slices.IsSorted(p.prefixes) &&
		slices.IsSortedFunc(p.versions, func(a, b version) int { return strings.Compare(a.key, b.key) })
}

// upTo counts the entries up to a key, and tells whether the page reaches so far.
func (p *page) upTo(end string) (entries int, whole bool) {
	files, _ := slices.BinarySearchFunc(p.versions, end, func(v version, end string) int { return strings.Compare(v.key, end) })
	directories, _ := slices.BinarySearch(p.prefixes, end)
	return files + directories, p.last() >= end
}

// until is what of the page lies before the end of a stretch, or in it. An empty string is no bound.
func (p *page) until(end string) *page {
	if end == "" || p.last() <= end {
		return p
	}
	q := *p
	q.versions, q.prefixes = slices.Clone(p.versions), slices.Clone(p.prefixes)
	q.cut("", end)
	return &q
}

// join adds the page that follows.
func (p *page) join(following *page) *page {
	return &page{
		versions: append(p.versions, following.versions...), prefixes: append(p.prefixes, following.prefixes...),
		unreadable: p.unreadable + following.unreadable, next: following.next, encoded: p.encoded && following.encoded,
		took: p.took + following.took,
	}
}

// cut leaves what comes after one key, up to another. An empty string is no bound.
func (p *page) cut(after, end string) {
	outside := func(key string) bool { return key <= after || end != "" && key > end }
	p.versions = slices.DeleteFunc(p.versions, func(v version) bool { return outside(v.key) })
	p.prefixes = slices.DeleteFunc(p.prefixes, outside)
}

// list asks for one page.
//
// Answers are XML, which cannot hold most control characters, so keys are asked for in percent-encoding. A server that does not
// know of it, versitygw, writes U+FFFD in place of such a character. The key is then unknown, and is not shown under a name
// that belongs to another.
func (b *bucket) list(ctx context.Context, l listing) (*page, error) {
	in := &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: &l.prefix, EncodingType: types.EncodingTypeUrl}
	if l.delimiter != "" {
		in.Delimiter = &l.delimiter
	}
	if l.limit > 0 {
		in.MaxKeys = &l.limit
	}
	if l.token != "" {
		in.ContinuationToken = &l.token
	} else if l.after != "" {
		in.StartAfter = &l.after
	}
	begin := time.Now()
	out, err := b.client.ListObjectsV2(ctx, in, repeatable, new(contents).cut)
	if err != nil {
		return nil, s3errors.FromSDK(err)
	}
	if out.Name == nil && out.IsTruncated == nil && len(out.Contents)+len(out.CommonPrefixes) == 0 {
		return nil, s3errors.FromSDK(s3errors.ErrNoResult) // and not an empty directory
	}
	p := &page{
		versions: make([]version, 0, len(out.Contents)), prefixes: make([]string, 0, len(out.CommonPrefixes)),
		encoded: out.EncodingType == types.EncodingTypeUrl, limit: l.limit, took: time.Since(begin),
	}
	if aws.ToBool(out.IsTruncated) {
		p.next = aws.ToString(out.NextContinuationToken)
		if p.next == "" || p.next == l.token {
			return nil, s3errors.New(syscall.EIO, "listing goes on without a new continuation token")
		}
	}
	for _, o := range out.Contents {
		if key, ok := p.decode(o.Key); ok && strings.HasPrefix(key, l.prefix) {
			p.versions = append(p.versions, version{
				bucket: b, key: key, size: aws.ToInt64(o.Size), modTime: aws.ToTime(o.LastModified),
				etag: aws.ToString(o.ETag), class: types.StorageClass(o.StorageClass),
			})
		} else {
			p.unreadable++
		}
	}
	for _, o := range out.CommonPrefixes {
		if prefix, ok := p.decode(o.Prefix); ok && strings.HasPrefix(prefix, l.prefix) {
			p.prefixes = append(p.prefixes, prefix)
		} else {
			p.unreadable++
		}
	}
	return p, nil
}

// decode undoes the encoding of a key, or returns false for one that the server could not write.
func (p *page) decode(encoded *string) (key string, ok bool) {
	key = aws.ToString(encoded)
	if !p.encoded {
		return key, !strings.ContainsRune(key, utf8.RuneError)
	}
	key, err := url.QueryUnescape(key)
	return key, err == nil
}

// walk lists every object whose key starts with prefix, in the order of the keys. Where one cannot be read, because the server
// cannot write its key, it ends with EILSEQ: whoever walks means to take all.
func (b *bucket) walk(ctx context.Context, prefix string) iter.Seq2[version, error] {
	return func(yield func(version, error) bool) {
		for in := (listing{prefix: prefix}); ; {
			page, err := b.list(ctx, in)
			if err == nil && page.unreadable > 0 {
				err = s3errors.New(syscall.EILSEQ, "listing holds keys that the server cannot write")
			}
			if err != nil {
				yield(version{}, err)
				return
			}
			for _, v := range page.versions {
				if !yield(v, nil) {
					return
				}
			}
			if page.next == "" {
				return
			}
			in.token = page.next
		}
	}
}
