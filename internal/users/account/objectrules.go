package account

import (
	"context"
	"fmt"
	"net/netip"
	"path"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/storage/view"
)

// A Client is the client of a command, for placeholders in objects.rules.
type Client struct {
	Session  string
	Address  netip.Addr
	Language language.Tag
}

// An objectRule is a rule of objects.rules.
type objectRule struct {
	config.ObjectRule
	path view.Pattern
}

func newObjectRules(rules []config.ObjectRule) []objectRule {
	compiled := make([]objectRule, len(rules))
	for i, r := range rules {
		compiled[i] = objectRule{r, view.NewPattern(r.Path)}
	}
	return compiled
}

// covers reports whether the rule applies to a file of a user. name is a canonical path in the tenant.
func (r *objectRule) covers(name, user string, origin driver.Origin) bool {
	if r.Keep && origin == driver.Copied || !r.path.Covers(name) {
		return false
	}
	return r.matchesUser(user)
}

func (r *objectRule) matchesUser(user string) bool {
	matched, _ := path.Match(r.User, user) // the pattern is valid
	return matched || r.User == ""
}

// rulesIn returns the attributes that objects.rules give to files in dir, a path of the user; see [driver.Options]. It
// returns nil if the tenant has no rules.
func (u *User) rulesIn(dir string) func(context.Context, string, driver.Origin) driver.Rule {
	if len(u.Tenant.rules) == 0 {
		return nil
	}
	return func(ctx context.Context, name string, origin driver.Origin) driver.Rule {
		name = view.Canonical(path.Join(u.Root, dir, name))
		set := config.ObjectAttributes{Tags: map[string]string{}, Metadata: map[string]string{}}
		for _, r := range u.Tenant.rules {
			if r.covers(name, u.Name, origin) {
				set.Add(r.Set)
			}
		}
		return ruleOf(&set, replacer(u.placeholders(ctx, name)))
	}
}

// placeholders returns the values of the placeholders for a file.
func (u *User) placeholders(ctx context.Context, name string) map[string]string {
	client, _ := ctx.Value(clientKey{}).(Client)
	now, base := time.Now().UTC(), path.Base(name)
	ext := path.Ext(base)
	return map[string]string{
		"user": u.Name, "tenant": u.Tenant.Name, "address": client.Address.String(), "session": client.Session,
		"language": client.Language.String(), "date": now.Format(time.DateOnly), "time": now.Format("150405"),
		"name": base, "stem": strings.TrimSuffix(base, ext), "ext": ext,
	}
}

// replacer returns a replacer for placeholders with these values.
func replacer(values map[string]string) *strings.Replacer {
	var pairs []string
	for name, text := range values {
		pairs = append(pairs, "{"+name+"}", text)
	}
	return strings.NewReplacer(pairs...)
}

// ruleOf converts attributes for the driver. Values that are known only now are changed to fit S3's limits, so that
// they never fail an upload.
func ruleOf(set *config.ObjectAttributes, placeholders *strings.Replacer) driver.Rule {
	rule := driver.Rule{
		ContentType: set.ContentType, CacheControl: set.CacheControl,
		StorageClass: types.StorageClass(set.StorageClass), KMSKeyID: placeholders.Replace(set.KMSKey),
		Tags: map[string]string{}, Metadata: map[string]string{},
		LockMode:  types.ObjectLockMode(strings.ToUpper(string(set.Retain.Mode))),
		LockFor:   time.Duration(set.Retain.Days) * 24 * time.Hour,
		LegalHold: set.LegalHold != nil && *set.LegalHold,
	}
	for key, text := range set.Tags {
		rule.Tags[key] = value.AsTag(placeholders.Replace(text))
	}
	for key, text := range set.Metadata {
		rule.Metadata[key] = asMetadata(placeholders.Replace(text))
	}
	return rule
}

// maxMetadataValue limits a value in the user metadata, in bytes. All of it together has 2 KiB.
const maxMetadataValue = 512

// asMetadata percent-encodes the characters of a text that cannot be in a header, and the percent sign (RFC 3986,
// section 2.1). The result ends before the first character that exceeds maxMetadataValue.
func asMetadata(text string) string {
	var b strings.Builder
	for _, r := range strings.TrimSpace(text) {
		next := string(r)
		if r < ' ' || r > '~' || r == '%' {
			next = ""
			for _, c := range []byte(string(r)) {
				next += fmt.Sprintf("%%%02X", c)
			}
		}
		if b.Len()+len(next) > maxMetadataValue {
			break
		}
		b.WriteString(next)
	}
	return b.String()
}

type clientKey struct{}

// withClient returns a context with the client of a command.
func withClient(ctx context.Context, c Client) context.Context {
	return context.WithValue(ctx, clientKey{}, c)
}
