package wire

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// readAll reads all command lines. It shows a line that is too long as such.
func readAll(r io.Reader) []string {
	commands := NewReader(r)
	var lines []string
	for {
		switch next := commands.Next(); {
		case errors.Is(next.Err, ErrLineTooLong):
			lines = append(lines, "TOO LONG")
		case next.Err != nil:
			return lines
		case next.None:
		default:
			lines = append(lines, next.Text)
		}
	}
}

func TestCommandReader(t *testing.T) {
	longest := strings.Repeat("a", MaxLine-len("STOR "))
	tests := []struct {
		name  string
		bytes string
		want  []string
	}{
		{"one-command", "NOOP\r\n", []string{"NOOP"}},
		{"pipelined", "USER a\r\nPASS b\r\n", []string{"USER a", "PASS b"}},
		{"spaces-belong-to-the-pathname", "STOR   foo.bar \r\n", []string{"STOR   foo.bar "}},
		{"cr-nul-is-cr", "USER a\r\nSTOR foo\r\x00\nboo.bar\r\n", []string{"USER a", "STOR foo\r\nboo.bar"}},
		{"cr-nul-lf-hides-no-command", "USER a\r\nSIZE x\r\x00\nDELE y\r\n", []string{"USER a", "SIZE x\r\nDELE y"}},
		{"lf-belongs-to-the-pathname", "USER a\r\nPASS b\r\nSIZE a\nb\r\n\n", []string{"USER a", "PASS b", "SIZE a\nb", ""}},
		{"lf-belongs-to-the-argument-of-an-unknown-command", "USER a\r\nXXX a\nDELE b\r\n",
			[]string{"USER a", "XXX a\nDELE b"}},
		{"lf-ends-a-verb", "USER a\r\nNOOP\nPWD\nSIZE a\nb\r\n", []string{"USER a", "NOOP", "PWD", "SIZE a\nb"}},
		{"lf-ends-what-is-no-pathname", "USER a\r\nTYPE I\nREST 0\nopts utf8 on\nSIZE a\nb\r\n",
			[]string{"USER a", "TYPE I", "REST 0", "opts utf8 on", "SIZE a\nb"}},
		{"lf-from-the-first-line-on", "USER a\nPASS b\nCWD c d\nSIZE e\nQUIT\n",
			[]string{"USER a", "PASS b", "CWD c d", "SIZE e", "QUIT"}},
		{"lf-from-the-password-on", "USER a\r\nPASS b\nSIZE c\nQUIT\n", []string{"USER a", "PASS b", "SIZE c", "QUIT"}},
		{"lf-from-another-user-on", "USER a\r\nPASS b\r\nuser a\nPASS b\nSIZE c\nQUIT\n",
			[]string{"USER a", "PASS b", "user a", "PASS b", "SIZE c", "QUIT"}},
		{"lf-before-user", "FEAT\nUSER a\r\nPASS b\r\nSIZE c\nSIZE d\r\n",
			[]string{"FEAT", "USER a", "PASS b", "SIZE c", "SIZE d"}},
		{"lf-before-user-ends-a-pathname", "SIZE c\nUSER a\n", []string{"SIZE c", "USER a"}},
		{"lf-after-rein", "USER a\r\nREIN\r\nSIZE c\nUSER a\nSIZE d\n", []string{"USER a", "REIN", "SIZE c", "USER a", "SIZE d"}},
		{"lf-and-spaces", "USER a \nCWD  b \n", []string{"USER a ", "CWD  b "}},
		{"lf-and-crlf", "USER a\nSIZE b\r\nSIZE c\nSIZE d\r\x00\n", []string{"USER a", "SIZE b", "SIZE c", "SIZE d\r"}},
		{"lf-cut-short-is-no-command", "USER a\nDELE x\nDELE y", []string{"USER a", "DELE x"}},
		{"lf-behind-a-telnet-option", "USER a\nSIZE b\xff\xfe\nNOOP\n", []string{"USER a", "SIZE b", "NOOP"}},
		{"lf-behind-a-line-too-long", "USER a\nSTOR " + longest + "b\nNOOP\n", []string{"USER a", "TOO LONG", "NOOP"}},
		{"cr-alone-stays", "SIZE a\rb\r\n", []string{"SIZE a\rb"}},
		{"cr-alone-ends-nothing", "USER a\rPASS b\r", nil},
		{"cr-before-crlf", "SIZE a\r\r\nSIZE b\r\r\r\r\nNOOP\r\r\n\r\r\n", []string{"SIZE a", "SIZE b", "NOOP", ""}},
		{"cr-before-crlf-behind-lf", "USER a\nSIZE a\r\r\n", []string{"USER a", "SIZE a"}},
		{"cr-nul-before-crlf-stays", "SIZE a\r\x00\r\nSIZE a\r\r\x00\r\r\n", []string{"SIZE a\r", "SIZE a\r\r"}},
		{"crs-within", "USER a\r\nSIZE a\r\rb\r\r\x00\n\r\r\n", []string{"USER a", "SIZE a\r\rb\r\r\n"}},
		{"crs-before-the-end-of-the-longest", "STOR " + longest + "\r\r\r\n", []string{"STOR " + longest}},
		{"many-crs", "SIZE " + strings.Repeat("\r", 1<<20) + "\nSIZE " + strings.Repeat("\r", 1<<20) + "x\r\n",
			[]string{"SIZE ", "TOO LONG"}},
		{"nul-alone-stays", "SIZE a\x00b\r\n", []string{"SIZE a\x00b"}},
		{"empty-line", "\r\n", []string{""}},
		{"telnet-interrupt-and-synch", "\xff\xf4\xff\xf2ABOR\r\n", []string{"ABOR"}},
		{"telnet-option", "\xff\xfd\x18NO\xff\xfb\x01OP\r\n", []string{"NOOP"}},
		{"telnet-subnegotiation", "\xff\xfa\x18\x00vt100\r\n\xff\xffx\xff\xf0NOOP\r\n", []string{"NOOP"}},
		{"telnet-escaped-255", "SIZE \xff\xff\r\n", []string{"SIZE \xff"}},
		{"telnet-in-an-argument", "SIZE a\xff\xf1\xff\xfd\x18\xff\xfa\x18\r\n\xff\xf0b\r\n", []string{"SIZE ab"}},
		{"no-telnet-command", "SIZE \xff.txt\r\nSIZE \xff\r\nN\xff\x01OOP\r\n",
			[]string{"SIZE \xff.txt", "SIZE \xff", "N\xff\x01OOP"}},
		{"no-telnet-option-at-the-end", "SIZE a\xff\xfe\r\nNOOP\r\n", []string{"SIZE a", "NOOP"}},
		{"cut-short-is-no-command", "DELE x\r\nDELE y", []string{"DELE x"}},
		{"cut-in-its-end-is-no-command", "DELE y\r", nil},
		{"longest", "STOR " + longest + "\r\n", []string{"STOR " + longest}},
		{"too-long", "STOR " + longest + "b\r\nNOOP\r\n", []string{"TOO LONG", "NOOP"}},
		{"far-too-long", strings.Repeat("x", 1<<20) + "\r\nNOOP\r\n", []string{"TOO LONG", "NOOP"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := readAll(strings.NewReader(tt.bytes)); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if got := readAll(iotest.OneByteReader(strings.NewReader(tt.bytes))); !slices.Equal(got, tt.want) {
				t.Errorf("byte by byte: got %q, want %q", got, tt.want)
			}
		})
	}
}

// Bytes in an argument that look like Telnet commands are kept too, for charsets in which they are letters.
func TestCommandReaderKeepsLetters(t *testing.T) {
	for _, tt := range []struct{ name, bytes, want string }{
		{"none", "SIZE a\xff.b\xff\xff\r\n", ""},
		{"before-the-argument", "\xff\xf4\xff\xf2SIZE a\r\n", ""},
		{"letters", "SIZE a\xff\xf1b\xff\xff\xff\xfe \xff.\r\x00\xff\xfe\r\n",
			"SIZE a\xff\xf1b\xff\xff\xfe \xff.\r\xff\xfe"},
		{"subnegotiation", "SIZE a\xff\xfa\r\n\xff\xf0b\xff\xf1\r\n", "SIZE ab\xff\xf1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := NewReader(strings.NewReader(tt.bytes)).Next(); got.Literal != tt.want || got.Err != nil {
				t.Errorf("got %q, %v; want %q", got.Literal, got.Err, tt.want)
			}
		})
	}
}

// A request for a Telnet option is refused, and other Telnet commands get no reply (RFC 1123, 4.1.2.12).
func TestCommandReaderRefusesOptions(t *testing.T) {
	many := strings.Repeat("\xff\xfd\x18", commandBuffer)
	for _, tt := range []struct {
		name, bytes string
		want        Line
	}{
		{"do", "\xff\xfd\x18", Line{None: true, Refusals: []byte("\xff\xfc\x18"), Certain: 3}},
		{"will", "\xff\xfb\x01", Line{None: true, Refusals: []byte("\xff\xfe\x01"), Certain: 3}},
		{"several-at-once", "\xff\xfd\x18\xff\xf1\xff\xfb\x01",
			Line{None: true, Refusals: []byte("\xff\xfc\x18\xff\xfe\x01"), Certain: 6}},
		{"option-255", "\xff\xfd\xff\xff\xf1", Line{None: true, Refusals: []byte("\xff\xfc\xff"), Certain: 3}},
		{"others-have-no-answer", "\xff\xfe\x18\xff\xfc\x18\xff\xf4\xff\xf2\xff\xfa\x18\xff\xf0NOOP\r\n",
			Line{Text: "NOOP"}},
		{"none-without-an-option", "\xff\xfd\r\nNOOP\r\n", Line{}},
		{"in-a-verb", "NO\xff\xfb\x01OP\r\n", Line{Text: "NOOP", Refusals: []byte("\xff\xfe\x01"), Certain: 3}},
		{
			"in-an-argument", "SI\xff\xfb\x01ZE a\xff\xfd\x18\r\n",
			Line{Text: "SIZE a", Literal: "SIZE a\xff\xfd\x18", Refusals: []byte("\xff\xfe\x01\xff\xfc\x18"),
				Certain: 3},
		},
		{"doubled", "SIZE \xff\xff\xfd\x18\r\n", Line{Text: "SIZE \xff\xfd\x18"}},
		{"line-too-long", strings.Repeat("x", MaxLine+1) + "\xff\xfb\x01\r\n",
			Line{Err: ErrLineTooLong, Refusals: []byte("\xff\xfe\x01"), Certain: 3}},
		{
			"no-more-than-so-many", "N" + many + "OOP\r\n",
			Line{Text: "NOOP", Refusals: []byte(strings.Repeat("\xff\xfc\x18", maxRefusals/3)),
				Certain: maxRefusals / 3 * 3},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := NewReader(strings.NewReader(tt.bytes)).Next()
			if got.Text != tt.want.Text || got.Literal != tt.want.Literal || got.None != tt.want.None ||
				!errors.Is(got.Err, tt.want.Err) ||
				!bytes.Equal(got.Refusals, tt.want.Refusals) || got.Certain != tt.want.Certain {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
	t.Run("before-the-rest-is-there", func(t *testing.T) {
		in, out := net.Pipe()
		defer in.Close()
		go func() { _, _ = in.Write([]byte("\xff\xfd\x03")) }() // and no more bytes
		if got := NewReader(out).Next(); string(got.Refusals) != "\xff\xfc\x03" || !got.None {
			t.Errorf("got %+v", got)
		}
	})
}

// FuzzCommandReader: the result does not depend on how the bytes arrive, no line contains its line end, and a line
// written with the padding of RFC 2640 is read back unchanged.
func FuzzCommandReader(f *testing.F) {
	f.Add([]byte("STOR foo\r\x00\nboo\r\nNOOP\n\xff\xf4\xff\xf2ABOR\r\n"))
	f.Add([]byte("\xff\xfa\xff\xff\xff\xf0 \r\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		whole := readAll(strings.NewReader(string(b)))
		bytewise := readAll(iotest.OneByteReader(strings.NewReader(string(b))))
		if !slices.Equal(whole, bytewise) {
			t.Fatalf("whole %q, byte by byte %q", whole, bytewise)
		}
		for _, line := range whole {
			if len(line) > MaxLine {
				t.Fatalf("got a line of %d bytes", len(line))
			}
		}
		arg := string(b)
		if len(arg) > MaxLine-len("STOR ") {
			return
		}
		sent := "USER a\r\nSTOR " + strings.NewReplacer("\r", "\r\x00", "\xff", "\xff\xff").Replace(arg) + "\r\n"
		if got := readAll(strings.NewReader(sent)); len(got) != 2 || got[1] != "STOR "+arg {
			t.Fatalf("sent %q, got %q", sent, got)
		}
	})
}

func TestParseCommand(t *testing.T) {
	tests := []struct {
		line, verb, arg string
		hasArg          bool
	}{
		{"noop", "NOOP", "", false},
		{"Retr  a b ", "RETR", " a b ", true},
		{"PWD ", "PWD", "", true},
		{"XSHA256 x", "XSHA256", "x", true},
		{"", "", "", false},
		{" NOOP", "", "NOOP", true},
		{"ſize x", "", "x", true},
		{"lıst", "", "", false},
		{"ÉSTAT", "", "", false},
		{"QU\x00IT", "", "", false},
	}
	for _, tt := range tests {
		verb, arg, hasArg := ParseCommand(tt.line)
		if verb != tt.verb || arg != tt.arg || hasArg != tt.hasArg {
			t.Errorf("ParseCommand(%q) = %q, %q, %v", tt.line, verb, arg, hasArg)
		}
	}
}

// FuzzParseCommand: verbs have a valid form, and no part of the line is lost.
func FuzzParseCommand(f *testing.F) {
	f.Add("STOR  x")
	f.Add("ſize")
	f.Fuzz(func(t *testing.T, line string) {
		verb, arg, hasArg := ParseCommand(line)
		if strings.Trim(verb, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "" {
			t.Fatalf("unexpected verb %q", verb)
		}
		if hasArg != strings.Contains(line, " ") || hasArg && !strings.HasSuffix(line, " "+arg) {
			t.Fatalf("unexpected argument %q of %q", arg, line)
		}
	})
}

// The first bytes of another protocol are recognized, and other lines are not taken for one.
func TestCommandReaderKnowsForeignProtocols(t *testing.T) {
	for _, tt := range []struct {
		name, bytes string
		want        Line
	}{
		{"tls", "\x16\x03\x01\x02\x00\x01\n", Line{None: true, Foreign: ForeignTLS}},
		{"proxy-1", "PROXY TCP4 192.0.2.7 203.0.113.1 1024 21\r\n", Line{None: true, Foreign: ForeignPROXY}},
		{"proxy-2", "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c", Line{None: true, Foreign: ForeignPROXY}},
		{"proxy-without-an-argument", "PROXY\r\n", Line{Text: "PROXY"}},
		{"empty-lines", "\r\n\r\n", Line{}},
		{"one-byte", "\x16\r\n", Line{Text: "\x16"}},
		{"command", "USER alice\r\n", Line{Text: "USER alice"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := NewReader(strings.NewReader(tt.bytes))
			if got := r.Next(); got.Text != tt.want.Text || got.None != tt.want.None ||
				got.Foreign != tt.want.Foreign || got.Err != nil {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if again := r.Next(); again.Foreign != "" {
				t.Errorf("unexpected second line %+v", again)
			}
		})
	}
}

// The description of an incomplete line says why its end is missing.
func TestCommandReaderKnowsUnfinishedLines(t *testing.T) {
	for _, tt := range []struct {
		name, bytes string
		want        Unfinished
	}{
		{"none", "USER a\r\n", 0},
		{"text", "USER a\r\nSTOR b", UnfinishedText},
		{"lf", "USER a\r\nSTOR b\n", UnfinishedText | UnfinishedLF},
		{"cr", "USER a\r", UnfinishedText | UnfinishedCR},
		{"telnet-command", "\xff\xf4\xff\xf2", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := NewReader(strings.NewReader(tt.bytes))
			for r.Next().Err == nil {
			}
			if got := r.Unfinished(); got != tt.want {
				t.Errorf("got %b, want %b", got, tt.want)
			}
		})
	}
}
