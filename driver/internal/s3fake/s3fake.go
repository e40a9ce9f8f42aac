// Package s3fake is an S3 bucket for tests that takes time, in a bubble of testing/synctest. It answers ListObjectsV2
// only.
package s3fake

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/babelftp/babelftp/driver/internal/s3api"
)

// A Bucket is a bucket with empty objects on a server that takes a while. In a synctest bubble it takes no real time,
// which makes it the only server whose times can be compared on a machine that has other work.
type Bucket struct {
	s3api.Client
	RoundTrip time.Duration // there and back
	PageTime  time.Duration // for a page, one after another

	Mu       sync.Mutex
	Keys     []string // in order
	Requests int
	Busy     time.Time
	Before   func(s *Bucket, in *s3.ListObjectsV2Input) error
	After    func(out *s3.ListObjectsV2Output)
}

// ListObjectsV2 lists as S3 does. A token is the last key or prefix.
func (s *Bucket) ListObjectsV2(
	ctx context.Context, in *s3.ListObjectsV2Input, _ ...func(*s3.Options),
) (*s3.ListObjectsV2Output, error) {
	out, ready, err := s.answer(in)
	select {
	case <-time.After(time.Until(ready) + s.RoundTrip):
		return out, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *Bucket) answer(in *s3.ListObjectsV2Input) (*s3.ListObjectsV2Output, time.Time, error) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Requests++
	if now := time.Now(); s.Busy.Before(now) {
		s.Busy = now
	}
	s.Busy = s.Busy.Add(s.PageTime)
	if s.Before != nil {
		if err := s.Before(s, in); err != nil {
			return nil, s.Busy, err
		}
	}
	after := aws.ToString(in.StartAfter)
	if in.ContinuationToken != nil {
		after = *in.ContinuationToken
	}
	prefix, delimiter := aws.ToString(in.Prefix), aws.ToString(in.Delimiter)
	out := &s3.ListObjectsV2Output{EncodingType: types.EncodingTypeUrl, IsTruncated: aws.Bool(false)}
	last, count := "", 0
	at, _ := slices.BinarySearch(s.Keys, max(prefix, after))
	for _, key := range s.Keys[at:] {
		if !strings.HasPrefix(key, prefix) {
			break
		}
		entry := key
		if delimiter != "" {
			if end := strings.Index(key[len(prefix):], delimiter); end >= 0 {
				entry = key[:len(prefix)+end+len(delimiter)]
			}
		}
		if key <= after || entry <= after || entry == last {
			continue
		}
		if count == int(cmp.Or(aws.ToInt32(in.MaxKeys), 1000)) {
			out.IsTruncated, out.NextContinuationToken = aws.Bool(true), aws.String(last)
			break
		}
		if count++; entry == key {
			out.Contents = append(out.Contents, types.Object{Key: aws.String(key)})
		} else {
			out.CommonPrefixes = append(out.CommonPrefixes, types.CommonPrefix{Prefix: aws.String(entry)})
		}
		last = entry
	}
	if s.After != nil {
		s.After(out)
	}
	return out, s.Busy, nil
}

// Numbered returns so many keys of files in the directory "dir".
func Numbered(count int) []string {
	keys := make([]string, count)
	for i := range keys {
		keys[i] = fmt.Sprintf("dir/%06d", i)
	}
	return keys
}

// Far returns a bucket with keys on a server that is far away.
func Far(keys ...string) *Bucket {
	slices.Sort(keys)
	return &Bucket{RoundTrip: 40 * time.Millisecond, PageTime: 5 * time.Millisecond, Keys: slices.Compact(keys)}
}
