package s3object

import (
	"mime"
	"strings"
	"testing"
)

func TestContentType(t *testing.T) {
	own := map[string]string{".dwg": "application/x-own", ".own": "text/own"}
	for name, want := range map[string]string{
		"page.html": "text/html", "PHOTO.JPG": "image/jpeg", "a.b/backup.tar.gz": "application/gzip",
		"plan.DWG": "application/x-own",
		"x.own":    "text/own", "x.unknown": unknownType, "none": unknownType, ".pdf": "application/pdf",
		"dir.pdf/none": unknownType,
		"dot.":         unknownType, "": unknownType, "two.pdf words": unknownType, "line.pdf\n": unknownType,
		"é.xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	} {
		if got := mediaTypeOf(name, own); got != want {
			t.Errorf("%s has the type %s, want %s", name, got, want)
		}
	}
}

// TestMediaTypes checks the table: each line has a valid media type, and each extension is in lower case and occurs
// once.
func TestMediaTypes(t *testing.T) {
	known := map[string]bool{}
	_, table, _ := strings.Cut(mediaTypes, "\n")
	for line := range strings.Lines(table) {
		extension, want, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if extension != strings.ToLower(extension) || !strings.HasPrefix(extension, ".") || known[extension] {
			t.Errorf("%q is never found", extension)
		}
		known[extension] = true
		mediaType, params, err := mime.ParseMediaType(want)
		if err != nil || len(params) > 0 || mediaType != want || mediaType == unknownType {
			t.Errorf("%s has the type %q", extension, want)
		}
		if got := mediaTypeOf("name"+extension, nil); got != want {
			t.Errorf("%s has the type %q, want %q", extension, got, want)
		}
	}
	if len(known) < 150 {
		t.Errorf("there are %d extensions", len(known))
	}
}
