package yamlconf

import (
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/babelftp/babelftp/internal/config/value"
)

// An account is a section with values of all kinds.
type account struct {
	Hash   value.Secret              `yaml:"hash"`
	Names  []value.ClientCertificate `yaml:"names"`
	Closed *bool                     `yaml:"closed"`
	Set    value.Encoding            `yaml:"set"`
	Paths  map[string][]string       `yaml:"paths"`
	Rules  struct {
		Most int      `yaml:"most"`
		Deny []string `yaml:"deny"`
	} `yaml:"rules"`
	Ignored string
}

func TestParseSetting(t *testing.T) {
	for _, tc := range []struct {
		text, path string
		want       string // YAML; empty if the key is removed
		err        string // part of the error
	}{
		{"hash=a=b", "hash", "a=b", ""},
		{"hash_file=x y", "hash_file", "x y", ""},
		{"hash=", "hash", "", ""},
		{"hash=true", "hash", `"true"`, ""},
		{"closed=true", "closed", "true", ""},
		{"closed=yes", "closed", `"yes"`, ""},
		{"rules.most=5", "rules most", "5", ""},
		{"rules.most=05", "rules most", `"05"`, ""},
		{"rules.deny=*.a, *.b", "rules deny", "['*.a', '*.b']", ""},
		{"rules.deny=[]", "rules deny", "[]", ""},
		{`rules.deny=["a,b", c]`, "rules deny", `["a,b", c]`, ""},
		{"rules={most: 5}", "rules", "{most: 5}", ""},
		{"rules=", "rules", "", ""},
		{"paths./a.b/c=x,z", "paths|/a.b/c", "[x, z]", ""},
		{`paths={"/a=b": [x]}`, "paths", `{"/a=b": [x]}`, ""},
		{"set=utf-8,gbk", "set", "utf-8,gbk", ""},
		{"set=[utf-8, gbk]", "set", "[utf-8, gbk]", ""},
		{"names=subject:CN=alice,O=Acme,email:a@b", "names", `["subject:CN=alice,O=Acme", "email:a@b"]`, ""},
		{`names=subject:CN=Smith\, Al,O=Acme`, "names", `["subject:CN=Smith\\, Al,O=Acme"]`, ""},
		{"names=subject:CN=alice,dns:c,foo", "names", `["subject:CN=alice", "dns:c,foo"]`, ""},
		{"hash", "", "", `"hash" is not KEY=VALUE: write hash=VALUE, or hash= to remove the key`},
		{"=5", "", "", `"=5" is not KEY=VALUE`},
		{"hash=\xff", "", "", "is not UTF-8"},
		{"clsoed=true", "", "", `unknown key "clsoed": did you mean closed?`},
		{"most=5", "", "", "did you mean rules.most?"},
		{"rules.mots=5", "", "", "did you mean rules.most?"},
		{"Ignored=5", "", "", "want one of hash, hash_file, names, closed, set, paths.NAME, rules.most, rules.deny"},
		{"closed_file=5", "", "", `unknown key "closed_file"`},
		{"paths.=x", "", "", "did you mean paths.NAME?"},
		{"hash.x=5", "", "", "did you mean hash?"},
		{"rules=5", "", "", "rules is a section: append a dot and one of its keys, most, deny, or write it in braces"},
		{"paths=5", "", "", "paths is a mapping: append a dot and the name of an entry"},
		{"rules={most: 5", "", "", `rules is "{most: 5": want a mapping in braces`},
		{"rules={most: 5} # x\nhash: 1", "", "", "want a mapping in braces"},
		{"rules.deny=[a", "", "", `rules.deny is "[a": want a list in brackets`},
	} {
		t.Run(tc.text, func(t *testing.T) {
			s, err := ParseSetting(reflect.TypeFor[account](), tc.text)
			if tc.err != "" || err != nil {
				if tc.err == "" || err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got error %v, want %q", err, tc.err)
				}
				return
			}
			sep := " "
			if strings.Contains(tc.path, "|") {
				sep = "|"
			}
			got := ""
			if s.Value != nil {
				if s.Value.Kind == yaml.SequenceNode {
					s.Value.Style = yaml.FlowStyle
				}
				text, err := yaml.Dump(s.Value, yaml.WithQuotePreference(yaml.QuoteDouble))
				if err != nil {
					t.Fatal(err)
				}
				got = strings.TrimSuffix(string(text), "\n")
			}
			if path := strings.Join(s.Path, sep); path != tc.path || got != tc.want {
				t.Errorf("%s: got %s, want %s: %s", path, got, tc.path, tc.want)
			}
		})
	}
}

func TestCompleteSetting(t *testing.T) {
	for begun, want := range map[string]string{
		"":              "hash= hash_file= names= closed= set= paths. rules.most= rules.deny=",
		"closed=":       "closed=true closed=false",
		"rules.most=":   "",
		"unknown=":      "",
		"paths./a=x,":   "",
		"rules.deny=a,": "",
	} {
		if got := strings.Join(CompleteSetting(reflect.TypeFor[account](), begun), " "); got != want {
			t.Errorf("%q: got %s, want %s", begun, got, want)
		}
	}
}
