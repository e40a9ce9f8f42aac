package listing

import (
	"slices"
	"strings"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// names returns all keys and prefixes in order, without the slashes at the end of prefixes, and without the marker of
// the directory itself.
func names(p *s3api.Page, dir string) []string {
	names := make([]string, 0, len(p.Versions)+len(p.Prefixes))
	for _, v := range p.Versions {
		if v.Key != dir {
			names = append(names, v.Key)
		}
	}
	for _, prefix := range p.Prefixes {
		names = append(names, strings.TrimSuffix(prefix, s3object.Separator))
	}
	slices.Sort(names)
	return names
}

// inOrder tells whether the page has all keys from its begin to its last key, in order. Most servers sort keys.
// Directory buckets of AWS do not, nor do servers that cannot write each key.
func inOrder(p *s3api.Page) bool {
	return p.Encoded && p.Unreadable == 0 && slices.IsSorted(p.Prefixes) &&
		slices.IsSortedFunc(p.Versions, func(a, b s3api.Version) int { return strings.Compare(a.Key, b.Key) })
}

// join returns a page with the entries of two pages that follow each other.
func join(p, following *s3api.Page) *s3api.Page {
	return &s3api.Page{
		Versions: append(p.Versions, following.Versions...), Prefixes: append(p.Prefixes, following.Prefixes...),
		Unreadable: p.Unreadable + following.Unreadable, Next: following.Next, Encoded: p.Encoded && following.Encoded,
	}
}

// cut keeps the entries after one key, up to another one. An empty string is no bound.
func cut(p *s3api.Page, after, end string) {
	outside := func(key string) bool { return key <= after || end != "" && key > end }
	p.Versions = slices.DeleteFunc(p.Versions, func(v s3api.Version) bool { return outside(v.Key) })
	p.Prefixes = slices.DeleteFunc(p.Prefixes, outside)
}

// removeRepeated removes the prefixes that the previous page also had, and returns the others in order. Some servers
// list a directory again if its keys continue on the next page.
func removeRepeated(p *s3api.Page, before []string) []string {
	all := slices.Sorted(slices.Values(p.Prefixes))
	if len(before) > 0 {
		p.Prefixes = slices.DeleteFunc(p.Prefixes, func(prefix string) bool {
			_, repeated := slices.BinarySearch(before, prefix)
			return repeated
		})
	}
	return all
}
