package admin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
	"github.com/babelftp/babelftp/internal/report"
	"github.com/babelftp/babelftp/internal/report/audit"
	"github.com/babelftp/babelftp/internal/users/account"
	"github.com/babelftp/babelftp/internal/users/usersfile"
)

// A newUser is the body of a request that adds a user.
type newUser struct {
	Tenant string `json:"tenant"`
	Name   string `json:"name"`
	// The keys of the user in the configuration. Missing keys have their defaults.
	Settings config.Settings `json:"settings,omitempty"`
	// The password. It may be missing if the user has certificates or is disabled.
	Password string `json:"password,omitempty"`
}

// A userPatch is the body of a request that changes a user. Missing keys are not changed.
type userPatch struct {
	// Changes of the keys of the user in the configuration. null removes a key, so that its default applies.
	Settings settingsPatch `json:"settings,omitempty"`
	// The new password. null removes the password.
	Password *string `json:"password,omitempty"`
}

// settingsPatch are changed settings of a user; null removes a setting.
type settingsPatch config.Settings

// A userChange is a parsed request that adds or changes a user.
type userChange struct {
	key      userKey
	settings []yamlconf.Setting
	password *string // nil to keep it; empty to remove it
}

// Paths of fields in errors and in the audit log.
const (
	settingsField = "settings"
	passwordField = "password"
)

// object is a JSON object whose fields are taken out one by one.
type object struct {
	fields map[string]any
	wrong  []FieldError
}

// readObject reads the body of a request, which is a JSON object.
func readObject(r *http.Request, media ...string) (*object, error) {
	sent, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || !slices.Contains(media, sent) {
		return nil, &Error{http.StatusUnsupportedMediaType, "send Content-Type: " + strings.Join(media, " or ")}
	}
	text, err := io.ReadAll(r.Body)
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, &Error{http.StatusRequestEntityTooLarge,
			fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit)}
	}
	if err != nil {
		return nil, &Error{http.StatusBadRequest, "the body is incomplete: " + err.Error()}
	}
	if !utf8.Valid(text) {
		return nil, &Error{http.StatusBadRequest, "the body is not UTF-8"}
	}
	o := &object{}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&o.fields); err != nil || o.fields == nil {
		return nil, &Error{http.StatusBadRequest, "the body is not a JSON object"}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, &Error{http.StatusBadRequest, "the body has more than one JSON object"}
	}
	return o, nil
}

// refuse adds an error.
func (o *object) refuse(path, format string, args ...any) {
	o.wrong = append(o.wrong, FieldError{path, fmt.Sprintf(format, args...)})
}

// text takes a string out. It is empty if the field is missing.
func (o *object) text(field string) string {
	value, given := o.fields[field]
	delete(o.fields, field)
	text, ok := value.(string)
	switch {
	case !given:
		o.refuse(field, "is missing")
	case !ok:
		o.refuse(field, "must be a string")
	case text == "":
		o.refuse(field, "is empty")
	}
	return text
}

// settings takes the changes of settings out.
func (o *object) settings() []yamlconf.Setting {
	value, given := o.fields[settingsField]
	delete(o.fields, settingsField)
	patch, ok := value.(map[string]any)
	if !ok {
		if given {
			o.refuse(settingsField, "must be an object")
		}
		return nil
	}
	changes, problems := config.ParseUserPatch(patch)
	for _, p := range problems {
		o.refuse(settingsField+"."+p.Path, "%s", p.Message)
	}
	return slices.DeleteFunc(changes, func(s yamlconf.Setting) bool {
		secret := strings.HasPrefix(s.Key, "password_hash")
		if secret {
			o.refuse(settingsField+"."+s.Key, "cannot be set here: send password")
		}
		return secret
	})
}

// newPassword takes the password out.
func (o *object) newPassword() *string {
	value, given := o.fields[passwordField]
	delete(o.fields, passwordField)
	if !given {
		return nil
	}
	text, ok := value.(string)
	switch {
	case value == nil:
		return new(string)
	case !ok:
		o.refuse(passwordField, "must be a string or null")
	case text == "":
		o.refuse(passwordField, "is empty: send null to remove the password")
	}
	return &text
}

// done returns an error if a field is wrong or unknown. readOnly has the fields that responses have and requests lack.
func (o *object) done(readOnly ...string) error {
	for field := range o.fields {
		if slices.Contains(readOnly, field) {
			o.refuse(field, "cannot be changed")
		} else {
			o.refuse(field, "unknown field")
		}
	}
	if len(o.wrong) == 0 {
		return nil
	}
	return newFieldErrors(o.wrong)
}

// addUser adds the user in the body.
func (h *Handler) addUser(r *http.Request, action *audit.Action) (User, error) {
	o, err := readObject(r, mediaJSON)
	if err != nil {
		return User{}, err
	}
	key := userKey{o.text("tenant"), config.NormalizeUser(o.text("name"))}
	action.About = []any{"tenant", report.Clip(key.tenant), "user", report.Clip(key.name)}
	if key.name == "." || key.name == ".." {
		o.refuse("name", "%q cannot be the last part of a URL", key.name)
	}
	c := userChange{key: key, settings: o.settings(), password: o.newPassword()}
	action.About = append(action.About, "fields", c.fields())
	if err := o.done("has_password", "source", "writable", "reason", "last_login", "online"); err != nil {
		return User{}, err
	}
	store, ok := h.Accounts.Store(key.tenant)
	if !ok {
		return User{}, newFieldErrors([]FieldError{{"tenant", errNoTenant(key.tenant, h.Source.Tenants(nil)).Error()}})
	}
	if err := h.mayAdd(key, store); err != nil {
		return User{}, err
	}
	return h.change(r, action, store, c, func(d *usersfile.Document) error {
		if d.HasSpelling(key.name) {
			return errExists(key)
		}
		d.Add(key.name)
		return nil
	})
}

// mayAdd returns an error if the user exists in any spelling, or cannot be stored.
func (h *Handler) mayAdd(key userKey, store *usersfile.Store) error {
	if tenant := h.Accounts.Config().Tenants[key.tenant]; tenant != nil {
		folded := config.FoldUser(key.name)
		for name := range tenant.Users {
			if config.FoldUser(name) == folded {
				return errExists(key)
			}
		}
	}
	place, err := store.PlaceOfNew(key.name)
	if err == nil {
		err = store.Writable(place)
	}
	if err != nil {
		return storeError(key, err)
	}
	return nil
}

func errExists(key userKey) error {
	return &Error{http.StatusConflict, fmt.Sprintf("user %s@%s already exists, perhaps in another spelling", key.name, key.tenant)}
}

// changeUser changes the user in the path.
func (h *Handler) changeUser(r *http.Request, action *audit.Action) (User, error) {
	o, err := readObject(r, mediaMergePatch, mediaJSON)
	if err != nil {
		return User{}, err
	}
	key, store, err := h.userInPath(r)
	action.About = []any{"tenant", report.Clip(key.tenant), "user", report.Clip(key.name)}
	if err != nil {
		return User{}, err
	}
	c := userChange{key: key, settings: o.settings(), password: o.newPassword()}
	action.About = append(action.About, "fields", c.fields())
	if err := o.done("tenant", "name", "has_password", "source", "writable", "reason", "last_login", "online"); err != nil {
		return User{}, err
	}
	matches, err := h.precondition(r, key, store)
	if err != nil {
		return User{}, err
	}
	return h.change(r, action, store, c, matches)
}

// deleteUser removes the user in the path.
func (h *Handler) deleteUser(r *http.Request, action *audit.Action) (none, error) {
	key, store, err := h.userInPath(r)
	action.About = []any{"tenant", report.Clip(key.tenant), "user", report.Clip(key.name)}
	if err != nil {
		return none{}, err
	}
	matches, err := h.precondition(r, key, store)
	if err != nil {
		return none{}, err
	}
	if cfg := h.Accounts.Config(); cfg.NeedsUsers(key.tenant) && len(cfg.Tenants[key.tenant].Users) == 1 {
		return none{}, &Error{http.StatusConflict, fmt.Sprintf("%s is the only user of %s, and a server with a tenant "+
			"without users does not start: disable the user instead", key.name, key.tenant)}
	}
	var before User
	err = store.Edit(r.Context(), key.name, func(d *usersfile.Document) error {
		if err := matches(d); err != nil {
			return err
		}
		before, _, _ = userIn(d, key, usersfile.Place{})
		return d.Remove(key.name)
	})
	if err != nil {
		return none{}, storeError(key, err)
	}
	action.About = append(action.About, "before", map[string]any(before.Settings))
	return none{}, h.await(r.Context(), key, "removed", func(now *config.User) bool { return now == nil })
}

// precondition checks that the user exists and can be changed, and returns a function that compares If-Match with the
// current version of the user.
func (h *Handler) precondition(
	r *http.Request, key userKey, store *usersfile.Store,
) (func(*usersfile.Document) error, error) {
	wanted := r.Header.Values("If-Match")
	u, err := h.stored(r.Context(), key, store)
	switch {
	case err != nil:
		return nil, err
	case !u.Writable:
		return nil, &Error{http.StatusConflict, fmt.Sprintf("user %s@%s cannot be changed: %s", key.name, key.tenant, u.Reason)}
	case len(wanted) == 0:
		return nil, errNoIfMatch
	}
	matches := func(d *usersfile.Document) error {
		version := d.Version(key.name)
		switch {
		case version == "":
			return errNoUser(key)
		case !ifMatch(wanted, version):
			return errChanged(key)
		}
		return nil
	}
	if !ifMatch(wanted, u.version) {
		return nil, errChanged(key)
	}
	return matches, nil
}

func errChanged(key userKey) error {
	return &Error{http.StatusPreconditionFailed, fmt.Sprintf(
		"user %s@%s has changed: read it again, and repeat the change with the new ETag", key.name, key.tenant)}
}

var errNoIfMatch = &Error{http.StatusPreconditionRequired, "send If-Match with the ETag of the user, or with *"}

// ifMatch reports whether a version is in the header If-Match (RFC 9110, section 13.1.1). Weak tags never match.
func ifMatch(header []string, version string) bool {
	for tag := range strings.SplitSeq(strings.Join(header, ","), ",") {
		if tag = strings.TrimSpace(tag); tag == "*" || tag == `"`+version+`"` {
			return true
		}
	}
	return false
}

// change stores a user and waits until the replica uses the new settings. begin checks the document before anything
// changes in it.
func (h *Handler) change(
	r *http.Request, action *audit.Action, store *usersfile.Store, c userChange, begin func(*usersfile.Document) error,
) (User, error) {
	ctx := r.Context()
	hash, err := h.hash(r, c)
	if err != nil {
		return User{}, err
	}
	var before, after User
	var stored *config.User
	err = store.Edit(ctx, c.key.name, func(d *usersfile.Document) error {
		before, _, _ = userIn(d, c.key, usersfile.Place{})
		err := begin(d)
		if err == nil {
			err = c.apply(d, hash)
		}
		if err == nil {
			// The store reports invalid settings, with their paths.
			after, stored, _ = userIn(d, c.key, usersfile.Place{})
		}
		return err
	})
	if err != nil {
		return User{}, storeError(c.key, err)
	}
	action.About = append(action.About, differences(before, after)...)
	if after, err = h.stored(ctx, c.key, store); err != nil {
		return User{}, err
	}
	err = h.await(ctx, c.key, "stored", func(now *config.User) bool {
		return now != nil && reflect.DeepEqual(now, stored)
	})
	return h.activity().add(after), err
}

// hash returns the hash of the new password, or an empty string without one.
func (h *Handler) hash(r *http.Request, c userChange) (string, error) {
	if c.password == nil || *c.password == "" {
		return "", nil
	}
	client, _ := netip.ParseAddrPort(r.RemoteAddr)
	hash, err := h.Accounts.Hash(r.Context(), limits.Network(client.Addr()).String(), c.key.name, *c.password)
	problem := ""
	switch {
	case errors.Is(err, account.ErrPasswordTooShort):
		problem = fmt.Sprintf("is too short: write at least %d characters", account.MinPassword)
	case errors.Is(err, account.ErrPasswordTooWeak):
		problem = "is too easy to guess: do not use common words, the user name, sequences or repetitions"
	case errors.Is(err, account.ErrPasswordInvalid):
		problem = "contains control characters"
	default:
		return hash, err
	}
	return "", newFieldErrors([]FieldError{{passwordField, problem}})
}

// apply changes the user in a document.
func (c userChange) apply(d *usersfile.Document, hash string) error {
	user := c.key.name
	for _, s := range c.settings {
		var err error
		if s.Value == nil {
			err = d.Unset(user, s.Path...)
		} else {
			err = d.Set(user, s.Value, s.Path...)
		}
		if err != nil {
			return err
		}
		if s.Key == "disabled" && d.Get(user, s.Key) != "true" {
			d.WithoutReason(user)
		}
	}
	if c.password == nil {
		return nil
	}
	if file := d.Get(user, "password_hash_file"); file != "" {
		return newFieldErrors([]FieldError{{passwordField, fmt.Sprintf("is in %s (password_hash_file): replace its content by the "+
			"output of `babelftp hash-password`", file)}})
	}
	if hash == "" {
		return d.Unset(user, "password_hash")
	}
	return d.Set(user, hash, "password_hash")
}

// fields returns the paths of the fields in the request, for the audit log.
func (c userChange) fields() []string {
	fields := []string{}
	for _, s := range c.settings {
		fields = append(fields, settingsField+"."+s.Key)
	}
	if c.password != nil {
		fields = append(fields, passwordField)
	}
	return fields
}

// differences returns keys and values for the audit log: the settings that differ, before and after the change.
func differences(before, after User) []any {
	old, next := map[string]any{}, map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(before.Settings)) {
		if !reflect.DeepEqual(before.Settings[key], after.Settings[key]) {
			old[key] = before.Settings[key]
		}
	}
	for _, key := range slices.Sorted(maps.Keys(after.Settings)) {
		if !reflect.DeepEqual(before.Settings[key], after.Settings[key]) {
			next[key] = after.Settings[key]
		}
	}
	about := []any{"before", old, "after", next}
	if before.HasPassword != after.HasPassword {
		about = append(about, "has_password", after.HasPassword)
	}
	return about
}

// awaitTimeout limits the time in which the replica must use a change. Reading a configuration with many users takes
// seconds on a slow machine.
const awaitTimeout = 15 * time.Second

// await waits until the replica uses a change. done says what has happened to the user.
func (h *Handler) await(ctx context.Context, key userKey, done string, accept func(*config.User) bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), awaitTimeout)
	defer cancel()
	if err := h.Accounts.Await(ctx, key.tenant, key.name, accept); err != nil {
		return &Error{http.StatusServiceUnavailable, fmt.Sprintf(
			"user %s@%s was %s, but the replica does not use the change yet: %v", key.name, key.tenant, done, err)}
	}
	return nil
}

// storeError returns the response to an error of a store.
func storeError(key userKey, err error) error {
	user := key.name + "@" + key.tenant
	if fields, ok := errors.AsType[*fieldErrors](err); ok {
		return fields
	}
	if answer, ok := errors.AsType[*Error](err); ok {
		return answer
	}
	if problems, ok := errors.AsType[config.Problems](err); ok {
		return problemsError(key, problems)
	}
	switch {
	case errors.Is(err, usersfile.ErrNotFound):
		return errNoUser(key)
	case errors.Is(err, usersfile.ErrConflict):
		return &Error{http.StatusPreconditionFailed, fmt.Sprintf("user %s: %v", user, err)}
	case errors.Is(err, usersfile.ErrReadOnly):
		return &Error{http.StatusConflict, fmt.Sprintf("user %s cannot be changed: %v", user, err)}
	case errors.Is(err, usersfile.ErrUnavailable):
		return &Error{http.StatusServiceUnavailable, fmt.Sprintf("user %s: %v", user, err)}
	}
	return fmt.Errorf("user %s: %w", user, err)
}

// problemsError returns the response to problems of the configuration that a change would cause, or that exist
// already and have nothing to do with the user.
func problemsError(key userKey, problems config.Problems) error {
	var fields []FieldError
	user := yamlconf.Path{"users", key.name}.String()
	inTenant := yamlconf.Path{"tenants", key.tenant}.String() + "."
	for _, p := range problems {
		rest, ok := strings.CutPrefix(config.NormalizeUser(strings.TrimPrefix(p.Path, inTenant)), user)
		switch {
		case !ok:
		case rest == "":
			fields = append(fields, FieldError{"name", p.Message})
		case rest == ".password_hash":
			fields = append(fields, FieldError{passwordField,
				"is missing: send a password, set certificates, or set disabled to true"})
		case rest[0] == '.':
			fields = append(fields, FieldError{settingsField + rest, p.Message})
		}
	}
	if len(fields) > 0 {
		return newFieldErrors(fields)
	}
	return &Error{http.StatusConflict,
		"nothing was stored, because the configuration is invalid for another reason; fix it first: " + problems.Error()}
}

// userPath returns the path of a user. Dots are escaped, because clients remove the path segments . and .. from URLs.
func userPath(tenant, name string) string {
	escaped := url.PathEscape(name)
	if strings.Trim(escaped, ".") == "" {
		escaped = strings.ReplaceAll(escaped, ".", "%2E")
	}
	return Root + "/users/" + url.PathEscape(tenant) + "/" + escaped
}

// versionOf returns the version of a user that no store has.
func versionOf(text []byte) string {
	const size = 16
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:size])
}
