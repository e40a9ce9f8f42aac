package view

import (
	"fmt"
	"strings"
	"testing"
)

// letters formats rights as in the fact "perm", for short tables: l(ist) r(ead) w(rite) d(elete) n (rename) m(kdir).
func letters(may Rights) string {
	text := ""
	for i, right := range []bool{may.List, may.Read, may.Write, may.Delete, may.Rename, may.Mkdir} {
		if right {
			text += "lrwdnm"[i : i+1]
		}
	}
	return text
}

// granted parses the format of letters.
func granted(text string) Rights {
	has := func(letter string) bool { return strings.Contains(text, letter) }
	return Rights{List: has("l"), Read: has("r"), Write: has("w"), Delete: has("d"), Rename: has("n"), Mkdir: has("m")}
}

// layer parses a layer such as "lr /inbox=w /out/*.pdf=r".
func layer(text string) Layer {
	fields := strings.Fields(text)
	byPattern := map[string]Rights{}
	for _, field := range fields[1:] {
		pattern, rights, _ := strings.Cut(field, "=")
		byPattern[pattern] = granted(rights)
	}
	if fields[0] == "all" {
		return NewLayer(AllRights(), byPattern)
	}
	return NewLayer(granted(strings.Trim(fields[0], "-")), byPattern)
}

// A rule applies to the names that match its pattern and to everything below them, and the most specific rule wins.
func TestRules(t *testing.T) {
	for _, tc := range []struct {
		name, rules string
		want        map[string]string
	}{
		{"everywhere", "lr", map[string]string{"/": "lr", "/a/b/c": "lr"}},
		{"all", "all", map[string]string{"/a": "lrwdnm"}},
		{"nothing", "-", map[string]string{"/": "", "/a": ""}},
		{"directory", "r /inbox=wl", map[string]string{"/": "r", "/inbox": "lw", "/inbox/a/b": "lw", "/inbox2": "r",
			"/in": "r"}},
		{"nothing-below", "lr /secret=", map[string]string{"/secret": "", "/secret/deep/file": "", "/open": "lr"}},
		{"pattern", "l /reports/*.pdf=r", map[string]string{
			"/reports": "l", "/reports/a.pdf": "r", "/reports/a.txt": "l", "/reports/old/a.pdf": "l",
			"/reports/a.pdf/below": "r",
		}},
		{"pattern-in-the-middle", "l /*/in=w",
			map[string]string{"/a": "l", "/a/in": "w", "/a/in/b": "w", "/in": "l", "/a/b/in": "l"}},
		{"deeper-first", "l /a=r /a/b=w", map[string]string{"/a": "r", "/a/b": "w", "/a/b/c": "w", "/a/c": "r"}},
		{"deeper-pattern-before-a-plain-name", "l /a=r /*/*=w", map[string]string{"/a": "r", "/a/b": "w"}},
		{"plain-before-pattern", "l /a*=r /ab=w", map[string]string{"/ab": "w", "/ac": "r"}},
		{"plain-from-the-left", "l /*/b=r /a/*=w", map[string]string{"/a/b": "w", "/c/b": "r", "/a/c": "w"}},
		{"as-specific", "l /a*=rw /*b=rd", map[string]string{"/ab": "r", "/ac": "rw", "/cb": "rd"}},
		{"escaped", `l /a\*=r /\[x]=w /[\]\-]=d`,
			map[string]string{"/a*": "r", "/ab": "l", "/[x]": "w", "/]": "d", "/-": "d"}},
		{"escaped-is-plain", `l /a\*=r /a?=w`, map[string]string{"/a*": "r", "/ab": "w"}},
		{"composed", "l /caf\u00e9=r /e\u0301?=w", map[string]string{
			"/caf\u00e9": "r", "/cafe\u0301": "r", "/cafe\u0301/x": "r", "/\u00e9a": "w", "/e\u0301a": "w", "/ea": "l",
		}},
		{"unclean", "l /a=r", map[string]string{"a": "r", "/b/../a": "r", "//a//": "r", "/a/..": "l"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := Policy{layer(tc.rules)}
			for name, want := range tc.want {
				if got := letters(p.At(name)); got != want {
					t.Errorf("%q: got %s, want %s", name, got, want)
				}
			}
		})
	}
}

// All layers must allow an operation.
func TestLayers(t *testing.T) {
	p := Policy{layer("lrw /shared=lr"), layer("all /shared/mine=lrw /other=")}
	for name, want := range map[string]string{"/": "lrw", "/shared": "lr", "/shared/mine": "lr", "/other/x": ""} {
		if got := letters(p.At(name)); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// The bounds of a tree include each rule that may apply to something in it.
func TestBounds(t *testing.T) {
	p := Policy{layer("lrd /a=lrwdn /a/b/keep=lr /*/drop=w /a/x*/y=m")}
	for name, want := range map[string]string{
		"/":          " lrwdnm",
		"/a":         " lrwdnm",
		"/a/b":       "lr lrwdn",
		"/a/b/keep":  "lr lr",
		"/a/b/other": "lrwdn lrwdn",
		"/a/xx":      " lrwdnm",
		"/a/file":    "lrwdn lrwdn",
		"/c":         " lrwd",
		"/c/d":       "lrd lrd",
	} {
		least, most := p.Bounds(name)
		if got := letters(least) + " " + letters(most); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// For a user with a root, the same rules apply to the same files.
func TestRulesBelow(t *testing.T) {
	whole := layer("l /a=r /a/b=w /a/*/c=d /*/b/x=n /a/b/x?=m")
	for _, root := range []string{"", "/", "/a", "/a/b", "/a/b/", "/z/b"} {
		t.Run(root, func(t *testing.T) {
			seen := whole.Below(root)
			for _, name := range []string{"/", "/a", "/a/b", "/a/b/x", "/a/b/xy", "/a/b/c", "/a/c/c", "/b", "/b/x",
				"/x", "/c", "/x/y"} {
				want := letters(whole.At(Canonical(root + name)))
				if got := letters(seen.At(name)); got != want {
					t.Errorf("%s: got %s, want %s", name, got, want)
				}
			}
		})
	}
}

// BenchmarkRights computes the rights of each entry of a long listing.
func BenchmarkRights(b *testing.B) {
	text := "lr"
	for i := range 10 {
		text += fmt.Sprintf(" /customers/%d/in=w /customers/*/out%d/*.pdf=r", i, i)
	}
	for name, p := range map[string]Policy{"plain": {layer("all"), layer("lrw")},
		"patterns": {layer("all"), layer(text)}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.At("/customers/4711/in/2024-05-06 invoice.xml")
			}
		})
	}
}
