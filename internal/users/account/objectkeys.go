package account

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/storage/view"
)

// keysIn returns the function for the keys of [view.Mount]: the names by objects.rules under which files are stored in
// a mount. It returns nil if the tenant has no such rules.
func (u *User) keysIn(m mount) func(context.Context, string, driver.Origin) string {
	if !haveKeys(u.Tenant.rules) {
		return nil
	}
	depth := segmentCount(view.Canonical(path.Join(u.Root, m.at)))
	return func(ctx context.Context, name string, origin driver.Origin) string {
		full := view.Canonical(path.Join(u.Root, m.at, name))
		for _, r := range u.Tenant.rules {
			matched := segmentCount(path.Clean("/" + r.Path))
			if r.Set.Key == "" || !r.covers(full, u.Name, origin) || segmentCount(full) <= matched {
				continue
			}
			dir := firstSegments(path.Clean(name), matched-depth)
			values := u.placeholders(ctx, full)
			values[config.Random] = strings.ToLower(rand.Text()[:randomLength])
			return dir + expandKey(r.Set.Key, values, maxKeyBytes-len(m.prefix)-len(dir))
		}
		return ""
	}
}

// haveKeys reports whether any of the rules has a key.
func haveKeys(rules []objectRule) bool {
	return slices.ContainsFunc(rules, func(r objectRule) bool { return r.Set.Key != "" })
}

// segmentCount returns the number of segments of an absolute, clean pathname.
func segmentCount(name string) int {
	if name == "/" {
		return 0
	}
	return strings.Count(name, "/")
}

// firstSegments returns the directory of the first n segments of an absolute pathname, with a slash at the end.
func firstSegments(name string, n int) string {
	all := strings.Split(name, "/")
	return strings.Join(all[:max(n, 0)+1], "/") + "/"
}

// randomLength is the length of {random} in characters of 5 bits. Even among a trillion files with the same name in
// the same second, two hardly get the same key.
const randomLength = 16

// maxKeyBytes is the length of the longest key in bytes (S3).
const maxKeyBytes = 1024

// maxKeySegment is the length of the longest segment in bytes that every S3 server stores. Servers that keep objects in
// a file system, such as MinIO, allow no more.
const maxKeySegment = 255

// expandKey replaces the placeholders of a key. Values contain no slash afterwards, and a segment is never one that has
// a meaning in pathnames or is reserved. If a segment or the key is too long, the long values are cut, all after the
// same number of bytes.
func expandKey(template string, values map[string]string, room int) string {
	template = withRandom(template)
	for name, text := range values {
		values[name] = strings.Map(keyCharacter, text)
	}
	limit, key := maxKeySegment, ""
	for {
		short := maps.Clone(values)
		for name, text := range short {
			if len(text) > limit {
				short[name] = strings.ToValidUTF8(text[:limit], "")
			}
		}
		segments := strings.Split(template, "/")
		longest, replace := 0, replacer(short)
		for i, segment := range segments {
			segment = replace.Replace(segment)
			switch segment {
			case "", ".", "..", driver.Reserved:
				segment = "_" + segment
			}
			segments[i], longest = segment, max(longest, len(segment))
		}
		key = strings.Join(segments, "/")
		if longest <= maxKeySegment && len(key) <= room || limit == randomLength {
			return key
		}
		limit--
	}
}

// withRandom adds {random} to the end of a file's name in a key, before its extension, if the key does not contain it.
// It replaces {name}, so that a name that is cut keeps its extension.
func withRandom(template string) string {
	template = strings.ReplaceAll(template, "{name}", "{stem}{ext}")
	if strings.Contains(template, "{"+config.Random+"}") {
		return template
	}
	ext := path.Ext(template)
	if strings.HasSuffix(template, "{ext}") {
		ext = "{ext}"
	} else if strings.ContainsAny(ext, "{}/") {
		ext = ""
	}
	return strings.TrimSuffix(template, ext) + "-{" + config.Random + "}" + ext
}

// keyCharacter replaces a character that must not be in a value of a key.
func keyCharacter(r rune) rune {
	if r == '/' || r == '\\' || unicode.IsControl(r) || r == '\ufffe' || r == '\uffff' || r == utf8.RuneError {
		return '_'
	}
	return r
}

// dropBoxes returns a policy layer that allows a user neither to list nor to read where objects.rules have a key for
// files of the user.
func dropBoxes(rules []objectRule, user string) view.Layer {
	rights := view.AllRights()
	rights.List, rights.Read = false, false
	byPattern := map[string]view.Rights{}
	for _, r := range rules {
		if r.Set.Key != "" && r.matchesUser(user) {
			byPattern[path.Clean("/"+r.Path)] = rights
		}
	}
	return view.NewLayer(view.AllRights(), byPattern)
}

// CheckDropBoxes returns an error for each user in the configuration with the permission to list or read where
// objects.rules have a key for files of the user. The server does not give this permission to such users, and not to
// users from elsewhere either.
func CheckDropBoxes(cfg *config.Config) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(cfg.Tenants)) {
		tc := cfg.Tenants[name]
		rules := newObjectRules(tc.Objects.Rules)
		for _, user := range slices.Sorted(maps.Keys(tc.Users)) {
			if at := listable(tc, rules, config.NormalizeUser(user), tc.Users[user]); at != "" {
				errs = append(errs, fmt.Errorf(
					"tenants.%s.users.%s: may list or read files in %s, but objects.rules store them under keys that the user "+
						"does not know; remove list and read from the permissions there, or limit the rule to other users",
					name, user, at))
			}
		}
	}
	return errors.Join(errs...)
}

// listable returns a directory, in the user's view, in which the user may list or read files whose keys come from the
// rules, or an empty string.
func listable(tc *config.Tenant, rules []objectRule, name string, uc *config.User) string {
	for _, r := range rules {
		if r.Set.Key == "" || !r.matchesUser(name) {
			continue
		}
		if at, ok := r.path.Below(uc.Root); ok {
			if _, most := policyOf(tc, uc).Bounds(at); most.List || most.Read {
				return at
			}
		}
	}
	return ""
}

// warnListable logs a warning if a user has permissions that the server ignores; see [CheckDropBoxes]. It names one
// user, because all may have them.
func (t *Tenant) warnListable(log *slog.Logger) {
	for _, u := range t.users {
		if at := listable(t.Tenant, t.rules, u.Name, u.User); at != "" {
			log.Warn("ignored permissions to list and read files whose keys come from objects.rules",
				"tenant", t.Name, "user", u.Name, "directory", at)
			return
		}
	}
}
