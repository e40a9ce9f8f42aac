package config

import (
	"encoding/json"
	"testing"
)

// FuzzSpec merges any spec. It must not panic, affect another tenant, or reveal a Secret.
func FuzzSpec(f *testing.F) {
	for kind, bases := range basesOfAttacks() {
		for _, base := range bases {
			f.Add(kind == UserResource, jsonOf(f, base))
		}
	}
	f.Add(false, []byte(`{"bucket": "team-a-1", "messages_config_map": {"name": "texts"}, "folders": {"/x": null}, "hosts": [null, {}]}`))
	a := newAttack(f)
	a.configMaps["team-a/texts"] = map[string]string{"x.fr": "y", "z": "", "goodbye.en": "{x}"}
	f.Fuzz(func(t *testing.T, user bool, spec []byte) {
		a.t = t
		kind := TenantResource
		if user {
			kind = UserResource
		}
		new(ReferenceFinder).ReferencesOf(kind, spec)
		a.apply(kind, json.RawMessage(spec))
	})
}
