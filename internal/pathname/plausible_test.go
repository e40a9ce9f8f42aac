package pathname

import "testing"

// TestPlausible tests names that people write in UTF-8, and names of devices whose bytes are valid UTF-8 by chance.
func TestPlausible(t *testing.T) {
	for name, want := range map[string]bool{
		"":                     true,
		"report.pdf":           true,
		"café.txt":             true,
		"cafe\u0301.txt":       true, // in NFD
		"Müller & Söhne.pdf":   true,
		"größe.doc":            true,
		"à faire.txt":          true,
		"źżć":                  true,
		"Œuvre complète":       true,
		"Łódź/":                true,
		"ığü.txt":              true,
		"ő.txt":                true,
		"Çeşme":                true,
		"Đường":                true,
		"nǐ hǎo":               true,
		"əli.txt":              true,
		"ɗan.txt":              true,
		"«été».txt":            true,
		"25°C.csv":             true,
		"m².txt":               true,
		"1½ pages.pdf":         true,
		"10µm.tif":             true,
		"Δt.csv":               true,
		"TNFα.xlsx":            true,
		"PDFфайл":              true,
		"αβγ":                  true,
		"шха\u0301":            true,
		"σ².csv":               true,
		"©.txt":                true,
		"Привет.txt":           true,
		"отчёт за год.xlsx":    true,
		"Αθήνα":                true,
		"שלום":                 true,
		"سلام":                 true,
		"پرونده":               true,
		"یک":                   true,
		"目录":                   true,
		"目录🎉.txt":              true,
		"\U0001fae9.txt":       true,
		"日本語のファイル":             true,
		"가나다":                  true,
		"naïve–draft…":         true,
		"Ŀ¼":                   false, // 目录 in GBK
		"IMGĿ¼.jpg":            false,
		"2024Ŀ¼":               false,
		"scan_Ŀ¼.pdf":          false,
		"Ŵƻ":                   false, // 鉄道 in EUC-JP
		"ξ¦":                   false, // 両側 in EUC-JP
		"ѧϰ":                   false, // 学习 in GBK
		"ѧ":                    false,
		"Ҳ":                    false, // 也 in GBK
		"ġ.txt":                false, // 치 in EUC-KR
		"ŷ.jpg":                false, // 天 in EUC-JP
		"¸":                    false, // 存 in EUC-JP
		"Ž":                    true,
		"ß":                    true,
		"Я.txt":                true,
		"° ":                   true,
		"¿Qué?":                true,
		"һ̨":                   false, // 一台 in GBK
		"\u0328":               false,
		"\u0085":               false,
		"ȣȭ":                   false, // 호화 in EUC-KR
		"Сα":                   false,
		"Ŵļ.txt":               false, // not the letters of any single language
		"ǰĿ¼":                  false, // 前目录 in GBK
		"report Ŀ¼ für Müller": false,
	} {
		t.Run(name, func(t *testing.T) {
			if got := Plausible(name); got != want {
				t.Errorf("Plausible(%q) = %t, want %t", name, got, want)
			}
		})
	}
}

// TestPlausibleInCharset tests names that people write in legacy charsets, and bytes that make no sense in them.
func TestPlausibleInCharset(t *testing.T) {
	for _, test := range []struct {
		charset, name string
		want          bool
	}{
		{"windows-1251", "Договор.pdf", true},
		{"windows-1251", "ОТЧЁТ 2024", true},
		{"windows-1251", "Київ", true},
		{"windows-1251", "Беларусь — ўсё", true},
		{"windows-1251", "Ђорђе", true},
		{"windows-1251", "ДїВјx", false}, // Ŀ¼x
		{"windows-1251", "ЕЃ", true},
		{"windows-1251", "Ејѓ", true},
		{"windows-1251", "їј", false},
		{"windows-1251", "ДїВј", false},
		{"windows-1251", "в„ў", false},
		{"windows-1251", "файлx", false},
		{"windows-1251", "«Весна»", true},
		{"windows-1251", "№ 5 „Весна“", true},
		{"koi8-r", "Привет", true},
		{"koi8-r", "дБОХКД", false},
		{"windows-1252", "Müller", true},
		{"windows-1252", "ÄŽ¼", false},
		{"windows-1253", "Αθήνα", true},
		{"gbk", "目录x", true},
	} {
		encoding, err := ParseEncoding(test.charset)
		if err != nil {
			t.Fatal(err)
		}
		if got := (Reading{test.name, encoding.charsets[0]}).Plausible(); got != test.want {
			t.Errorf("plausible(%q) in %s = %t, want %t", test.name, test.charset, got, test.want)
		}
	}
}
