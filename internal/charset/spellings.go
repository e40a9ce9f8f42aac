package charset

import "golang.org/x/text/encoding"

// spellings are the bytes of characters that a charset has twice, where x/text
// writes those that other systems read but never write. Decode would refuse what
// these write if it went by x/text.
type spellings map[rune]string

func (s spellings) have(r rune) bool {
	_, ok := s[r]
	return ok
}

func newSpellings(name string, charset encoding.Encoding) spellings {
	switch name {
	case "shift_jis":
		return shiftJISSpellings(charset)
	case "big5":
		return big5Spellings()
	}
	return nil
}

// shiftJISSpellings are those of Windows, of glibc and of the Encoding Standard.
// Microsoft's Shift_JIS has IBM's extensions twice: in NEC's selection of them
// (lead bytes ED and EE), which x/text writes, and where IBM had them (FA to FC).
// Among them are 髙 and 﨑, with which many a Japanese surname is written.
func shiftJISSpellings(charset encoding.Encoding) spellings {
	s := make(spellings)
	for lead := byte(0xfa); lead <= 0xfc; lead++ {
		for trail := byte(0x40); trail <= 0xfc; trail++ {
			spelling := string([]byte{lead, trail})
			char, err := charset.NewDecoder().String(spelling)
			if err != nil {
				continue
			}
			encoded, err := charset.NewEncoder().String(char)
			if err == nil && (encoded[0] == 0xed || encoded[0] == 0xee) {
				s[[]rune(char)[0]] = spelling
			}
		}
	}
	return s
}

// big5Spellings are those of Big5 itself. Hong Kong's supplement, and ETEN's
// characters before it, have some characters a second time. x/text writes the last
// of two spellings. It would not know the 港 that Hong Kong writes.
func big5Spellings() spellings {
	return spellings{
		'〃': "\xa1\xb2", '瓩': "\xa2\x60", '╭': "\xa2\x7e", '╮': "\xa2\xa1", '╰': "\xa2\xa2", '╯': "\xa2\xa3",
		'卄': "\xa2\xcd", '包': "\xa5\x5d", '杞': "\xa7\xfb", '倩': "\xad\xc5", '卿': "\xad\xeb", '偽': "\xb0\xb0",
		'婷': "\xb4\x40", '晴': "\xb4\xb8", '港': "\xb4\xe4", '渝': "\xb4\xfc", '煮': "\xb5\x4e", '瑜': "\xb7\xec",
		'撐': "\xbc\xb5", '幵': "\xc9\xdb", '沜': "\xcb\x58", '砉': "\xcf\xf1", '彘': "\xd8\xf4",
	}
}
