package s3api

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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

	"github.com/babelftp/babelftp/internal/base/s3error"
)

// fewKeys is the largest page size of a listing that only checks whether any key exists.
const fewKeys = 10

// lostToken replaces a continuation token that is a key with characters that the server or the decoder has replaced by
// U+FFFD. It cannot be confused with a real token, because keys do not contain NUL.
const lostToken = "\x00"

// A Listing holds the parameters of ListObjectsV2.
type Listing struct {
	Prefix    string
	Delimiter string
	Limit     int32  // page size; 0 for S3's default of 1,000
	Token     string // from the previous page, or empty
	After     string // lists only keys after this one; ignored if Token is set
}

// A Page is one response to a listing. Keys and prefixes are in order.
type Page struct {
	Versions   []Version
	Prefixes   []string
	Unreadable int    // number of keys that the server could not write
	Next       string // token of the next page; empty for the last page
	Encoded    bool   // the server percent-encodes every key
}

// Empty reports whether no key begins with the prefix of the listing.
func (p *Page) Empty() bool {
	return len(p.Versions) == 0 && len(p.Prefixes) == 0 && p.Unreadable == 0 && p.Next == ""
}

// Last returns the last key or prefix, or the empty string if the page has none.
func (p *Page) Last() string {
	last := ""
	if n := len(p.Versions); n > 0 {
		last = p.Versions[n-1].Key
	}
	if n := len(p.Prefixes); n > 0 {
		last = max(last, p.Prefixes[n-1])
	}
	return last
}

// List requests one page.
//
// Responses are XML, which cannot contain most control characters. So List requests percent-encoded keys. versitygw
// does not support that encoding and writes U+FFFD instead of such a character. List skips these keys and counts them
// as unreadable, because the key with the replacement character may belong to another object.
func (b *Bucket) List(ctx context.Context, l Listing) (*Page, error) {
	if l.Token == lostToken {
		return nil, s3error.New(
			syscall.EILSEQ,
			"S3 cannot return the start of the next page of a listing: the key contains characters that are invalid in XML")
	}
	in := &s3.ListObjectsV2Input{Bucket: &b.Name, Prefix: &l.Prefix, EncodingType: types.EncodingTypeUrl}
	if l.Delimiter != "" {
		in.Delimiter = &l.Delimiter
	}
	if l.Limit > 0 {
		in.MaxKeys = &l.Limit
	}
	if l.Token != "" {
		in.ContinuationToken = &l.Token
	} else if l.After != "" {
		in.StartAfter = &l.After
	}
	var begin time.Time // start of the last attempt
	timeout := listTimeout
	if l.Limit > 0 && l.Limit <= fewKeys {
		timeout = headTimeout
	}
	var decoder *listDecoder
	out, err := repeat(ctx, timeout, false, func(ctx context.Context) (*s3.ListObjectsV2Output, error) {
		begin, decoder = time.Now(), new(listDecoder)
		return call(ctx, b, b.client.ListObjectsV2, in, decoder.install)
	})
	if err != nil {
		return nil, err
	}
	if out.Name == nil && out.IsTruncated == nil && len(out.Contents)+len(out.CommonPrefixes) == 0 && !decoder.isList {
		return nil, s3error.FromSDK(s3error.ErrNoResult) // not a listing at all, so it does not mean an empty directory
	}
	p := &Page{
		Versions: make([]Version, 0, len(out.Contents)), Prefixes: make([]string, 0, len(out.CommonPrefixes)),
	}
	if p.Encoded, err = b.isEncoded(ctx, out); err != nil {
		return nil, err
	}
	if err := p.setNext(l, out, decoder); err != nil {
		return nil, err
	}
	if err := b.addEntries(ctx, p, l, out, begin); err != nil {
		return nil, err
	}
	return p, nil
}

// setNext sets the token of the next page. Some servers send a token without IsTruncated.
func (p *Page) setNext(l Listing, out *s3.ListObjectsV2Output, decoder *listDecoder) error {
	token := aws.ToString(out.NextContinuationToken)
	if out.IsTruncated == nil && token == "" || out.IsTruncated != nil && !*out.IsTruncated {
		return nil
	}
	if token == "" || token == l.Token {
		return s3error.New(
			syscall.EIO, "the page of a listing has no continuation token for the next page")
	}
	if p.Next = token; strings.ContainsRune(token, utf8.RuneError) && (!p.Encoded || !decoder.hasToken()) {
		p.Next = lostToken
	}
	return nil
}

// addEntries adds the keys and prefixes of a response, each once.
func (b *Bucket) addEntries(
	ctx context.Context, p *Page, l Listing, out *s3.ListObjectsV2Output, begin time.Time,
) error {
	for _, o := range out.Contents {
		key, ok, err := p.decodeBelow(l.Prefix, o.Key)
		switch prefix, within := l.group(key); {
		case err != nil:
			return err
		case !ok:
			p.Unreadable++
		case within: // the server does not support the delimiter
			p.Prefixes = append(p.Prefixes, prefix)
		default:
			v := Version{
				Bucket: b, Key: key, Size: aws.ToInt64(o.Size), ModTime: aws.ToTime(o.LastModified),
				ETag: validator(o.ETag, o.Size, o.LastModified), StorageClass: types.StorageClass(o.StorageClass),
				Seen: begin,
			}
			if o.Size == nil || o.LastModified == nil {
				switch v, _, err = b.Head(ctx, key); {
				case errors.Is(err, fs.ErrNotExist):
					continue // deleted since
				case err != nil:
					return err
				}
			}
			p.Versions = append(p.Versions, v)
		}
	}
	for _, o := range out.CommonPrefixes {
		prefix, ok, err := p.decodeBelow(l.Prefix, o.Prefix)
		switch {
		case err != nil:
			return err
		case !ok:
			p.Unreadable++
		default:
			p.Prefixes = append(p.Prefixes, prefix)
		}
	}
	p.Versions = unique(p.Versions, func(v Version) string { return v.Key })
	p.Prefixes = unique(p.Prefixes, func(prefix string) string { return prefix })
	return nil
}

// group returns the common prefix that represents a key in a listing with a delimiter.
func (l *Listing) group(key string) (prefix string, ok bool) {
	if l.Delimiter == "" || len(key) <= len(l.Prefix) {
		return "", false
	}
	segment, _, found := strings.Cut(key[len(l.Prefix):], l.Delimiter)
	return l.Prefix + segment + l.Delimiter, found
}

// unique removes all entries with the same key except the first.
func unique[T any](entries []T, key func(T) string) []T {
	sorted := true
	for i := 1; i < len(entries) && sorted; i++ {
		sorted = key(entries[i-1]) < key(entries[i])
	}
	if sorted {
		return entries
	}
	seen := make(map[string]bool, len(entries))
	return slices.DeleteFunc(entries, func(entry T) bool {
		twice := seen[key(entry)]
		seen[key(entry)] = true
		return twice
	})
}

// isEncoded reports whether the keys of a response are percent-encoded. Some servers echo the parameter and encode
// nothing. Others encode and do not say so: then listing one of the keys as it is written shows whether that key
// exists.
func (b *Bucket) isEncoded(ctx context.Context, out *s3.ListObjectsV2Output) (bool, error) {
	var escaped *string // a key that changes when it is decoded
	for key := range keysOf(out) {
		text := aws.ToString(key)
		decoded, err := url.QueryUnescape(text)
		if err != nil || strings.ContainsFunc(text, isPlain) {
			return false, nil
		}
		if decoded != text && strings.Contains(text, "%") && escaped == nil {
			escaped = key
		}
	}
	if out.EncodingType == types.EncodingTypeUrl || escaped == nil {
		return out.EncodingType == types.EncodingTypeUrl, nil
	}
	found, err := repeat(ctx, headTimeout, false, func(ctx context.Context) (*s3.ListObjectsV2Output, error) {
		return call(ctx, b, b.client.ListObjectsV2,
			&s3.ListObjectsV2Input{Bucket: &b.Name, Prefix: escaped, MaxKeys: aws.Int32(1)})
	})
	return err == nil && len(found.Contents) == 0, err
}

// isPlain reports whether a character never occurs in a percent-encoded key. The replacement character does not count,
// because it stands for a character that XML cannot contain.
func isPlain(r rune) bool { return (r <= ' ' || r > '~') && r != utf8.RuneError }

// keysOf yields all keys and prefixes of a response, as they are written.
func keysOf(out *s3.ListObjectsV2Output) iter.Seq[*string] {
	return func(yield func(*string) bool) {
		for _, o := range out.Contents {
			if !yield(o.Key) {
				return
			}
		}
		for _, o := range out.CommonPrefixes {
			if !yield(o.Prefix) {
				return
			}
		}
	}
}

// decode decodes a key. It returns false for a key that the server could not encode.
func (p *Page) decode(encoded *string) (key string, ok bool) {
	key = aws.ToString(encoded)
	if strings.ContainsRune(key, utf8.RuneError) { // inserted by the server or by the decoder
		return key, false
	}
	if !p.Encoded {
		return key, true
	}
	key, err := url.QueryUnescape(key)
	return key, err == nil
}

// decodeBelow decodes a key of a listing. It returns an error if the key lacks the prefix of the listing, because then
// the server or a proxy has listed something else.
func (p *Page) decodeBelow(prefix string, encoded *string) (key string, ok bool, err error) {
	if key, ok = p.decode(encoded); ok && !strings.HasPrefix(key, prefix) {
		return key, false, s3error.New(
			syscall.EIO, fmt.Sprintf("S3 listed the key %q, which does not begin with the prefix %q", key, prefix))
	}
	return key, ok, nil
}

// Pages yields the pages of a listing, until the last page or the first error.
func (b *Bucket) Pages(ctx context.Context, in Listing) iter.Seq2[*Page, error] {
	return func(yield func(*Page, error) bool) {
		for {
			page, err := b.List(ctx, in)
			if !yield(page, err) || err != nil || page.Next == "" {
				return
			}
			in.Token = page.Next
		}
	}
}

// Walk yields every object whose key begins with prefix, in the order in which S3 lists them. The error is EILSEQ if
// the server could not encode a key, because callers need all of them.
func (b *Bucket) Walk(ctx context.Context, prefix string) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		for page, err := range b.Pages(ctx, Listing{Prefix: prefix}) {
			if err == nil && page.Unreadable > 0 {
				err = s3error.New(syscall.EILSEQ, "S3 cannot list keys with characters that are invalid in XML")
			}
			if err != nil {
				yield(Version{}, err)
				return
			}
			for _, v := range page.Versions {
				if !yield(v, nil) {
					return
				}
			}
		}
	}
}

// WalkInOrder is like Walk, but sorts by key. If the server does not list in that order, it keeps all versions in
// memory.
func (b *Bucket) WalkInOrder(ctx context.Context, prefix string) iter.Seq2[Version, error] {
	if b.Profile.SortedListings {
		return b.Walk(ctx, prefix)
	}
	return func(yield func(Version, error) bool) {
		var versions []Version
		for v, err := range b.Walk(ctx, prefix) {
			if err != nil {
				yield(Version{}, err)
				return
			}
			versions = append(versions, v)
		}
		slices.SortFunc(versions, func(a, b Version) int { return strings.Compare(a.Key, b.Key) })
		for _, v := range versions {
			if !yield(v, nil) {
				return
			}
		}
	}
}
