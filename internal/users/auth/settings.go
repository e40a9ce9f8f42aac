package auth

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
)

// A template creates the settings of users for services that do not return them in babelftp's own format.
type template struct {
	source string // for messages
	user   config.User
	groups map[string][]config.Permission
	names  config.Attributes
}

// settings returns the settings of a user. values returns the values of an attribute, or nil if the service does not
// have the attribute. inGroup reports whether a value of the groups attribute is this group. The error wraps
// [ErrRefused] if the user may not log in.
func (t *template) settings(
	name string, values func(string) []string, inGroup func(value, group string) bool,
) (*config.User, error) {
	u := t.user
	for _, directory := range []*string{&u.Root, &u.Home} {
		if !strings.Contains(*directory, config.UserPlaceholder) {
			continue
		}
		// the placeholder would insert another directory, or one that the server reserves
		if strings.Contains(name, "/") || value.PrefixProblem(name) != "" {
			return nil, fmt.Errorf(
				"%s: the user name cannot be used as a directory name: %w", t.source, ErrRefused)
		}
		*directory = strings.ReplaceAll(*directory, config.UserPlaceholder, name)
	}
	own, err := t.userSettings(values)
	if err != nil {
		return nil, err
	}
	spoken := t.language(values)
	for _, s := range []struct {
		given bool
		take  func()
	}{
		{own.Root != "", func() { u.Root = own.Root }},
		{own.Home != "", func() { u.Home = own.Home }},
		{own.Quota != 0, func() { u.Quota = own.Quota }},
		{own.Permissions != nil, func() { u.Permissions = own.Permissions }},
		{spoken != language.Und, func() { u.Language = spoken }},
		{true, func() { u.Compatibility = own.Compatibility.Or(u.Compatibility) }},
	} {
		if s.given {
			s.take()
		}
	}
	if len(t.groups) > 0 {
		if u.Permissions = t.permissions(values(t.names[config.LDAPGroups]), inGroup); u.Permissions == nil {
			return nil, fmt.Errorf("%s: the user is in none of the groups: %w", t.source, ErrRefused)
		}
	}
	return &u, nil
}

// tenant returns the name of the user's tenant, or an empty string if the attribute is missing or not configured.
func (t *template) tenant(values func(string) []string) (string, error) {
	name := t.names[config.LDAPTenant]
	if name == "" {
		return "", nil
	}
	switch found := values(name); len(found) {
	case 0:
		return "", nil
	case 1:
		return found[0], nil
	default:
		return "", fmt.Errorf("%s: attribute %s has %d values, but a user has one tenant", t.source, name, len(found))
	}
}

// userSettings returns the settings that the service has for the user. An attribute without a value is an error rather
// than the default, because the default may grant more.
func (t *template) userSettings(values func(string) []string) (*config.User, error) {
	object := map[string]any{}
	for _, key := range []config.LDAPSetting{config.LDAPRoot, config.LDAPHome, config.LDAPQuota} {
		name := t.names[key]
		if name == "" {
			continue
		}
		switch found := values(name); {
		case found == nil:
		case len(found) == 0 || found[0] == "":
			return nil, fmt.Errorf("%s: attribute %s for %s is empty: remove it or set a value", t.source, name, key)
		case len(found) == 1:
			object[string(key)] = found[0]
		default:
			return nil, fmt.Errorf("%s: attribute %s has %d values, but a user has one %s", t.source, name, len(found), key)
		}
	}
	if t.names[config.LDAPPermissions] != "" {
		if found := values(t.names[config.LDAPPermissions]); found != nil {
			object["permissions"] = found
		}
	}
	if name := t.names[config.LDAPCompatibility]; name != "" {
		if found := values(name); found != nil {
			compatibility := map[string]string{}
			for _, setting := range found {
				key, value, ok := strings.Cut(setting, "=")
				if key = strings.TrimSpace(key); !ok || compatibility[key] != "" {
					return nil, fmt.Errorf(
						"%s: attribute %s: invalid value %q: write each key once, as in charset=shift_jis", t.source, name, setting)
				}
				compatibility[key] = strings.TrimSpace(value)
			}
			object["compatibility"] = compatibility
		}
	}
	if len(object) == 0 {
		return &config.User{}, nil
	}
	text, err := json.Marshal(map[string]any{"user": object})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.source, err)
	}
	response, err := decode(t.source, text)
	if err != nil {
		return nil, err
	}
	return response.User, nil
}

// language returns the first language of a list in the format of Accept-Language (RFC 9110, section 12.5.4), or
// language.Und. The language grants no rights, so an invalid value does not refuse the login.
func (t *template) language(values func(string) []string) language.Tag {
	if t.names[config.LDAPLanguage] == "" {
		return language.Und
	}
	for _, value := range values(t.names[config.LDAPLanguage]) {
		if tags, _, err := language.ParseAcceptLanguage(value); err == nil && len(tags) > 0 {
			return tags[0]
		}
	}
	return language.Und
}

// permissions returns the permissions of all groups of a user, or nil if the user is not in any of them.
func (t *template) permissions(memberOf []string, inGroup func(value, group string) bool) []config.Permission {
	var granted []config.Permission
	for group, permissions := range t.groups {
		if slices.ContainsFunc(memberOf, func(value string) bool { return inGroup(value, group) }) {
			granted = append(slices.Clip(granted), permissions...)
			if granted == nil {
				granted = []config.Permission{}
			}
		}
	}
	if granted == nil {
		return nil
	}
	// Use a fixed order, so that equal settings compare equal.
	return slices.DeleteFunc(config.FilePermissions(), func(p config.Permission) bool {
		return !slices.Contains(granted, p)
	})
}
