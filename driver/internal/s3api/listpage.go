package s3api

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
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/internal/base/s3error"
)

// fewKeys is how many keys a listing has at most that only looks whether there are any.
const fewKeys = 10

// lostToken stands for a token that is a key with characters which the server, or the decoder, has replaced by
// U+FFFD. No key has a NUL.
const lostToken = "\x00"

// A Listing holds the parameters of ListObjectsV2.
type Listing struct {
	Prefix    string
	Delimiter string
	Limit     int32  // of a page; 0 for S3's own 1,000
	Token     string // of the page before, or empty
	After     string // the key before the first one, without a token
}

// A Page is an answer to a listing, with keys and prefixes in order.
type Page struct {
	Versions   []Version
	Prefixes   []string
	Unreadable int    // keys the server could not write
	Next       string // token of the next page, or empty
	Limit      int32  // of the request
	Encoded    bool   // the server writes every key, in percent-encoding
	Took       time.Duration
	Date       time.Time // of the answer, by the clock of S3 where that tells it
}

// Empty tells whether no key has the prefix of the listing.
func (p *Page) Empty() bool {
	return len(p.Versions) == 0 && len(p.Prefixes) == 0 && p.Unreadable == 0 && p.Next == ""
}

// Last returns the last key or prefix, empty when there is none.
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
// Answers are XML, which cannot hold most control characters. So List requests keys in percent-encoding. versitygw
// does not know that encoding, and writes U+FFFD in place of such a character. Then the key is unknown, and List
// leaves it out, because another object may have the name that is left.
func (b *Bucket) List(ctx context.Context, l Listing) (*Page, error) {
	if l.Token == lostToken {
		return nil, s3error.New(
			syscall.EILSEQ,
			"S3 cannot tell where the next page of a listing begins: the key has characters that XML does not have")
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
	var begin time.Time // of the last attempt
	timeout := listTimeout
	if l.Limit > 0 && l.Limit <= fewKeys {
		timeout = lookTimeout
	}
	var decoder *listDecoder
	out, err := ask(ctx, timeout, false, func(ctx context.Context) (*s3.ListObjectsV2Output, error) {
		begin, decoder = time.Now(), new(listDecoder)
		return b.client.ListObjectsV2(ctx, in, b.once, decoder.install)
	})
	if err != nil {
		return nil, err
	}
	if out.Name == nil && out.IsTruncated == nil && len(out.Contents)+len(out.CommonPrefixes) == 0 {
		return nil, s3error.FromSDK(s3error.ErrNoResult) // and not an empty directory
	}
	p := &Page{
		Versions: make([]Version, 0, len(out.Contents)), Prefixes: make([]string, 0, len(out.CommonPrefixes)),
		Encoded: out.EncodingType == types.EncodingTypeUrl, Limit: l.Limit, Took: time.Since(begin),
	}
	date, ok := awsmiddleware.GetServerTime(out.ResultMetadata)
	if p.Date = date; !ok {
		p.Date = time.Now()
	}
	if aws.ToBool(out.IsTruncated) {
		p.Next = aws.ToString(out.NextContinuationToken)
		if p.Next == "" || p.Next == l.Token {
			return nil, s3error.New(
				syscall.EIO, "S3 answered a page of a listing with the continuation token of the page before")
		}
		if strings.ContainsRune(p.Next, utf8.RuneError) && (!p.Encoded || !decoder.hasToken()) {
			p.Next = lostToken
		}
	}
	for _, o := range out.Contents {
		if key, ok := p.decode(o.Key); ok && strings.HasPrefix(key, l.Prefix) {
			p.Versions = append(p.Versions, Version{
				Bucket: b, Key: key, Size: aws.ToInt64(o.Size), ModTime: aws.ToTime(o.LastModified),
				ETag: validator(o.ETag, o.Size, o.LastModified), StorageClass: types.StorageClass(o.StorageClass),
				Seen: begin,
			})
		} else {
			p.Unreadable++
		}
	}
	for _, o := range out.CommonPrefixes {
		if prefix, ok := p.decode(o.Prefix); ok && strings.HasPrefix(prefix, l.Prefix) {
			p.Prefixes = append(p.Prefixes, prefix)
		} else {
			p.Unreadable++
		}
	}
	return p, nil
}

// decode decodes a key. It returns false for a key that the server could not encode.
func (p *Page) decode(encoded *string) (key string, ok bool) {
	key = aws.ToString(encoded)
	if strings.ContainsRune(key, utf8.RuneError) { // written by the server, or by the decoder
		return key, false
	}
	if !p.Encoded {
		return key, true
	}
	key, err := url.QueryUnescape(key)
	return key, err == nil
}

// Pages lists all pages from the first one of a listing on, until an error.
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

// Walk lists every object whose key starts with prefix, in the order of the keys. The error is EILSEQ if the server
// could not encode a key, because the caller needs all keys.
func (b *Bucket) Walk(ctx context.Context, prefix string) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		for page, err := range b.Pages(ctx, Listing{Prefix: prefix}) {
			if err == nil && page.Unreadable > 0 {
				err = s3error.New(syscall.EILSEQ, "S3 cannot list keys with characters that XML does not have")
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

// WalkInOrder is Walk in the order of the keys. Where the server does not list in that order, it holds all versions
// of the directory.
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
