package keyring

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

func secret(b byte) string {
	return base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(rune(b)), KeySize)))
}

func parse(t *testing.T, keys ...string) *Ring {
	t.Helper()
	r, err := Parse(strings.Join(keys, "\n"))
	must.OK(t, err)
	return r
}

func TestSealAndOpen(t *testing.T) {
	a := parse(t, secret('a'))
	text, err := a.Seal("bans/x", 7, []byte("value"))
	must.OK(t, err)
	if strings.Contains(text, "value") {
		t.Errorf("Seal = %s, want no plain text", text)
	}
	again, err := a.Seal("bans/x", 7, []byte("value"))
	must.OK(t, err)
	if text == again {
		t.Error("two calls of Seal return the same text")
	}
	value, version, err := a.Open("bans/x", text)
	if string(value) != "value" || version != 7 || err != nil {
		t.Errorf("Open = %q, %d, %v", value, version, err)
	}
}

// A new key is added after the old one, then moved before it, and the old one is removed. Values that are not written
// again need the old key.
func TestRotation(t *testing.T) {
	old, new := secret('a'), secret('b')
	text, err := parse(t, old).Seal("x", 1, []byte("value"))
	must.OK(t, err)
	for _, ring := range []*Ring{parse(t, old, new), parse(t, new, old)} {
		if value, _, err := ring.Open("x", text); string(value) != "value" || err != nil {
			t.Errorf("Open = %q, %v", value, err)
		}
	}
	if text, err = parse(t, new, old).Seal("x", 2, []byte("next")); err != nil {
		t.Fatal(err)
	}
	if value, _, err := parse(t, new).Open("x", text); string(value) != "next" || err != nil {
		t.Errorf("Open = %q, %v", value, err)
	}
	_, _, err = parse(t, old).Open("x", text)
	if unknown, ok := errors.AsType[*UnknownKeyError](err); !ok || unknown.Key != parse(t, new).First() {
		t.Errorf("Open with the old key: %v", err)
	}
}

func TestRefused(t *testing.T) {
	r := parse(t, secret('a'))
	text, err := r.Seal("bans/x", 7, []byte("value"))
	must.OK(t, err)
	for name, tt := range map[string]struct{ name, text string }{
		"another-name":    {"bans/y", text},
		"another-version": {"bans/x", strings.Replace(text, `"version":7`, `"version":8`, 1)},
		"damaged":         {"bans/x", strings.Replace(text, `"data":"`, `"data":"AAAA`, 1)},
		"short":           {"bans/x", `{"version":7,"key":"` + r.First() + `","data":"AAAA"}`},
		"no-JSON":         {"bans/x", "value"},
		"empty":           {"bans/x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if value, _, err := r.Open(tt.name, tt.text); err == nil {
				t.Errorf("Open = %q, want an error", value)
			}
		})
	}
}

func TestParse(t *testing.T) {
	for _, text := range []string{"", " \n", "short", secret('a')[:40], secret('a') + " " + "c2hvcnQ="} {
		if _, err := Parse(text); err == nil {
			t.Errorf("Parse(%q): no error", text)
		} else if strings.Contains(err.Error(), "c2hvcnQ") || text != "" && strings.Contains(err.Error(), secret('a')) {
			t.Errorf("Parse(%q): the error contains a key: %v", text, err)
		}
	}
}
