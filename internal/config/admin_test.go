package config

import (
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/config/value"
)

func TestAdministrators(t *testing.T) {
	const hash = "$argon2id$v=19$m=8,t=1,p=1$4RtGSB4BBxL3TKEdVeZQWQ$+ksVq8D/o9KnRp1aLQ78v/DBAkDO6if5PXA++CTwFSo"
	for _, tc := range []struct{ users, names, problem string }{
		{"", "", ""},
		{"# both\n\nann:" + hash + "\r\n bob : " + hash, "ann bob", ""},
		{"ann " + hash, "", "line 1 is not NAME:HASH"},
		{"\n:" + hash, "", "line 2 is not NAME:HASH"},
		{"ann:" + hash + "\nann:" + hash, "", "line 2: duplicate administrator ann"},
		{"a\u202enn:" + hash, "", "line 1: the name contains unprintable characters"},
		{"ann:secret", "", "line 1: the hash of the administrator ann "},
	} {
		a := Admin{Users: value.NewSecret(tc.users)}
		hashes, err := a.Administrators()
		if tc.problem != "" {
			if err == nil || !strings.HasPrefix(err.Error(), tc.problem) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%q: got %v, want %s", tc.users, err, tc.problem)
			}
			continue
		}
		for name := range strings.FieldsSeq(tc.names) {
			if hashes[name] != hash {
				t.Errorf("%q: got %[3]q for %[2]s", tc.users, name, hashes[name])
			}
		}
		if want := len(strings.Fields(tc.names)); err != nil || len(hashes) != want {
			t.Errorf("%q: got %v, %v; want %d", tc.users, hashes, err, want)
		}
	}
}
