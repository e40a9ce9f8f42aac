package s3object_test

import (
	"path"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// FuzzKeyRoundTrip checks that the key of a name is the prefix and the cleaned name, and that listings show the name
// from which the same key results.
func FuzzKeyRoundTrip(f *testing.F) {
	for _, n := range append(drivertest.Names(), drivertest.UnrepresentableKeys()...) {
		f.Add("", n.Path)
		f.Add("in/", n.Path+"/")
	}
	for _, odd := range []string{"", "/", ".", "..", "a//b", "/a", "a/./b", "a/../b", "a/", "a//"} {
		f.Add("", odd)
		f.Add("in-", odd)
	}
	listed := func(key string) bool {
		for segment := range strings.SplitSeq(key, s3object.Separator) {
			if !s3object.Representable(segment) {
				return false
			}
		}
		return true
	}
	f.Fuzz(func(t *testing.T, prefix, s string) {
		space := s3object.KeySpace(prefix)
		if key, err := space.Key(s); err == nil {
			rest, ok := strings.CutPrefix(key, prefix)
			if !ok || "/"+rest != path.Clean("/"+s) || !space.IsRoot(key) && !listed(rest) || len(key) > s3object.MaxKeyBytes {
				t.Errorf("name %q has the key %q", s, key)
			}
		}
		shown := strings.TrimSuffix(s, s3object.Separator)
		if !listed(shown) || len(prefix+shown) > s3object.MaxKeyBytes {
			return
		}
		if key, err := space.Key(shown); err != nil || key != prefix+shown {
			t.Errorf("a listing shows %q, which has the key %q, %v", shown, key, err)
		}
	})
}
