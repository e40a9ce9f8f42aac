package panics

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// TestGoroutines checks that the program starts all goroutines with this package, so that each one handles panics.
func TestGoroutines(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	for _, top := range []string{"cmd", "driver", "i18n", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			switch name := entry.Name(); {
			case err != nil:
				return err
			case name == "testdata" || name == "testkit" || name == "acceptance" || name == "conformance" ||
				name == "drivertest" || name == "panics":
				return fs.SkipDir
			case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if statement, ok := n.(*ast.GoStmt); ok {
					t.Errorf("%s: use Guard.Go, panics.Start or panics.Go", files.Position(statement.Pos()))
				}
				return true
			})
			return nil
		})
		must.OK(t, err)
	}
}
