package wire

import "testing"

func TestUpper(t *testing.T) {
	for word, want := range map[string]string{"": "", "mlst": "MLST", "a-1 Z": "A-1 Z", "tl\u017f": "TL\u017f",
		"\u212a": "\u212a", "\u00e9": "\u00e9"} {
		if got := Upper(word); got != want {
			t.Errorf("Upper(%q) is %q, want %q", word, got, want)
		}
	}
	if !Equal("modify", "MODIFY") || Equal("ask", "AS\u212a") {
		t.Error("Equal goes by other letters than ASCII")
	}
}
