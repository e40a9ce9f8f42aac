package driver

import (
	"go/ast"
	"go/parser"
	"go/token"
	"mime"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

func TestContentType(t *testing.T) {
	o := Objects{ContentTypes: map[string]string{".dwg": "application/x-own", ".own": "text/own"}}
	for name, want := range map[string]string{
		"page.html": "text/html", "PHOTO.JPG": "image/jpeg", "a.b/backup.tar.gz": "application/gzip", "plan.DWG": "application/x-own",
		"x.own": "text/own", "x.unknown": unknownType, "none": unknownType, ".pdf": "application/pdf", "dir.pdf/none": unknownType,
		"dot.": unknownType, "": unknownType, "é.xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	} {
		if got := o.contentType(name); got != want {
			t.Errorf("%s has the type %s, want %s", name, got, want)
		}
	}
}

// TestMediaTypes reads the table: each type is one, and each ending is in lower case and has a type.
func TestMediaTypes(t *testing.T) {
	_, here, _, _ := runtime.Caller(0)
	file, err := parser.ParseFile(token.NewFileSet(), strings.TrimSuffix(filepath.Clean(here), "_test.go")+".go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	endings := 0
	ast.Inspect(file, func(n ast.Node) bool {
		clause, ok := n.(*ast.CaseClause)
		if !ok {
			return true
		}
		for _, e := range clause.List {
			ending, err := strconv.Unquote(e.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			endings++
			mediaType, params, err := mime.ParseMediaType(mediaTypeOf(ending))
			if err != nil || len(params) > 0 || mediaType != mediaTypeOf(ending) || mediaType == unknownType {
				t.Errorf("%s has the type %q", ending, mediaTypeOf(ending))
			}
			if ending != strings.ToLower(ending) || !strings.HasPrefix(ending, ".") {
				t.Errorf("%q is never found", ending)
			}
		}
		return true
	})
	if endings < 150 {
		t.Errorf("there are %d endings", endings)
	}
}
