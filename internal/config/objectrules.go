package config

import (
	"maps"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// An ObjectRule gives attributes to the files that match its path and its user. For each attribute, the first rule of
// the list that has it applies.
type ObjectRule struct {
	// Pattern for paths in the tenant, as in `path_permissions`. It also matches everything below.
	Path string `yaml:"path" default:"all"`
	// Pattern for the names of users, such as `scanner-*`. In a pattern, `*` does not match a slash.
	User string `yaml:"user" default:"all"`
	// Apply the rule to uploads only. Renamed and copied files keep their attributes.
	Keep bool `yaml:"keep"`
	// Attributes of the files.
	Set ObjectAttributes `yaml:"set"`
}

// ObjectAttributes are the attributes that a rule gives to files. Values of `tags`, `metadata` and `kms_key` may have
// placeholders: `{user}`, `{tenant}`, `{address}`, `{session}`, `{date}`, `{time}`, `{name}`, `{stem}`, `{ext}` and
// `{language}`.
type ObjectAttributes struct {
	// Key, below the directory that `path` matches, under which a file is stored instead of its name, such as
	// `dt={date}/{user}/{stem}-{time}{ext}`. Makes a drop box, in which the users cannot list or read. Also has the
	// placeholder `{random}`, which is added to the end of the name if the key does not contain it.
	Key string `yaml:"key" default:"none"`
	// Tags, up to 10 together with `objects.tags`. Characters that S3 does not allow become `_`, and values are cut
	// after 256 characters.
	Tags map[string]string `yaml:"tags" default:"none"`
	// User metadata (`x-amz-meta-*`), with names in lower case. Values are percent-encoded if they are not ASCII. An
	// entry that does not fit into the 2 KiB of S3 is omitted.
	Metadata map[string]string `yaml:"metadata" default:"none"`
	// Storage class, such as `GLACIER_IR`.
	StorageClass string `yaml:"storage_class" default:"none"`
	// Media type.
	ContentType string `yaml:"content_type" default:"none"`
	// Cache-Control header.
	CacheControl string `yaml:"cache_control" default:"none"`
	// Object Lock retention of new versions. The bucket needs Object Lock.
	Retain Retention `yaml:"retain"`
	// Object Lock legal hold of new versions. The bucket needs Object Lock.
	LegalHold *bool `yaml:"legal_hold" default:"none"`
	// ID, ARN or alias of the KMS key that encrypts the files (SSE-KMS).
	KMSKey string `yaml:"kms_key" default:"none"`
}

// Retention is the time for which S3 refuses to delete a version.
type Retention struct {
	// `governance` can be lifted by administrators with a special permission, `compliance` by nobody.
	Mode RetentionMode `yaml:"mode" default:"none"`
	// Number of days.
	Days int `yaml:"days" default:"required with mode"`
}

// A RetentionMode is a mode of Object Lock in lower case.
type RetentionMode string

// Values implements [yamlconf.Enum].
func (RetentionMode) Values() []string { return []string{"governance", "compliance"} }

// maxRetention is the maximum number of days for which S3 retains an object: 100 years.
const maxRetention = 36_500

// Placeholders returns the names of the placeholders in values of [ObjectAttributes].
func Placeholders() []string {
	return []string{"user", "tenant", "address", "session", "date", "time", "name", "stem", "ext", "language"}
}

// Random is the placeholder for a random text, which only keys can have.
const Random = "random"

// Limits of a key in a rule, in bytes. They leave room for the values and the prefix.
const (
	maxKey        = 512
	maxKeySegment = 128
)

// checkKey validates a key.
func checkKey(v *validator, p yamlconf.Path, key string) {
	if key == "" {
		return
	}
	fixed := withoutPlaceholders(v, p, key, Random)
	segments := strings.Split(key, "/")
	switch {
	case strings.ContainsAny(fixed, "{}"):
		v.report(p, "has a brace without its counterpart: write placeholders such as {user}")
	case strings.HasSuffix(key, "/"):
		v.report(p, "ends with a slash: add the name of the file, such as {name}")
	case strings.Contains(fixed, "..") || strings.Contains(fixed, value.Reserved):
		v.report(p, "must not contain .. or %s", value.Reserved)
	case len(key) > maxKey:
		v.report(p, "is too long: write at most %d bytes", maxKey)
	case slices.ContainsFunc(segments, func(s string) bool { return len(s) > maxKeySegment }):
		v.report(p, "has a segment that is too long: write at most %d bytes between two slashes", maxKeySegment)
	default:
		if broken := value.PrefixProblem(key); broken != "" {
			v.report(p, "%q is not valid: %s", key, broken)
		}
	}
}

// checkRules validates the rules.
func (o *Objects) checkRules(v *validator, p yamlconf.Path) {
	tags := map[string]bool{}
	for key := range o.Tags {
		tags[key] = true
	}
	for i := range o.Rules {
		r, at := &o.Rules[i], p.Child(strconv.Itoa(i))
		if r.Path != "" && r.Path != "/" {
			if broken := value.PatternProblem(r.Path); broken != "" {
				v.report(at.Child("path"), "%s", broken)
			}
		}
		if _, err := path.Match(r.User, ""); err != nil {
			v.report(at.Child("user"), "%q is not a pattern: close the [, or escape special characters with \\", r.User)
		}
		r.Set.check(v, at.Child("set"))
		if r.Set.KMSKey != "" && o.Encryption == EncryptionCustomer {
			v.report(at.Child("set").Child("kms_key"), "conflicts with encryption: customer: remove one of them")
		}
		for key := range r.Set.Tags {
			tags[key] = true
		}
	}
	if len(tags) > maxObjectTags {
		v.report(p, "and tags have %d different tags, but S3 allows at most %d: remove some", len(tags), maxObjectTags)
	}
}

// check validates the attributes at p.
func (a *ObjectAttributes) check(v *validator, p yamlconf.Path) {
	if reflect.ValueOf(*a).IsZero() {
		v.report(p, "has no attributes: write at least one, or remove the rule")
	}
	checkKey(v, p.Child("key"), a.Key)
	for key, text := range a.Tags {
		at := p.Child("tags").Child(key)
		if broken := value.TagProblem(key, withoutPlaceholders(v, at, text)); broken != "" {
			v.report(at, "%s", broken)
		}
	}
	for key, text := range a.Metadata {
		at := p.Child("metadata").Child(key)
		withoutPlaceholders(v, at, text)
		if broken := value.MetadataProblem(key, text); broken != "" {
			v.report(at, "%s", broken)
		}
	}
	checkKMSKey(v, p.Child("kms_key"), withoutPlaceholders(v, p.Child("kms_key"), a.KMSKey))
	if a.ContentType != "" {
		for _, broken := range value.ContentTypeProblems(".ext", a.ContentType) {
			v.report(p.Child("content_type"), "%s", broken)
		}
	}
	checkCacheControl(v, p.Child("cache_control"), a.CacheControl)
	checkStorageClass(v, p.Child("storage_class"), a.StorageClass)
	days := p.Child("retain").Child("days")
	switch {
	case a.Retain.Mode == "" && a.Retain.Days != 0:
		v.report(p.Child("retain").Child("mode"), "is missing: write governance or compliance")
	case a.Retain.Mode != "" && (a.Retain.Days < 1 || a.Retain.Days > maxRetention):
		v.report(days, "must be 1 to %d", maxRetention)
	}
}

// withoutPlaceholders returns a value without its placeholders, and reports unknown ones. more are placeholders that
// only this value can have.
func withoutPlaceholders(v *validator, p yamlconf.Path, text string, more ...string) string {
	known := append(Placeholders(), more...)
	return placeholders.ReplaceAllStringFunc(text, func(found string) string {
		if !slices.Contains(known, strings.Trim(found, "{}")) {
			v.report(p, "has the unknown placeholder %s: write %s", found, yamlconf.OneOf(known))
		}
		return ""
	})
}

// placeholders matches text that is written like a placeholder.
var placeholders = regexp.MustCompile(`\{[^{}]*\}`)

// Add adds the attributes of a later rule that the earlier rules do not have.
func (a *ObjectAttributes) Add(later ObjectAttributes) {
	tags, metadata := joined(later.Tags, a.Tags), joined(later.Metadata, a.Metadata)
	*a = fillUnset(*a, later)
	a.Tags, a.Metadata = tags, metadata
}

// joined returns the entries of both maps. Entries of y replace entries of x.
func joined(x, y map[string]string) map[string]string {
	all := make(map[string]string, len(x)+len(y))
	maps.Copy(all, x)
	maps.Copy(all, y)
	return all
}
