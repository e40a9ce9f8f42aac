package listing

import (
	"slices"
	"strings"

	"github.com/babelftp/babelftp/driver/internal/s3api"
	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// names returns all keys and prefixes of a page in order. The prefixes have no trailing slashes, and the marker of the
// directory itself is left out.
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

// inOrder reports whether the page contains all keys up to its last one, in order. This is not the case for directory
// buckets of AWS, and for servers that cannot encode every key.
func inOrder(p *s3api.Page) bool {
	return p.Encoded && p.Unreadable == 0 && slices.IsSorted(p.Prefixes) &&
		slices.IsSortedFunc(p.Versions, func(a, b s3api.Version) int { return strings.Compare(a.Key, b.Key) })
}

// join returns a page with the entries of two consecutive pages.
func join(p, following *s3api.Page) *s3api.Page {
	return &s3api.Page{
		Versions: append(p.Versions, following.Versions...), Prefixes: append(p.Prefixes, following.Prefixes...),
		Unreadable: p.Unreadable + following.Unreadable, Next: following.Next, Encoded: p.Encoded && following.Encoded,
	}
}

// cut removes all entries except those after the key after, up to and including the key end. An empty key means no
// bound.
func cut(p *s3api.Page, after, end string) {
	outside := func(key string) bool { return key <= after || end != "" && key > end }
	p.Versions = slices.DeleteFunc(p.Versions, func(v s3api.Version) bool { return outside(v.Key) })
	p.Prefixes = slices.DeleteFunc(p.Prefixes, outside)
}

// removeRepeated removes the prefixes in before, the prefixes of the previous page. It returns all prefixes of the page
// in order, for the next call. Some servers list a directory again if its keys continue on the next page.
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
