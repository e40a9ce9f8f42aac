package config

import (
	"cmp"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// AssumeRole is the IAM role whose temporary credentials are used for the bucket (AWS STS, AssumeRole). `{tenant}` is
// replaced by the name of the tenant.
type AssumeRole struct {
	// ARN of the role. Its sessions are named `babelftp-{tenant}`.
	RoleARN string `yaml:"role_arn" default:"none"`
	// External ID that the trust policy of the role requires.
	ExternalID string `yaml:"external_id" default:"none"`
	// Session tags for use in policies, up to 50.
	SessionTags map[string]string `yaml:"session_tags" default:"none"`
	// SessionName is the name of the session in the logs of AWS. It is not a key; For sets it.
	SessionName string
}

// RoleRenewBefore is the remaining lifetime at which the credentials of a role are renewed.
const RoleRenewBefore = 5 * time.Minute

// Limits of STS, see https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html.
const (
	defaultRoleDuration = time.Hour // allowed for every role, and the maximum for role chaining
	maxRoleDuration     = 12 * time.Hour
	maxSessionTags      = 50
	maxSessionName      = 64
	maxExternalID       = 1224
	maxRoleARN          = 2048
)

// sessionName identifies the tenant of a request in the logs of AWS.
const sessionName = "babelftp-{tenant}"

// IsSet reports whether a role is assumed.
func (r *AssumeRole) IsSet() bool { return r.RoleARN != "" }

// RoleDuration returns the lifetime of a role's credentials, which must be longer than the lifetime of links that are
// signed with them.
func RoleDuration(presign time.Duration) time.Duration {
	return min(max(defaultRoleDuration, presign+RoleRenewBefore), maxRoleDuration)
}

// For returns the role with the name of the tenant inserted.
func (r *AssumeRole) For(tenant string) AssumeRole {
	expanded := *r
	for _, text := range []*string{&expanded.RoleARN, &expanded.ExternalID} {
		*text = expandTenant(*text, tenant)
	}
	name := expandTenant(sessionName, tenant)
	expanded.SessionName = name[:min(len(name), maxSessionName)]
	expanded.SessionTags = maps.Clone(r.SessionTags)
	for key, text := range r.SessionTags {
		expanded.SessionTags[key] = expandTenant(text, tenant)
	}
	return expanded
}

func expandTenant(text, tenant string) string { return strings.ReplaceAll(text, "{tenant}", tenant) }

// inherit returns r with unset values filled from other.
func (r AssumeRole) inherit(other AssumeRole) AssumeRole {
	r.RoleARN = cmp.Or(r.RoleARN, other.RoleARN)
	r.ExternalID = cmp.Or(r.ExternalID, other.ExternalID)
	if r.SessionTags == nil {
		r.SessionTags = other.SessionTags
	}
	return r
}

// A roleText is a value of the section with the rules for it.
type roleText struct {
	key, value string
	form       *regexp.Regexp
	max        int
	advice     string
}

// check validates the section at p, which is used for each of these tenants.
func (r *AssumeRole) check(v *validator, p yamlconf.Path, tenants []string) {
	if reflect.ValueOf(*r).IsZero() {
		return
	}
	for _, text := range []roleText{
		{"role_arn", r.RoleARN, regexp.MustCompile(`^arn:[^:\s]+:[^:\s]+:[^:\s]*:[^:\s]*:\S+$`), maxRoleARN,
			"it like arn:aws:iam::123456789012:role/ftp"},
		{"external_id", r.ExternalID, regexp.MustCompile(`^[A-Za-z0-9_+=,.@:/-]{2,}$`), maxExternalID,
			"2 to 1224 ASCII letters, digits and + = , . @ : / - _"},
	} {
		text.check(v, p.Child(text.key), tenants)
	}
	if len(r.SessionTags) > maxSessionTags {
		v.report(p.Child("session_tags"), "has %d tags, but STS allows at most %d", len(r.SessionTags), maxSessionTags)
	}
	for _, key := range slices.Sorted(maps.Keys(r.SessionTags)) {
		at := p.Child("session_tags").Child(key)
		if first := firstInvalid(tenants, func(tenant string) bool {
			return value.TagProblem(key, expandTenant(r.SessionTags[key], tenant)) != ""
		}); first != "" {
			v.report(at, "for the tenant %s: %s", first, value.TagProblem(key, expandTenant(r.SessionTags[key], first)))
		}
	}
}

func (t roleText) check(v *validator, p yamlconf.Path, tenants []string) {
	if t.value == "" {
		return
	}
	wrong := func(tenant string) bool {
		expanded := expandTenant(t.value, tenant)
		return len(expanded) > t.max || strings.ContainsAny(expanded, "{}") || !t.form.MatchString(expanded)
	}
	if first := firstInvalid(tenants, wrong); first != "" {
		v.report(p,
			"%q is invalid for the tenant %s: write %s; {tenant} is replaced by its name", t.value, first, t.advice)
	}
}

// firstInvalid returns the first tenant for which wrong returns true, or an empty string.
func firstInvalid(tenants []string, wrong func(tenant string) bool) string {
	if i := slices.IndexFunc(tenants, wrong); i >= 0 {
		return tenants[i]
	}
	return ""
}
