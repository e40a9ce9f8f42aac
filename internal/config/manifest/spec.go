package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// A spec is the spec of a resource that is being converted.
type spec struct {
	*exporter
	at      string // path of the tenant or user in the configuration
	owner   string // name of the resource
	secrets map[string]map[string]string
}

// section returns the values of a section, which is a struct of the configuration. path is the path of the section in
// the spec.
func (s *spec) section(section any, path string) (map[string]any, error) {
	v := reflect.ValueOf(section)
	encoded, values := yamlconf.Encode(section), map[string]any{}
	for _, k := range config.SpecFields(v.Type()) {
		field := v.FieldByIndex(k.Field.Index)
		if field.IsZero() {
			continue
		}
		var value any
		var err error
		switch k.Form {
		case config.SpecSecret:
			value, err = s.secret(k, field, path)
		case config.SpecConfigMap: // see texts
		case config.SpecValue:
			value, err = s.value(k, field, encoded[k.Key], strings.Trim(path+"."+k.Key, "."))
		}
		if err != nil {
			return nil, err
		}
		if value != nil {
			values[k.Key] = value
		}
	}
	return values, nil
}

// value returns a value in the spec, or nil for an empty section. encoded is the value if it has no secrets.
func (s *spec) value(k config.SpecField, v reflect.Value, encoded any, path string) (any, error) {
	switch {
	case yamlconf.IsScalar(v.Type()):
		if _, inSecret := s.existing(v.String()); inSecret && yamlconf.HasFileForm(k.Field) {
			return nil, nil
		}
		return encoded, nil
	case v.Kind() == reflect.Struct:
		values, err := s.section(v.Interface(), path)
		if len(values) == 0 {
			return nil, err
		}
		return values, err
	case v.Kind() == reflect.Map && v.Type().Elem().Kind() == reflect.Pointer:
		entries := map[string]any{}
		for key, entry := range v.Seq2() {
			name := fmt.Sprint(key.Interface())
			values, err := s.section(entry.Elem().Interface(), path+"."+name)
			if err != nil {
				return nil, err
			}
			entries[name] = values
		}
		return entries, nil
	}
	return encoded, nil
}

// existing returns the Secret that has a value or a file already.
func (s *spec) existing(valueOrFile string) (SecretReference, bool) {
	if s.options.Existing == nil {
		return SecretReference{}, false
	}
	return s.options.Existing(valueOrFile)
}

// secret returns a reference to a value, which it adds to a Secret. It returns nil for a value that the spec has
// itself.
func (s *spec) secret(k config.SpecField, v reflect.Value, path string) (any, error) {
	text := v.String()
	revealed, isSecret := v.Interface().(interface{ Reveal() string })
	if isSecret {
		text = revealed.Reveal()
	}
	if ref, ok := s.existing(text); ok {
		s.note("copy the Secret %s to the namespace %s, unless it is there", ref.Name, s.options.Namespace)
		return reference(ref.Name, ref.Key, k.DefaultKey), nil
	}
	isFile := k.Field.Tag.Get("path") != ""
	if !isFile && !isSecret {
		return nil, nil
	}
	if isFile {
		content, err := os.ReadFile(text)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: cannot read %s: %w", s.at, strings.Trim(path+"."+k.Key, "."), text,
				yamlconf.WithoutPath(err))
		}
		text = string(content)
	}
	name := s.secretName(path, k)
	if s.secrets[name] == nil {
		s.secrets[name] = map[string]string{}
	}
	s.secrets[name][k.DefaultKey] = text
	return reference(name, k.DefaultKey, k.DefaultKey), nil
}

// secretName returns the name of the Secret for the values of a section. Files of a tenant itself and the password
// hash of a user are the only values outside of sections.
func (s *spec) secretName(path string, k config.SpecField) string {
	suffix := path
	if path == "" {
		suffix = map[string]string{"ca_secret": "ca"}[k.Key]
	}
	if suffix == "" {
		return s.owner
	}
	suffix = strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(suffix), "-"), "-")
	return s.owner + "-" + suffix
}

// reference returns a reference to a Secret. Its key is left out if it is the default.
func reference(name, key, defaultKey string) map[string]any {
	if key == "" || key == defaultKey {
		return map[string]any{"name": name}
	}
	return map[string]any{"name": name, "key": key}
}

// addSecrets adds the Secrets with the values.
func (s *spec) addSecrets() {
	for _, name := range slices.Sorted(maps.Keys(s.secrets)) {
		kind := "Opaque"
		if s.secrets[name]["tls.crt"] != "" && s.secrets[name]["tls.key"] != "" {
			kind = "kubernetes.io/tls"
		}
		s.add("v1", "Secret", name, Object{"type": kind, "stringData": s.secrets[name]})
	}
}

// maxText is the maximum length of a text in the spec of an FTPTenant. Longer ones are in a ConfigMap.
const maxText = 4096

// texts moves greetings that are too long for a spec to ConfigMaps.
func (s *spec) texts(t *config.Tenant, values map[string]any) {
	for _, of := range []struct {
		key   string
		texts map[language.Tag]string
	}{{"greeting", t.Greeting}, {"welcome", t.Welcome}} {
		data := map[string]string{}
		for tag, text := range of.texts {
			if utf8.RuneCountInString(text) > maxText {
				data[tag.String()] = text
				delete(values[of.key].(map[string]any), tag.String())
			}
		}
		if len(data) == 0 {
			continue
		}
		if len(values[of.key].(map[string]any)) == 0 {
			delete(values, of.key)
		}
		name := s.owner + "-" + of.key
		s.add("v1", "ConfigMap", name, Object{"data": data})
		values[of.key+"_config_map"] = map[string]any{"name": name}
	}
	if len(t.Messages) > 0 {
		values["messages"] = messages(t.Messages)
	}
}

// messages returns the texts of messages. A text with plural forms is an object.
func messages(all map[i18n.ID]map[language.Tag]i18n.Text) map[string]any {
	values := map[string]any{}
	for id, texts := range all {
		byLanguage := map[string]any{}
		for tag, text := range texts {
			byLanguage[tag.String()] = text.Msg
			var plural map[string]any
			if encoded, err := json.Marshal(text); err == nil && json.Unmarshal(encoded, &plural) == nil {
				byLanguage[tag.String()] = plural
			}
		}
		values[string(id)] = byLanguage
	}
	return values
}
