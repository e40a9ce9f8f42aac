package docs_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// A use is a place in the program that sends a message.
type use struct {
	file, function string
	code           string // of the reply, empty where the place does not name it
}

// uses finds the places of each constant of a message in the program.
func uses(t *testing.T) map[string][]use {
	t.Helper()
	found := map[string][]use{}
	err := filepath.WalkDir(filepath.Join(root, "internal"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") ||
			strings.Contains(path, "testkit") {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		for _, d := range parsed.Decls {
			of := ""
			if f, ok := d.(*ast.FuncDecl); ok {
				of = f.Name.Name
			}
			ast.Inspect(d, func(n ast.Node) bool {
				for _, list := range lists(n) {
					for i, e := range list {
						if id := messageOf(e); id != "" {
							code := ""
							if i > 0 {
								code = codeOf(list[i-1])
							}
							u := use{filepath.ToSlash(name), of, code}
							if !slices.Contains(found[id], u) {
								found[id] = append(found[id], u)
							}
						}
					}
				}
				return true
			})
		}
		return err
	})
	must.OK(t, err)
	return found
}

// lists are the expressions below a node, as far as they stand side by side.
func lists(n ast.Node) [][]ast.Expr {
	switch n := n.(type) {
	case *ast.CallExpr:
		return [][]ast.Expr{n.Args}
	case *ast.CompositeLit:
		return [][]ast.Expr{n.Elts}
	case *ast.ReturnStmt:
		return [][]ast.Expr{n.Results}
	case *ast.AssignStmt:
		return [][]ast.Expr{n.Rhs}
	case *ast.KeyValueExpr:
		return [][]ast.Expr{{n.Value}}
	case *ast.ValueSpec:
		return [][]ast.Expr{n.Values}
	}
	return nil
}

// messageOf is the name of the constant of a message, empty for another expression.
func messageOf(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		if of, ok := s.X.(*ast.Ident); ok && of.Name == "i18n" && ast.IsExported(s.Sel.Name) {
			return s.Sel.Name
		}
	}
	return ""
}

// codeOf is the code of a reply, empty for another expression.
func codeOf(e ast.Expr) string {
	if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.INT && len(l.Value) == len("250") {
		return l.Value
	}
	return ""
}

// TestTexts compares the table of the texts of replies with the places that send them, or writes it with -update. The
// note for translators has each code that these places name.
func TestTexts(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(root, "locales", "en", "messages.gotext.json"))
	must.OK(t, err)
	var english struct {
		Messages []struct {
			ID                         i18n.ID
			Message, TranslatorComment string
		}
	}
	must.OK(t, json.Unmarshal(source, &english))
	names, all := constants(t), uses(t)
	var b strings.Builder
	b.WriteString("| text | where it appears | sent by |\n| --- | --- | --- |\n")
	for _, m := range english.Messages {
		id := string(m.ID)
		if m.ID.OnPage() || strings.HasPrefix(id, "syntax-") || strings.HasPrefix(id, "doctor-") ||
			strings.HasPrefix(id, "size-") { // a value in other texts
			continue
		}
		var places []string
		for _, u := range all[names[id]] {
			if u.code != "" && !strings.Contains(m.TranslatorComment, u.code) {
				t.Errorf("the comment of %s in the English catalogue lacks %s, which %s in %s sends", id, u.code,
					u.function, u.file)
			}
			place := fmt.Sprintf("[`%s`](../%s)", cmp.Or(u.function, filepath.Base(u.file)), u.file)
			sends := u.function != "AboutFile" && !strings.HasPrefix(u.file, "internal/doctor")
			if sends && !slices.Contains(places, place) {
				places = append(places, place)
			}
		}
		if len(places) == 0 {
			t.Errorf("nothing sends the text %s: remove it", id)
		}
		fmt.Fprintf(&b, "| `%s`: %s | %s | %s |\n", id, m.Message, m.TranslatorComment, strings.Join(places, ", "))
	}
	generated(t, filepath.Join("..", "locales", "README.md"), map[string]string{"texts": b.String()})
}

// constants are the names of the constants of i18n by the identifiers of their messages.
func constants(t *testing.T) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "i18n", "id.go"), nil, 0)
	must.OK(t, err)
	names := map[string]string{}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 {
			if id, ok := v.Values[0].(*ast.BasicLit); ok {
				if text, err := strconv.Unquote(id.Value); err == nil {
					names[text] = v.Names[0].Name
				}
			}
		}
		return true
	})
	return names
}
