package config

import (
	"encoding"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// marker is part of all secrets and URLs in TestEffectiveHasNoSecrets.
const marker = "MARKER"

// fill sets all fields of a value, so that each secret and each part of a URL that may be secret contains the marker.
func fill(t *testing.T, v reflect.Value, secrets, texts *int) {
	t.Helper()
	switch target := v.Addr().Interface().(type) {
	case *value.Secret:
		*secrets++
		*target = value.NewSecret(marker)
		return
	case encoding.TextUnmarshaler:
		return
	}
	switch v.Kind() {
	case reflect.String:
		*texts++
		v.SetString("https://user:" + marker + "@host.example/?token=" + marker + "#" + marker)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), secrets, texts)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0), secrets, texts)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, entry := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		if key.Kind() == reflect.String {
			key.SetString("name")
		}
		fill(t, entry, secrets, texts)
		v.SetMapIndex(key, entry)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				fill(t, v.Field(i), secrets, texts)
			}
		}
	}
}

func TestEffectiveHasNoSecrets(t *testing.T) {
	var cfg Config
	secrets, texts := 0, 0
	fill(t, reflect.ValueOf(&cfg).Elem(), &secrets, &texts)
	if secrets < 15 || texts < 100 {
		t.Fatalf("filled only %d secrets and %d texts", secrets, texts)
	}
	text, ok, err := cfg.Effective("")
	if must.OK(t, err); !ok || strings.Contains(text, marker) {
		t.Errorf("the marker is in\n%s", text)
	}
	for _, key := range []string{"password_hash", "secret_access_key", "bind_password", "customer_key", "keys", "eab"} {
		if !strings.Contains(text, key+": '"+yamlconf.Redacted+"'") {
			t.Errorf("%s is not redacted in\n%s", key, text)
		}
	}
}

// The text of a configuration without secrets is the same configuration.
func TestEffective(t *testing.T) {
	dir := t.TempDir()
	load := func(text string) *Config {
		t.Helper()
		file := filepath.Join(dir, "babelftp.yaml")
		must.OK(t, os.WriteFile(file, []byte(text), 0o600))
		cfg, err := Load(file, nil)
		must.OK(t, err)
		return cfg
	}
	cfg := load(`
listen: ":2121"
log: {level: debug, format: json}
tls: {min_version: "1.3", required: false}
passive: {ports: 30000-30099, public_address: 203.0.113.7}
proxy_protocol: {trusted: [10.0.0.0/8]}
limits: {server: {sessions: 1000}, address: {sessions: 0}}
memory: 512 MiB
idle_timeout: 10m
s3: {endpoint: "http://127.0.0.1:9000", region: us-east-1, path_style: true}
audit: {file: "-"}
tenant_defaults: {permissions: [list, read]}
tenants:
  acme:
    bucket: acme-data
    hosts: [ftp.acme.example]
    default_language: fr
    greeting: {en: "Welcome: #1", fr: "Bienvenue"}
    compatibility: {charset: "shift_jis"}
    compatibility_by_network: {192.0.2.0/24: {charset: windows-1252}}
    timezone: Europe/Paris
    messages: {goodbye: {fr: "502: sorry"}}
    quota: 10 GiB
    users:
      alice: {disabled: true, expires: 2030-01-31, root: /alice, language: pt-BR}
      "yes": {disabled: true}
`)
	text, _, err := cfg.Effective("")
	must.OK(t, err)
	again, _, err := load(text).Effective("")
	if must.OK(t, err); again != text {
		t.Errorf("loaded again:\n%s\nwant\n%s", again, text)
	}
	for _, part := range []string{"idle_timeout: 10m0s", "quota: 10GiB", "- list\n", "sessions: 0\n", "timezone: Europe/Paris",
		"expires: \"2030-01-31\"", "min_version: \"1.3\"", "502: sorry", "charset: shift_jis"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
}

func TestEffectiveOfManyTenants(t *testing.T) {
	cfg := Default()
	cfg.Tenants = map[string]*Tenant{}
	for n := range maxShownTenants + 1 {
		cfg.Tenants[fmt.Sprintf("t%03d", n)] = &Tenant{Bucket: "b"}
	}
	users := map[string]*User{}
	for n := range maxShownUsers + 2 {
		users[fmt.Sprintf("u%02d", n)] = &User{Disabled: true}
	}
	cfg.Tenants["t000"].Users = users
	text, _, err := cfg.Effective("")
	must.OK(t, err)
	for _, note := range []string{"# 1 more tenants", "# 2 more users of t000", "t099:", "u19:"} {
		if !strings.Contains(text, note) {
			t.Errorf("%q is missing", note)
		}
	}
	if text, ok, err := cfg.Effective("t100"); err != nil || !ok || !strings.Contains(text, "t100:") || strings.Contains(text, "t000:") {
		t.Errorf("one tenant: %v, %v\n%s", ok, err, text)
	}
	if _, ok, err := cfg.Effective("none"); ok || err != nil {
		t.Errorf("no tenant: %v, %v", ok, err)
	}
}
