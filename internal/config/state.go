package config

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/babelftp/babelftp/internal/base/keyring"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// State is a place in S3 where replicas share bans, failed logins, last logins, ACME certificates and the keys of TLS
// session tickets. The S3 server must support conditional writes.
type State struct {
	// Bucket, which may also be the bucket of a tenant.
	Bucket string `yaml:"bucket" default:"none"`
	// Prefix of all keys. Users must not see it; they never see `.babelftp/`.
	Prefix string `yaml:"prefix" default:".babelftp/state/"`
	// Encryption keys, separated by spaces or line breaks, each the Base64 of 32 random bytes (`openssl rand -base64
	// 32`). The first encrypts, and all decrypt.
	Keys value.Secret `yaml:"keys" default:"required with bucket"`
	// Folder for a copy of the state, so that the server can start while S3 is down. A relative path starts in
	// `/var/lib/babelftp`.
	Folder string `yaml:"folder" default:"/var/lib/babelftp/state"`
	// Connection to S3. Values that are not set here are inherited.
	S3 S3 `yaml:"s3"`
}

// IsSet reports whether any key of the section is set.
func (s *State) IsSet() bool { return !reflect.ValueOf(*s).IsZero() }

// defaultStatePrefix is hidden from users in any bucket.
const defaultStatePrefix = value.Reserved + "/state/"

// normalize sets the defaults of a section that is given.
func (s *State) normalize() {
	if s.IsSet() {
		s.Prefix = withTrailingSlash(cmp.Or(s.Prefix, defaultStatePrefix))
		s.Folder = yamlconf.ResolvePath(stateFolder, cmp.Or(s.Folder, "state"))
	}
}

// Ring returns the keys of a valid configuration.
func (s *State) Ring() (*keyring.Ring, error) { return keyring.Parse(s.Keys.Reveal()) }

// check validates the section at p.
func (s *State) check(v *validator, p yamlconf.Path) {
	if !s.IsSet() {
		return
	}
	s.S3.check(v, p.Child("s3"), nil)
	segments := strings.Split(s.Prefix, "/")
	hidden := slices.Contains(segments, value.Reserved)
	shown := slices.DeleteFunc(segments, func(segment string) bool { return segment == value.Reserved })
	v.bucketAndPrefix(p, s.Bucket, strings.Join(shown, "/"))
	if s.Bucket == "" {
		v.report(p.Child("bucket"), "is missing: write the bucket for the shared state")
	}
	if s.Keys.Empty() {
		v.report(p.Child("keys"), "is missing: write the output of `openssl rand -base64 32` into a file, and set keys_file")
	} else if _, err := s.Ring(); err != nil {
		v.report(p.Child("keys"), "%v: write the output of `openssl rand -base64 32`", err)
	}
	if hidden {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(v.cfg.Tenants)) {
		for _, place := range v.cfg.Tenants[name].places() {
			if place.bucket == s.Bucket &&
				(strings.HasPrefix(s.Prefix, place.prefix) || strings.HasPrefix(place.prefix, s.Prefix)) {
				v.report(p.Child("prefix"), "%q is visible to users of the tenant %s, who have the prefix %q in the bucket: "+
					"write another one, such as %s", s.Prefix, name, place.prefix, defaultStatePrefix)
				return
			}
		}
	}
}
