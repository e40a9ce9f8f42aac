package yamlconf

import (
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// settings is a struct with all kinds of fields.
type settings struct {
	Listen  string        `yaml:"listen"`
	Timeout time.Duration `yaml:"idle_timeout"`
	TLS     struct {
		CertFile string `yaml:"cert_file"`
	} `yaml:"tls"`
	Named map[string]*struct {
		Enabled *bool `yaml:"enabled"`
		Ports   []int `yaml:"ports"`
	} `yaml:"named"`
	Hosts    OneOrMore `yaml:"hosts"`
	Internal int
}

func TestDecode(t *testing.T) {
	var got settings
	text := "listen: x\nidle_timeout: 90s\ntls: {cert_file: a.pem}\nnamed:\n  one: {enabled: false, ports: [1, 2]}\n"
	positions, problems := Loader{Environ: []string{"TEST_LISTEN=y", "OTHER_LISTEN=z"}, Prefix: "TEST_"}.Decode(
		"f.yaml", []byte(text), &got)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	one := got.Named["one"]
	if got.Listen != "y" || got.Timeout != 90*time.Second || got.TLS.CertFile != "a.pem" || *one.Enabled ||
		len(one.Ports) != 2 {
		t.Errorf("got %+v", got)
	}
	for _, tc := range []struct {
		path Path
		want string
	}{
		{Path{"listen"}, "environment variable TEST_LISTEN: listen: m"},
		{Path{"named", "one", "ports", "1"}, "f.yaml:5:36: named.one.ports.1: m"},
		{Path{"named", "one", "missing"}, "f.yaml:5:3: named.one.missing: m"},
		{Path{"missing"}, "f.yaml:1:1: missing: m"},
	} {
		if got := positions.Problem(tc.path, "m").Error(); got != tc.want {
			t.Errorf("got  %s\nwant %s", got, tc.want)
		}
	}
}

func TestOneOrMore(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		environ    []string
		want       OneOrMore
		at         string // expected problem with the last item
	}{
		{"list", "hosts: [a, b]\n", nil, OneOrMore{"a", "b"}, "f.yaml:1:12: hosts.1: m"},
		{"text", "hosts: a\n", nil, OneOrMore{"a"}, "f.yaml:1:8: hosts.0: m"},
		{"environment", "", []string{"TEST_HOSTS=c"}, OneOrMore{"c"}, "environment variable TEST_HOSTS: hosts.0: m"},
		{"environment-before-list", "hosts: [a, b]\n", []string{"TEST_HOSTS=c"}, OneOrMore{"c"},
			"environment variable TEST_HOSTS: hosts.0: m"},
		{"none", "", nil, nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got settings
			positions, problems := Loader{Environ: tc.environ, Prefix: "TEST_"}.Decode("f.yaml", []byte(tc.text), &got)
			if len(problems) > 0 || !slices.Equal(got.Hosts, tc.want) {
				t.Fatalf("got %q, %v", got.Hosts, problems)
			}
			if n := len(tc.want); n > 0 {
				if at := positions.Problem(Path{"hosts", strconv.Itoa(n - 1)}, "m").Error(); at != tc.at {
					t.Errorf("got  %s\nwant %s", at, tc.at)
				}
			}
		})
	}
}

// Only one problem is reported for a value and its children.
func TestOneProblemForAValue(t *testing.T) {
	var s settings
	positions, problems := Loader{}.Decode("f.yaml", []byte("idle_timeout: soon\nnamed: {one: 1}\n"), &s)
	if len(problems) != 2 {
		t.Fatal(problems)
	}
	for _, path := range []Path{{"idle_timeout"}, {"named", "one"}, {"named", "one", "ports"}} {
		if problem := positions.Problem(path, "m"); problem != nil {
			t.Error(problem)
		}
	}
	if !positions.Broken(Path{"idle_timeout"}) || positions.Broken(Path{"listen"}) {
		t.Error("the broken position is unknown")
	}
}

func TestUnknownKeys(t *testing.T) {
	for key, want := range map[string]string{
		"lissten":  "unknown key: did you mean listen?",
		"liste":    "unknown key: did you mean listen?",
		"timeout":  "unknown key: correct its name or remove it",
		"Named":    "unknown key: did you mean named?",
		"internal": "unknown key: correct its name or remove it",
		"<<":       "merge keys are not supported: repeat the keys, or use an alias for the whole mapping",
	} {
		_, problems := Loader{}.Decode("f.yaml", []byte(key+": {}\n"), new(settings))
		if want = "f.yaml:1:1: " + key + ": " + want; problems.Error() != want {
			t.Errorf("got  %s\nwant %s", problems, want)
		}
	}
}

// TestDeepValues decodes deeply nested documents, for which some parsers need memory that is quadratic in the depth.
func TestDeepValues(t *testing.T) {
	const many = 30_000
	for name, text := range map[string]string{
		"lists":        "named: " + strings.Repeat("[", many) + strings.Repeat("]", many),
		"open-lists":   "named: " + strings.Repeat("[", many),
		"maps":         "named: " + strings.Repeat("{a: ", many) + strings.Repeat("}", many),
		"entries":      "named:\n  " + strings.Repeat("- ", many) + "a",
		"complex-keys": "named:\n  " + strings.Repeat("? ", many) + "a",
	} {
		t.Run(name, func(t *testing.T) {
			var got settings
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, problems := Loader{}.Decode("f.yaml", []byte(text), &got)
			runtime.ReadMemStats(&after)
			if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 {
				t.Errorf("%d bytes need %d bytes of memory", len(text), used)
			}
			if len(problems) != 1 || !strings.Contains(problems[0].Error(), ": is nested more than 50 levels deep") {
				t.Errorf("got %.300q", problems.Error())
			}
		})
	}
}

// TestAliasBombs decodes documents in which aliases expand to much more than the document. The problem has the
// position at which the limit is exceeded.
func TestAliasBombs(t *testing.T) {
	many := "  a: &x {ports: [" + strings.Repeat("1, ", 3000) + "1]}\n"
	aliases := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString("  b" + strconv.Itoa(i) + ": *x\n")
		}
		return b.String()
	}
	for _, tc := range []struct{ name, text, want string }{
		{"long-value", "named:\n" + many + aliases(3000),
			"f.yaml:86:8: aliases expand to more than 250000 values up to here"},
		{"few", "named:\n" + many + aliases(50), ""},
		{"within-aliases", "named:\n  a: {ports: &p [" + strings.Repeat("1, ", 3000) + "1]}\n  c: &x {ports: *p}\n" +
			aliases(3000), "f.yaml:3:17: aliases expand to more than 250000 values up to here"},
		{"many-of-little", "named:\n  a: &x {ports: [1, 2]}\n" + aliases(5000), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got settings
			_, problems := Loader{}.Decode("f.yaml", []byte(tc.text), &got)
			if tc.want == "" && len(problems) == 0 {
				return
			}
			if len(problems) != 1 || tc.want == "" || !strings.HasPrefix(problems[0].Error(), tc.want) {
				t.Errorf("got %v, want %q", problems, tc.want)
			}
		})
	}
}
