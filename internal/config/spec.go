package config

import (
	"reflect"
	"strings"

	"github.com/babelftp/babelftp/internal/base/contract"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// A SpecForm is the way in which a spec has a value.
type SpecForm int

// The forms.
const (
	// SpecValue is a value as in the configuration.
	SpecValue SpecForm = iota
	// SpecSecret is a [SecretReference], {name, key}.
	SpecSecret
	// SpecConfigMap is a reference {name} to a ConfigMap in the namespace of the resource. Its keys are language tags
	// such as `fr`, and for messages an identifier and a language, such as `goodbye.fr`.
	SpecConfigMap
)

// A SpecField is a key that a spec, or a section in it, can have.
type SpecField struct {
	Key  string
	Form SpecForm
	// Field is the field of the configuration that it sets. A reference sets the key in its yaml tag.
	Field reflect.StructField
	// DefaultKey is the key in the Secret, if the reference names none.
	DefaultKey string
}

// A SecretReference names a key of a Secret in the namespace of the resource.
type SecretReference struct{ Name, Key string }

// UserSpec is the spec of an FTPUser.
type UserSpec struct {
	// Name of the FTPTenant of the user, in the same namespace.
	Tenant string `yaml:"tenant" default:"required"`
	// User name of the login.
	Name string `yaml:"name" default:"the name of the resource"`
	User
}

// SpecType returns the struct with the keys of a spec.
func SpecType(kind ResourceKind) reflect.Type {
	if kind == UserResource {
		return reflect.TypeFor[UserSpec]()
	}
	return reflect.TypeFor[Tenant]()
}

// Suffixes of keys that refer to other resources.
const (
	secretSuffix    = "_secret"
	configMapSuffix = "_config_map"
)

// SpecFields returns the keys of a section in a spec, whose struct is t. The schema of the custom resources and the
// decoder of specs both use it, so that they cannot differ.
func SpecFields(t reflect.Type) []SpecField {
	var fields []SpecField
	for _, f := range yamlconf.FieldsOf(t) {
		key := f.Tag.Get("yaml")
		if excludedKey(t, key) != "" {
			continue
		}
		_, secret := reflect.Zero(f.Type).Interface().(contract.Secret)
		base, isFile := strings.CutSuffix(key, yamlconf.FileSuffix)
		switch {
		case isFile && f.Tag.Get("path") != "":
			fields = append(fields, SpecField{base + secretSuffix, SpecSecret, f, fileKeys()[base]})
			continue
		case !secret:
			fields = append(fields, SpecField{Key: key, Field: f})
		}
		if yamlconf.HasFileForm(f) {
			fields = append(fields, SpecField{key + secretSuffix, SpecSecret, f, key})
		}
		if t == reflect.TypeFor[Tenant]() && (key == "greeting" || key == "welcome" || key == "messages") {
			fields = append(fields, SpecField{Key: key + configMapSuffix, Form: SpecConfigMap, Field: f})
		}
	}
	return fields
}

// fileKeys returns the default keys in Secrets for keys that name files in the configuration, without _file. They are
// the keys of a Secret of the type kubernetes.io/tls.
func fileKeys() map[string]string {
	return map[string]string{"cert": "tls.crt", "key": "tls.key", "ca": "ca.crt", "crl": "ca.crl"}
}

// excludedKey returns the reason why a spec cannot have a key of the configuration, and what to do instead. It returns
// an empty string for all other keys.
func excludedKey(t reflect.Type, key string) string {
	const users = "is not allowed in a custom resource: create an FTPUser for each user"
	switch t {
	case reflect.TypeFor[Tenant]():
		return map[string]string{
			"users":            users,
			"users_file":       users,
			"users_store":      users,
			"rehash_passwords": "is not allowed in a custom resource, because the server cannot change a Secret: remove it",
		}[key]
	case reflect.TypeFor[Auth]():
		return map[string]string{
			"ftp": "is not allowed in a custom resource, because the server would have to store the users: use hook or ldap",
		}[key]
	case reflect.TypeFor[UserSpec]():
		return map[string]string{
			"must_change_password": "is not allowed in a custom resource, because the server cannot change a Secret: remove it",
		}[key]
	}
	return ""
}
