package wire

import "testing"

func TestTransferParameters(t *testing.T) {
	// A step is the setter of a command and its argument.
	type step struct {
		set func(p *TransferParameters, arg string) bool
		arg string
	}
	typ, rest, rang := (*TransferParameters).SetType, (*TransferParameters).SetOffset, (*TransferParameters).SetRange
	for _, tt := range []struct {
		name    string
		steps   []step
		refused bool // the last step is refused
		offset  int64
		taken   ByteRange // range taken at the end
		inText  bool
	}{
		{name: "none", taken: WholeFile()},
		{name: "rest", steps: []step{{rest, "7"}}, offset: 7, taken: WholeFile()},
		{name: "rest-word", steps: []step{{rest, "7"}, {rest, "x"}}, refused: true, offset: 7, taken: WholeFile()},
		{name: "rest-sign", steps: []step{{rest, "+7"}}, refused: true, taken: WholeFile()},
		{name: "rest-after-rang", steps: []step{{rang, "2 5"}, {rest, "7"}}, offset: 7, taken: WholeFile()},
		{name: "rang", steps: []step{{rang, "2 5"}}, taken: ByteRange{2, 6}},
		{name: "rang-after-rest", steps: []step{{rest, "7"}, {rang, "2 5"}}, taken: ByteRange{2, 6}},
		{name: "rang-whole-file", steps: []step{{rang, "2 5"}, {rang, "1 0"}}, taken: WholeFile()},
		{name: "rang-backwards", steps: []step{{rang, "2 5"}, {rang, "5 2"}}, refused: true, taken: WholeFile()},
		{name: "rest-in-text", steps: []step{{typ, "a"}, {rest, "7"}}, offset: 7, taken: WholeFile(), inText: true},
		{name: "rest-then-text", steps: []step{{rest, "7"}, {typ, "A N"}}, offset: 7, taken: WholeFile(), inText: true},
		{name: "rest-in-text-then-bytes", steps: []step{{typ, "A"}, {rest, "7"}, {typ, "I"}}, offset: 7,
			taken: WholeFile(), inText: true},
		{name: "text-then-rest-in-bytes", steps: []step{{typ, "A"}, {typ, "L 8"}, {rest, "7"}}, offset: 7,
			taken: WholeFile()},
		{name: "bytes-of-7-bits", steps: []step{{typ, "L 7"}}, refused: true, taken: WholeFile()},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, ok := TransferParameters{}, true
			for _, step := range tt.steps {
				ok = step.set(&p, step.arg)
			}
			if ok == tt.refused {
				t.Errorf("accepted = %v", ok)
			}
			if p.Offset != tt.offset || p.RestartsInText() != tt.inText {
				t.Errorf("got offset %d, in text %v; want %d, %v", p.Offset, p.RestartsInText(), tt.offset, tt.inText)
			}
			if r := p.TakeRange(); r != tt.taken {
				t.Errorf("got range %v, want %v", r, tt.taken)
			}
			if r := p.TakeRange(); r != WholeFile() {
				t.Errorf("got range %v a second time", r)
			}
			if after := p.AfterTransfer(); after != (TransferParameters{ASCII: p.ASCII}) {
				t.Errorf("after a transfer: %+v", after)
			}
		})
	}
}

func TestHashNames(t *testing.T) {
	for _, verb := range HashVerbs() {
		algorithm := HashOfVerb(verb)
		if known, ok := FindHash(algorithm); !ok || known != algorithm {
			t.Errorf("%s computes %s, which HASH does not know", verb, algorithm)
		}
	}
	if got, ok := FindHash("sha-1"); !ok || got != "SHA-1" {
		t.Errorf("FindHash(sha-1) = %q, %v", got, ok)
	}
	if got, ok := FindHash("SHA-3"); ok {
		t.Errorf("FindHash(SHA-3) = %q", got)
	}
	if got, want := HashFeature("MD5"), "SHA-256;SHA-512;SHA-1;MD5*;CRC32"; got != want {
		t.Errorf("got FEAT line %s, want %s", got, want)
	}
}

func TestQuote(t *testing.T) {
	for name, want := range map[string]string{"/a": `"/a"`, `/a"b`: `"/a""b"`} {
		got := Quote(name)
		if got != want {
			t.Errorf("Quote(%s) = %s, want %s", name, got, want)
		}
		if back, rest, ok := unquote(got); !ok || back != name || rest != "" {
			t.Errorf("unquote(%s) = %s, %q, %v", got, back, rest, ok)
		}
	}
}
