package pathname_test

import (
	"testing"
	"unicode/utf8"
)

func TestRaw(t *testing.T) {
	e := parseEncoding(t, "raw")
	tests := []struct{ label, bytes, name string }{
		{"empty", "", ""},
		{"ascii", "report.pdf", "report.pdf"},
		{"utf-8", "日本語", "日本語"},
		{"byte-order-mark", "\ufeffname", "\ufeffname"},
		{"replacement-character", "\ufffd", "\ufffd"},
		{"noncharacter", "\uffff", "\uffff"},
		{"latin-1", "caf\xe9", "caf‛E9"},
		{"shift-jis", "\x93\xfa\x96\x7b", "‛93‛FA‛96{"},
		{"overlong-slash", "\xc0\xaf", "‛C0‛AF"},
		{"surrogate", "\xed\xa0\x80", "‛ED‛A0‛80"},
		{"above-the-last", "\xf4\x90\x80\x80", "‛F4‛90‛80‛80"},
		{"cut-off", "\xe6\x97", "‛E6‛97"},
		{"cut-off-before-utf-8", "\xe6\x97é", "‛E6‛97é"},
		{"escape", "‛", "‛‛"},
		{"escapes", "‛‛", "‛‛‛‛"},
		{"looks-escaped", "‛FF", "‛‛FF"},
		{"escape-after-byte", "\xff‛FF", "‛FF‛‛FF"},
	}
	for _, tt := range tests {
		t.Run(tt.label, func(t *testing.T) {
			name, err := e.Decode(tt.bytes)
			if err != nil || name != tt.name {
				t.Errorf("Decode(%q) = %q, %v, want %q", tt.bytes, name, err, tt.name)
			}
			if bytes, ok := e.Encode(tt.name); !ok || bytes != tt.bytes {
				t.Errorf("Encode(%q) = %q, %t, want %q", tt.name, bytes, ok, tt.bytes)
			}
		})
	}
}

// TestRawNamesNoBytes tests names that do not represent any bytes.
func TestRawNamesNoBytes(t *testing.T) {
	e := parseEncoding(t, "raw")
	for _, name := range []string{"‛", "a‛b", "‛F", "‛ff", "‛G0", "‛41", "‛C3‛A9", "‛2F", "‛‛‛", "‛‛‛E9‛", "caf\xe9"} {
		if bytes, ok := e.Encode(name); ok {
			t.Errorf("Encode(%q) = %q", name, bytes)
		}
	}
}

// TestRawIsInjective decodes every byte and every pair of bytes, pairs also after the escape.
func TestRawIsInjective(t *testing.T) {
	e := parseEncoding(t, "raw")
	seen := make(map[string]string)
	check := func(bytes string) {
		name, err := e.Decode(bytes)
		if err != nil || !utf8.ValidString(name) {
			t.Fatalf("Decode(%q) = %q, %v", bytes, name, err)
		}
		if other, ok := seen[name]; ok {
			t.Fatalf("%q and %q are both %q", bytes, other, name)
		}
		seen[name] = bytes
		if encoded, ok := e.Encode(name); encoded != bytes || !ok {
			t.Fatalf("Decode(%q) = %q, but Encode gives %q, %t", bytes, name, encoded, ok)
		}
	}
	for first := range 256 {
		check(string([]byte{byte(first)}))
		for second := range 256 {
			bytes := string([]byte{byte(first), byte(second)})
			check(bytes)
			check("‛" + bytes)
		}
	}
}
