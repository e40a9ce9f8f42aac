package pathname

import (
	"sync"

	"golang.org/x/text/encoding/japanese"
)

// preferredBytes maps characters that a charset encodes in two ways to the bytes that other systems use, if x/text
// uses the other ones. Without them, Decode would refuse the names of those systems.
type preferredBytes map[rune]string

func (p preferredBytes) has(r rune) bool {
	_, ok := p[r]
	return ok
}

// preferredBytesOf returns the preferred bytes of a charset. All encodings share them, because each tenant has its own
// encoding, and creating the table of Shift_JIS takes 90 KiB, of which 16 KiB remain allocated.
func preferredBytesOf(name string) preferredBytes {
	switch name {
	case "shift_jis":
		return shiftJISBytes()
	case "big5":
		return big5Bytes()
	}
	return nil
}

// shiftJISBytes are the bytes that Windows, glibc and the Encoding Standard use. Microsoft's Shift_JIS contains IBM's
// extensions twice. x/text uses NEC's selection (lead bytes ED and EE), while these systems use IBM's positions (FA to
// FC). Many Japanese surnames have such a character, for example 髙 or 﨑.
var shiftJISBytes = sync.OnceValue(func() preferredBytes {
	charset, preferred := japanese.ShiftJIS, make(preferredBytes)
	for lead := byte(0xfa); lead <= 0xfc; lead++ {
		for trail := byte(0x40); trail <= 0xfc; trail++ {
			bytes := string([]byte{lead, trail})
			char, err := charset.NewDecoder().String(bytes)
			if err != nil {
				continue
			}
			encoded, err := charset.NewEncoder().String(char)
			if err == nil && (encoded[0] == 0xed || encoded[0] == 0xee) {
				preferred[[]rune(char)[0]] = bytes
			}
		}
	}
	return preferred
})

// big5Bytes are the bytes of Big5 itself. Hong Kong's supplement, and ETEN's characters before it, contain some
// characters a second time. x/text uses the second position, but Hong Kong writes 港 with the first one.
var big5Bytes = sync.OnceValue(func() preferredBytes {
	return preferredBytes{
		'〃': "\xa1\xb2", '瓩': "\xa2\x60", '╭': "\xa2\x7e", '╮': "\xa2\xa1", '╰': "\xa2\xa2", '╯': "\xa2\xa3",
		'卄': "\xa2\xcd", '包': "\xa5\x5d", '杞': "\xa7\xfb", '倩': "\xad\xc5", '卿': "\xad\xeb", '偽': "\xb0\xb0",
		'婷': "\xb4\x40", '晴': "\xb4\xb8", '港': "\xb4\xe4", '渝': "\xb4\xfc", '煮': "\xb5\x4e", '瑜': "\xb7\xec",
		'撐': "\xbc\xb5", '幵': "\xc9\xdb", '沜': "\xcb\x58", '砉': "\xcf\xf1", '彘': "\xd8\xf4",
	}
})
