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
type use struct{ file, function string }

// uses finds all uses of messages in the program, by the names of their constants.
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
				for _, e := range children(n) {
					u := use{filepath.ToSlash(name), of}
					if id := messageOf(e); id != "" && !slices.Contains(found[id], u) {
						found[id] = append(found[id], u)
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

// children returns the expressions directly below a node.
func children(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.CallExpr:
		return n.Args
	case *ast.CompositeLit:
		return n.Elts
	case *ast.ReturnStmt:
		return n.Results
	case *ast.AssignStmt:
		return n.Rhs
	case *ast.KeyValueExpr:
		return []ast.Expr{n.Value}
	case *ast.ValueSpec:
		return n.Values
	}
	return nil
}

// messageOf returns the name of the constant if the expression is a message, or an empty string.
func messageOf(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		if of, ok := s.X.(*ast.Ident); ok && of.Name == "i18n" && ast.IsExported(s.Sel.Name) {
			return s.Sel.Name
		}
	}
	return ""
}

// TestTexts compares the table of reply texts with the places that send them. With -update, it writes the
// table. It fails for texts that nothing sends.
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
			strings.HasPrefix(id, "size-") { // part of other texts
			continue
		}
		var places []string
		for _, u := range all[names[id]] {
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

// constants returns the names of the constants in i18n, by message ID.
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
