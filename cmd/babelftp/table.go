package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/babelftp/babelftp/internal/report"
)

// A table prints rows with aligned columns. It escapes control characters, because clients choose some of the
// texts.
type table struct{ w *tabwriter.Writer }

func newTable(out io.Writer, columns ...string) *table {
	t := &table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	t.row(columns...)
	return t
}

// row adds a row. Empty cells are printed as "-".
func (t *table) row(cells ...string) {
	for i, cell := range cells {
		if cell == "" {
			cell = "-"
		}
		cells[i] = visible(cell)
	}
	fmt.Fprintln(t.w, strings.Join(cells, "\t"))
}

func (t *table) flush() error { return t.w.Flush() }

// visible escapes control characters, which a terminal would interpret, and characters that change the
// direction of text. The joiners (U+200C, U+200D) stay, because Persian and Indic words and emoji need them.
func visible(text string) string {
	return report.EscapeUnprintable(text, func(b *strings.Builder, r rune, bytes string) {
		if unicode.Is(unicode.Join_Control, r) {
			b.WriteRune(r)
			return
		}
		if r < ' ' || r == utf8.RuneError {
			fmt.Fprintf(b, `\x%02x`, bytes)
			return
		}
		fmt.Fprintf(b, `\u{%X}`, r)
	})
}

// writeJSON prints a value as JSON. Control characters are escaped, so that the output is safe for a terminal.
func writeJSON(out io.Writer, v any) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		escaped := report.EscapeUnprintable(
			strings.TrimSuffix(line, "\n"), func(b *strings.Builder, r rune, _ string) {
				for _, unit := range utf16.Encode([]rune{r}) {
					fmt.Fprintf(b, `\u%04x`, unit)
				}
			})
		if _, err := fmt.Fprintln(out, escaped); err != nil {
			return err
		}
	}
	return nil
}

// bytesText formats a number of bytes with at most four digits and a unit.
func bytesText(n int64) string {
	const unit = 1024
	if n < unit {
		return strconv.FormatInt(n, 10) + " B"
	}
	value, prefix := float64(n)/unit, 0
	for value >= unit-0.05 && prefix < len("KMGTPE")-1 {
		value /= unit
		prefix++
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGTPE"[prefix])
}

// ago formats the time since at in its two largest units.
func ago(at, now time.Time) string {
	d := max(0, now.Sub(at)).Truncate(time.Second)
	const day = 24 * time.Hour
	switch {
	case d >= day:
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return d.String()
}
