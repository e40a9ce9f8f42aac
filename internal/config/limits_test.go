package config

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/base/limits"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// Negative numbers are rejected in all limits, wherever they can be set.
func TestNegativeLimits(t *testing.T) {
	var keys []string
	for section, limit := range map[string]reflect.Type{
		"limits.server":                   reflect.TypeFor[ServerLimits](),
		"limits.address":                  reflect.TypeFor[AddressLimits](),
		"limits.bans":                     reflect.TypeFor[Bans](),
		"tenants.acme.limits.tenant":      reflect.TypeFor[Scope](),
		"tenants.acme.limits.user":        reflect.TypeFor[Scope](),
		"tenants.acme.users.alice.limits": reflect.TypeFor[Scope](),
	} {
		for _, f := range reflect.VisibleFields(limit) {
			if key := f.Tag.Get("yaml"); key != "" && f.Type.Kind() == reflect.Int {
				keys = append(keys, section+"."+key)
			}
		}
	}
	if len(keys) != 2*5+2+3*2 {
		t.Errorf("got %q", keys)
	}
	slices.Sort(keys)
	for _, key := range keys {
		t.Run(key, func(t *testing.T) {
			var text strings.Builder
			for i, name := range strings.Split(key, ".") {
				text.WriteString("\n" + strings.Repeat("  ", i) + name + ":")
			}
			text.WriteString(" -1\n")
			file := filepath.Join(t.TempDir(), "babelftp.yaml")
			must.OK(t, os.WriteFile(file, []byte(text.String()), 0o600))
			_, err := Load(file, nil)
			if err == nil || !strings.Contains(err.Error(), key+": must be at least 0, which means no limit") {
				t.Errorf("unexpected error: %v", err)
			}
		})
	}
}

// Each limit that a user does not have is inherited from the limits that the tenant sets for its users.
func TestUserInheritsLimits(t *testing.T) {
	all := limits.Usage{Sessions: 1, Transfers: 2, UploadRate: 3, DownloadRate: 4}
	for _, f := range reflect.VisibleFields(reflect.TypeOf(all)) {
		if reflect.ValueOf(all).FieldByIndex(f.Index).IsZero() {
			t.Errorf("%s is not set", f.Name)
		}
	}
	own := limits.Usage{Sessions: 5, DownloadRate: 6}
	got := Scope{Usage: own}.Or(Scope{Usage: all})
	want := limits.Usage{Sessions: 5, Transfers: 2, UploadRate: 3, DownloadRate: 6}
	if got.Usage != want {
		t.Errorf("got limits %+v, want %+v", got.Usage, want)
	}
}
