package s3object_test

import (
	"path"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/babelftp/babelftp/driver/drivertest"
	"github.com/babelftp/babelftp/driver/internal/s3object"
)

// FuzzKeyRoundTrip: a name that has a key gets its cleaned self back from the key, and a key that has a name gets
// itself back from the name.
func FuzzKeyRoundTrip(f *testing.F) {
	for _, n := range append(drivertest.Names(), drivertest.UnrepresentableKeys()...) {
		f.Add("", n.Path)
		f.Add("in/", n.Path+"/")
	}
	for _, odd := range []string{"", "/", ".", "..", "a//b", "/a", "a/./b", "a/../b", "a/", "a//"} {
		f.Add("", odd)
		f.Add("in-", odd)
	}
	f.Fuzz(func(t *testing.T, prefix, s string) {
		space := s3object.KeySpace(prefix)
		if key, err := space.Key(s); err == nil {
			name, ok := space.Name(key)
			if !ok || name != path.Clean("/"+s) {
				t.Errorf("name %q has the key %q, which has the name %q, %v", s, key, name, ok)
			}
			if marker, ok := space.Name(space.Directory(key)); !ok || marker != name {
				t.Errorf("name %q has the directory %q, which has the name %q, %v", s, space.Directory(key), marker, ok)
			}
			if len(key) > s3object.MaxKeyBytes || !strings.HasPrefix(key, prefix) ||
				!utf8.ValidString(key[len(prefix):]) {
				t.Errorf("name %q has the key %q", s, key)
			}
		}
		name, ok := space.Name(s)
		if !ok {
			return
		}
		key, err := space.Key(name)
		if err != nil && len(s) <= s3object.MaxKeyBytes {
			t.Errorf("key %q has the name %q, which has none: %v", s, name, err)
		}
		if err == nil && key != s && space.Directory(key) != s {
			t.Errorf("key %q has the name %q, which has the key %q", s, name, key)
		}
	})
}
