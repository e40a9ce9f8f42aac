package main

import (
	"testing"
	"time"
)

// Numbers, times and names are short and have no effect on a terminal.
func TestTexts(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1<<20 - 1: "1.0 MiB", 5 << 30: "5.0 GiB",
		1 << 62: "4.0 EiB",
	} {
		if got := bytesText(n); got != want {
			t.Errorf("%d bytes are %s, want %s", n, got, want)
		}
	}
	now := time.Now()
	for d, want := range map[time.Duration]string{
		-time.Hour: "0s", 1500 * time.Millisecond: "1s", 90 * time.Second: "1m30s", 3 * time.Hour: "3h0m",
		50 * time.Hour: "2d2h",
	} {
		if got := ago(now.Add(-d), now); got != want {
			t.Errorf("%s ago is %s, want %s", d, got, want)
		}
	}
	for text, want := range map[string]string{"é\t日本": `é\x09日本`, "a\xff\r\n": `a\xff\x0d\x0a`,
		"\u202e\u2028\U000E0001": `\u{202E}\u{2028}\u{E0001}`,
		"می\u200cخواهم\u2068":    "می\u200cخواهم" + `\u{2068}`, "क्\u200dष": "क्\u200dष", "\u200b": `\u{200B}`} {
		if got := visible(text); got != want {
			t.Errorf("%q is shown as %s, want %s", text, got, want)
		}
	}
}
