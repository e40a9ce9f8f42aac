package account

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/text/language"

	"github.com/babelftp/babelftp/driver"
	"github.com/babelftp/babelftp/internal/config"
)

// ruleFor returns the rule of alice, whose root is /in, for a file in a tenant with these rules.
func ruleFor(t *testing.T, rules []config.ObjectRule, name string, origin driver.Origin) driver.Rule {
	t.Helper()
	tenant := &Tenant{Name: "acme", Tenant: &config.Tenant{}, rules: newObjectRules(rules)}
	u := &User{User: &config.User{Root: "/in"}, Name: "alice", Tenant: tenant}
	ctx := withClient(context.Background(), Client{
		Session: "s1", Address: netip.MustParseAddr("192.0.2.1"), Language: language.MustParse("pt-BR"),
	})
	return u.rulesIn("/")(ctx, name, origin)
}

func TestObjectRules(t *testing.T) {
	set := func(class string, tags map[string]string) config.ObjectAttributes {
		return config.ObjectAttributes{StorageClass: class, Tags: tags}
	}
	for name, tc := range map[string]struct {
		rules  []config.ObjectRule
		origin driver.Origin
		class  types.StorageClass
		tags   string
	}{
		"all":            {[]config.ObjectRule{{Set: set("A", nil)}}, driver.Uploaded, "A", ""},
		"root":           {[]config.ObjectRule{{Path: "/", Set: set("A", nil)}}, driver.Uploaded, "A", ""},
		"above":          {[]config.ObjectRule{{Path: "/in", Set: set("A", nil)}}, driver.Uploaded, "A", ""},
		"pattern":        {[]config.ObjectRule{{Path: "/in/*/b*", Set: set("A", nil)}}, driver.Uploaded, "A", ""},
		"other":          {[]config.ObjectRule{{Path: "/a", Set: set("A", nil)}}, driver.Uploaded, "", ""},
		"user":           {[]config.ObjectRule{{User: "al*", Set: set("A", nil)}}, driver.Uploaded, "A", ""},
		"other-user":     {[]config.ObjectRule{{User: "bob", Set: set("A", nil)}}, driver.Uploaded, "", ""},
		"copied":         {[]config.ObjectRule{{Set: set("A", nil)}}, driver.Copied, "A", ""},
		"kept":           {[]config.ObjectRule{{Keep: true, Set: set("A", nil)}}, driver.Copied, "", ""},
		"kept-at-upload": {[]config.ObjectRule{{Keep: true, Set: set("A", nil)}}, driver.Uploaded, "A", ""},
		"first-of-each": {[]config.ObjectRule{
			{Path: "/x", Set: set("X", map[string]string{"a": "x"})},
			{Set: set("", map[string]string{"a": "1"})},
			{Set: set("B", map[string]string{"a": "2", "b": "2"})},
			{Set: set("C", map[string]string{"b": "3", "c": "3"})},
		}, driver.Uploaded, "B", "a=1 b=2 c=3"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ruleFor(t, tc.rules, "/a/b.txt", tc.origin)
			var tags []string
			for _, key := range []string{"a", "b", "c"} {
				if text, ok := got.Tags[key]; ok {
					tags = append(tags, key+"="+text)
				}
			}
			if got.StorageClass != tc.class || strings.Join(tags, " ") != tc.tags {
				t.Errorf("storage class %q and tags %q, want %q and %q", got.StorageClass, tags, tc.class, tc.tags)
			}
		})
	}
}

// A rule that sets legal_hold to false protects files from a later rule.
func TestObjectRulesOfLocks(t *testing.T) {
	yes, no := true, false
	rules := []config.ObjectRule{
		{Path: "/in/tmp", Set: config.ObjectAttributes{LegalHold: &no}},
		{Set: config.ObjectAttributes{LegalHold: &yes, Retain: config.Retention{Mode: "governance", Days: 30}}},
	}
	if got := ruleFor(t, rules, "/a", driver.Uploaded); !got.LegalHold || got.LockMode != types.ObjectLockModeGovernance ||
		got.LockFor != 30*24*time.Hour {
		t.Errorf("/a is locked by %+v", got)
	}
	if got := ruleFor(t, rules, "/tmp/a", driver.Uploaded); got.LegalHold {
		t.Error("/tmp/a has a legal hold")
	}
}

func TestPlaceholders(t *testing.T) {
	for text, want := range map[string]struct{ tag, metadata string }{
		"{user}@{tenant}":        {"alice@acme", "alice@acme"},
		"{address} {session}":    {"192.0.2.1 s1", "192.0.2.1 s1"},
		"{language}":             {"pt-BR", "pt-BR"},
		"{stem}|{ext}|{name}":    {"Übergabe _ co_.txt_Übergabe _ co.txt", "%C3%9Cbergabe & co|.txt|%C3%9Cbergabe & co.txt"},
		"100 %":                  {"100 _", "100 %25"},
		strings.Repeat("ü", 300): {strings.Repeat("ü", 256), strings.Repeat("%C3%BC", 85)},
	} {
		rules := []config.ObjectRule{{Set: config.ObjectAttributes{
			Tags: map[string]string{"a": text}, Metadata: map[string]string{"a": text},
		}}}
		got := ruleFor(t, rules, "/dir/Übergabe & co.txt", driver.Uploaded)
		if got.Tags["a"] != want.tag {
			t.Errorf("%s is the tag %q, want %q", text, got.Tags["a"], want.tag)
		}
		if got.Metadata["a"] != want.metadata {
			t.Errorf("%s is the metadata %q, want %q", text, got.Metadata["a"], want.metadata)
		}
	}
	date := time.Now().UTC().Format(time.DateOnly)
	rules := []config.ObjectRule{{Set: config.ObjectAttributes{Tags: map[string]string{"a": "{date} {time}"}}}}
	got := ruleFor(t, rules, "/a", driver.Uploaded).Tags["a"]
	if !strings.HasPrefix(got, date+" ") || len(got) != len("2006-01-02 150405") {
		t.Errorf("{date} {time} is %q", got)
	}
}
