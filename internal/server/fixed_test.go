package server

import (
	"reflect"
	"slices"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/servicetest"
)

// A reload applies a change of any configuration key, or names the key. Add a new key to one of the two lists.
func TestEveryKeyChangesOrIsNamed(t *testing.T) {
	changes := []string{
		"default_language", "locales_dir", "tls", "ca_file", "passive", "s3", "log",
		"auth", "limits", "idle_timeout", "stall_timeout",
		"commit_delay", "drain_timeout", "part_size", "tenants", "tenants_dir", "tenant_defaults", "kubernetes",
	}
	old, next := config.Default(), config.Default()
	old.Tenants = map[string]*config.Tenant{"acme": {Bucket: "acme-data",
		Users: map[string]*config.User{"alice": {PasswordHash: servicetest.PasswordHash()}}}}
	next.Tenants = old.Tenants
	v := reflect.ValueOf(next).Elem()
	want := []string{"tls.implicit_listen", "tls.acme", "passive.ports", "log.format", "kubernetes.folder"}
	next.TLS.ImplicitListen, next.TLS.ACME.Directory, next.Passive.Ports.First, next.Log.Format = "x", "x", 1, "x"
	next.Kubernetes.Folder = "x"
	for i := range v.NumField() {
		key := v.Type().Field(i).Tag.Get("yaml")
		if key == "" || slices.Contains(changes, key) {
			continue
		}
		want = append(want, key)
		changeValue(v.Field(i))
	}
	cfg, fixed, err := KeepFixed(old, next)
	must.OK(t, err)
	slices.Sort(want)
	slices.Sort(fixed)
	if !slices.Equal(fixed, want) {
		t.Errorf("got keys %q, want %q", fixed, want)
	}
	if !reflect.DeepEqual(cfg, old) {
		t.Errorf("got configuration %+v, want %+v", cfg, old)
	}
}

// changeValue sets a value to a different one.
func changeValue(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		changeValue(v.Field(0))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	default:
		v.SetInt(v.Int() + 1)
	}
}
