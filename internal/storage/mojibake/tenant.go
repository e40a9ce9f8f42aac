package mojibake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/pathname"
	"github.com/babelftp/babelftp/internal/storage/s3client"
)

// ErrNoCharset reports a tenant whose clients only use UTF-8.
var ErrNoCharset = errors.New("no charset is configured")

// Open verifies the buckets of a tenant, and returns the tenant. others are all buckets of the configuration. If
// charset is not nil, it replaces the configured ones.
func Open(
	ctx context.Context, t *config.Tenant, bucket *s3client.Bucket, others []*s3client.Bucket,
	charset *pathname.Encoding,
) (*Tenant, error) {
	opened := &Tenant{
		Encodings:  encodingsOf(t),
		Normalize:  t.Compatibility.NormalizationOf().Normalize,
		Configured: configuredDirectories(t),
	}
	if charset != nil {
		opened.Encodings = func(string) []*pathname.Encoding { return []*pathname.Encoding{charset} }
	} else if !hasCharset(t) {
		return nil, ErrNoCharset
	}
	for _, b := range append([]*s3client.Bucket{bucket}, bucket.Folders...) {
		if err := b.Verify(ctx, slog.New(slog.DiscardHandler)); err != nil {
			return nil, err
		}
		files, err := driver.New(b.ObjectClient(), b.Name, &driver.Options{
			Prefix: b.Prefix, Profile: b.SessionProfile(), Endpoint: b.Endpoint, Objects: b.Objects, NoOverwrite: true,
		})
		if err != nil {
			return nil, fmt.Errorf("%v: %w", b, err)
		}
		p := Place{Dir: path.Clean("/" + b.Folder), Files: files}
		for _, other := range others {
			if dir, ok := directoryOf(other, b, p.Dir); ok {
				p.Skip = append(p.Skip, dir)
				opened.Configured[dir] = other.String()
			}
		}
		opened.Places = append(opened.Places, p)
	}
	return opened, nil
}

// directoryOf returns the directory below dir that belongs to another bucket of the configuration or to another folder
// of the same tenant. dir shows bucket b.
func directoryOf(other, b *s3client.Bucket, dir string) (found string, ok bool) {
	if other.Tenant == b.Tenant && other.Folder != "" && other.Folder != dir && isBelow(other.Folder, dir) {
		return other.Folder, true
	}
	below, ok := strings.CutPrefix(other.Prefix, b.Prefix)
	if !ok || below == "" || !other.SamePlace(b) {
		return "", false
	}
	return path.Join(dir, below), true
}

// configuredDirectories maps the directories in a tenant's configuration to their keys.
func configuredDirectories(t *config.Tenant) map[string]string {
	found := map[string]string{}
	for dir := range t.DirectoryEncodings {
		found[dir] = "directory_encodings"
	}
	for dir := range t.Folders {
		found[dir] = "folders"
	}
	for name, u := range t.Users {
		if root := path.Clean("/" + u.Root); root != "/" {
			found[root] = "the root of the user " + name
		}
		if home := path.Join("/", u.Root, u.Home); home != path.Clean("/"+u.Root) {
			found[home] = "the home of the user " + name
		}
	}
	return found
}

// hasCharset reports whether the configuration of a tenant names a legacy charset.
func hasCharset(t *config.Tenant) bool {
	named := []*pathname.Encoding{t.Compatibility.Charset.Encoding}
	for _, e := range t.DirectoryEncodings {
		named = append(named, e.Encoding)
	}
	for _, c := range t.CompatibilityByNetwork {
		named = append(named, c.Charset.Encoding)
	}
	for _, u := range t.Users {
		named = append(named, u.Compatibility.Charset.Encoding)
	}
	return slices.ContainsFunc(named, func(e *pathname.Encoding) bool { return !e.UTF8() && !e.Raw() })
}

// encodingsOf returns a function that returns the encodings of names in a directory: the one in directory_encodings,
// or else the encodings of the tenant, its networks, and the users who see the directory.
func encodingsOf(t *config.Tenant) func(dir string) []*pathname.Encoding {
	byDirectory := make(map[string]*pathname.Encoding, len(t.DirectoryEncodings))
	for dir, e := range t.DirectoryEncodings {
		byDirectory[norm.NFC.String(dir)] = e.Encoding
	}
	rules := pathname.Rules{DirectoryEncodings: byDirectory}
	everywhere := []*pathname.Encoding{t.Compatibility.Charset.Encoding}
	for _, network := range slices.SortedFunc(maps.Keys(t.CompatibilityByNetwork), func(a, b value.Network) int {
		return strings.Compare(a.String(), b.String())
	}) {
		everywhere = append(everywhere, t.CompatibilityByNetwork[network].Charset.Encoding)
	}
	type own struct {
		root     string
		encoding *pathname.Encoding
	}
	var users []own
	for _, name := range slices.Sorted(maps.Keys(t.Users)) {
		u := t.Users[name]
		if e := u.Compatibility.Charset.Encoding; e != nil {
			users = append(users, own{norm.NFC.String(path.Clean("/" + u.Root)), e})
		}
	}
	return func(dir string) []*pathname.Encoding {
		if e := rules.EncodingOf(dir); e != nil {
			return []*pathname.Encoding{e}
		}
		found := slices.Clone(everywhere)
		for _, u := range users {
			if isBelow(norm.NFC.String(dir), u.root) {
				found = append(found, u.encoding)
			}
		}
		return found
	}
}
