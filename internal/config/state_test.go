package config

import (
	"fmt"
	"strings"
	"testing"
)

func TestState(t *testing.T) {
	key := strings.Repeat("A", 43) + "="
	for name, tt := range map[string]struct{ state, problem string }{
		"defaults":          {"{bucket: shared, keys: " + key + "}", ""},
		"two-keys":          {"{bucket: shared, keys: '" + key + " " + key + "'}", ""},
		"bucket-of-tenant":  {"{bucket: acme-data, keys: " + key + "}", ""},
		"other-prefix":      {"{bucket: acme-data, prefix: state/, keys: " + key + "}", ""},
		"no-bucket":         {"{keys: " + key + "}", "state.bucket: is missing"},
		"no-keys":           {"{bucket: shared}", "state.keys: is missing"},
		"short-key":         {"{bucket: shared, keys: c2hvcnQ=}", "state.keys: key 1 is not the Base64 of 32 bytes"},
		"invalid-bucket":    {"{bucket: x, keys: " + key + "}", `state.bucket: "x" is not a valid bucket name`},
		"invalid-prefix":    {"{bucket: shared, prefix: /x, keys: " + key + "}", "state.prefix: "},
		"visible":           {"{bucket: acme-data, prefix: inbox/state, keys: " + key + "}", "is visible to users of the tenant acme"},
		"above-the-tenant":  {"{bucket: acme-data, prefix: in, keys: " + key + "}", ""},
		"below-a-hidden":    {"{bucket: acme-data, prefix: inbox/.babelftp/state, keys: " + key + "}", ""},
		"incomplete-access": {"{bucket: shared, keys: " + key + ", s3: {access_key_id: x}}", "state.s3.secret_access_key: is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			text := fmt.Sprintf("state: %s\ntenants: {acme: {bucket: acme-data, prefix: inbox, users: {a: {disabled: true}}}}\n", tt.state)
			cfg, err := LoadWith("babelftp.yaml", nil, map[string][]byte{"babelftp.yaml": []byte(text)})
			switch {
			case tt.problem == "" && err != nil:
				t.Error(err)
			case tt.problem == "" && (!strings.HasSuffix(cfg.State.Prefix, "/") || cfg.State.Folder != "/var/lib/babelftp/state"):
				t.Errorf("State = %+v", cfg.State)
			case tt.problem != "" && (err == nil || !strings.Contains(err.Error(), tt.problem)):
				t.Errorf("got %v, want %s", err, tt.problem)
			}
		})
	}
}
