package engine

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// unreachableReplies are the replies of the engine that no client can bring about, with
// the reason; what matches none of these and no rule fails the test below.
var unreachableReplies = []struct{ code, text, why string }{
	{"220", `<msg>`, "the engine's greeting is taken by Start"},
	{"331", `OK`, "the engine's reply to USER is taken by Start"},
	{"500", `<msg>`, "ClientConnected never fails"},
	{"200", `OK|Good to know`, "NOOP and CLNT are answered by the session"},
	{"215", `UNIX Type: L8`, "SYST is answered by the session"},
	{"421", `command timeout .*`, "the session watches for idleness"},
	{"500", `Unknown command .*`, "only verbs of the table reach the engine"},
	{"500", `Unhandled internal error: .*`, "unexpected answers a panic with 451"},
	{"500", `Error: .*`, "unexpected answers an error of a handler with 451"},
	{"421", `unable to open transfer: TLS is required`, "the session asks for TLS itself"},
	{"550", `Could not switch to deflate mode: .*`, "MODE Z is off"},
	{"530", `<msg>`, "there is no message after login"},
	{"230", `<msg>`, "there is no message after login"},
	{"200", `Using deflate mode`, "MODE Z is off"},
	{"530", `User rejected: .*`, "there is no user verifier"},
	{"421", `TLS is required`, "the session asks for TLS itself"},
	{"530", `TLS verification failed: .*`, "TLS is the session's"},
	{"230", `TLS certificate ok, continue`, "TLS is the session's"},
	{"530", `Unexpected exception .*`, "AuthUser returns a driver or an error"},
	{"234", `.*`, "AUTH is answered by the session"},
	{"550", `Cannot get a TLS config: .*`, "AUTH is answered by the session"},
	{"421", `Cannot get a TLS config.*`, "TLS is the session's"},
	{"200", `Whatever`, "the session answers PBSZ"},
	{"502", `SYST is disabled`, "SYST is not disabled"},
	{"500", `SITE support is disabled`, "SITE is not disabled"},
	{"<answer.Code>", `<answer.Message>`, "the driver has no Site method"},
	{"500", `Unknown SITE subcommand: .*`, "SITE's subcommands are checked by the session"},
	{"502", `STAT is disabled`, "STAT is answered by the session"},
	{"211", `.*`, "STAT and FEAT are answered by the session"},
	{"212", `.*`, "STAT is answered by the session"},
	{"213", `STAT .*`, "STAT is answered by the session"},
	{"450", `Could not STAT: .*`, "STAT is answered by the session"},
	{"200", `I'm in UTF8 only anyway`, "OPTS is answered by the session"},
	{"200", `<args\[0\]>|<currentHash>`, "OPTS is answered by the session"},
	{"501", `Unknown algorithm, .*`, "OPTS is answered by the session"},
	{"500", `Don't know this option`, "OPTS is answered by the session"},
	{"221", `<msg>`, "QUIT is answered by the session"},
	{"426", `Connection closed; transfer aborted`, "ABOR is answered by the session"},
	{"226", `ABOR successful; .*`, "ABOR is answered by the session"},
	{"502", `This command hasn't been implemented !`, "answered by the session"},
	{"202", `This extension hasn't been implemented !`, "ALLO and AVBL are answered by the session"},
	{"502", `This extension hasn't been implemented !`, "SITE SYMLINK is answered by the session"},
	{"213", `<strconv.FormatInt\(available, 10\)>`, "AVBL is answered by the session"},
	{"550", `Couldn't get space for path .*`, "AVBL is answered by the session"},
	{"550", `.* is not a directory`, "AVBL is answered by the session"},
	{"421", `Could not listen for passive connection: .*`, "the session listens; internalCommand tells"},
	{"227", `.*`, "PASV is answered by the session"},
	{"229", `.*`, "taken by internalCommand"},
	{"421", `.* command is disabled`, "PORT and EPRT are answered by the session"},
	{"501", `Problem parsing .*`, "PORT and EPRT are answered by the session"},
	{"501", `Your request does not meet .*`, "PORT and EPRT are answered by the session"},
	{"200", `.* command successful`, "PORT, EPRT and SITE CHMOD are answered by the session"},
	{"500", `Missing path`, "checked by the session"},
	{"500", `MLSD has been disabled`, "MLSD is not disabled"},
	{"500", `MLST has been disabled`, "MLST is answered by the session"},
	{"250", `File details`, "MLST is answered by the session"},
	{"502", `COMB support is disabled|File hash support is disabled`, "answered by the session"},
	{"501", `invalid COMB parameters: .*`, "COMB is answered by the session"},
	{"550|552|553", `Could not (access|combine|delete|close combined) file .*`, "COMB is answered by the session"},
	{"250", `COMB succeeded!`, "COMB is answered by the session"},
	{"550", `<err.Error\(\)>`, "SITE CHMOD is answered by the session"},
	{"501", `bad command`, "SITE CHOWN and SYMLINK are answered by the session"},
	{"550", `Couldn't (chown|symlink): .*`, "SITE CHOWN and SYMLINK are answered by the session"},
	{"200", `Done !`, "SITE CHOWN, SITE SYMLINK and ALLO are answered by the session"},
	{"501", `Couldn't parse size: .*`, "ALLO is answered by the session"},
	{"550", `Couldn't alloInt: .*`, "ALLO is answered by the session"},
	{"501", `Resuming transfers not allowed in deflate mode`, "MODE Z is off"},
	{"501", `Resuming transfers not allowed in ASCII mode`,
		"the session refuses; the engine is in TYPE I when it gets an offset"},
	{"350", `OK`, "REST is answered by the session; taken by internalCommand"},
	{"550", `Couldn't parse size: .*`, "REST is answered by the session"},
	{"200", `Type set to .*`, "TYPE is answered by the session; taken by internalCommand"},
	{"504", `Unsupported transfer type`, "TYPE is answered by the session"},
	{"550", `SIZE not allowed in ASCII mode`, "the engine is in TYPE A during transfers only"},
	{"500", `Couldn't set mtime, .*`, "checked by the session"},
	{"501", `Couldn't parse mtime, .*`, "checked by the session"},
	{"501", `invalid HASH parameters: .*|<err.Error\(\)>`, "HASH is answered by the session"},
	{"550|553", `x: x|x is not a regular file`, "HASH is answered by the session"},
	{"250", `x\nx`, "HASH is answered by the session"},
	{"213", `<response>`, "HASH is answered by the session"},
	{"552|553", `.*`, "the driver returns none of the errors behind these codes"},
}

// samples are values of expressions that make up a whole reply.
var samples = map[string]string{
	"<strconv.FormatInt(info.Size(), 10)>":          "65535",
	"<info.ModTime().UTC().Format(dateFormatMLSD)>": "20260101000000",
}

// TestEveryReplyOfTheEngineIsKnown reads the source of the engine that go.mod
// pins and looks for each reply in the rules: a new engine shows what changed.
func TestEveryReplyOfTheEngineIsKnown(t *testing.T) {
	replies := engineReplies(t)
	if len(replies) < 100 {
		t.Fatalf("only %d replies found: the engine's source has another form now", len(replies))
	}
	table := NewRules()
	used := make(map[int]bool)
	for _, r := range replies {
		if !knownReply(table, r, used) {
			t.Errorf("%s: no rule for %s %q", r.place, r.code, r.text)
		}
	}
	for i, n := range unreachableReplies {
		if !used[i] {
			t.Errorf("the engine has no reply %s %s any more: %s", n.code, n.text, n.why)
		}
	}
}

func knownReply(table Rules, r engineReply, used map[int]bool) bool {
	if sample, ok := samples[r.text]; ok {
		r.text = sample
	}
	for _, rule := range table {
		if strconv.Itoa(rule.Code) == r.code && rule.Text.MatchString(r.text) {
			return true
		}
	}
	for i, n := range unreachableReplies {
		if regexp.MustCompile("^(?:"+n.code+")$").MatchString(r.code) &&
			regexp.MustCompile("^(?s:"+n.text+")$").MatchString(r.text) {
			used[i] = true
			return true
		}
	}
	return false
}

// An engineReply is a reply found in the source: values are shown as "x" in
// formats and as "<expression>" alone.
type engineReply struct{ code, text, place string }

func engineReplies(t *testing.T) []engineReply {
	t.Helper()
	_, here, _, _ := runtime.Caller(0) // the embedded S3 server changes the working directory
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/fclairamb/ftpserverlib")
	list.Dir = filepath.Dir(here)
	out, err := list.Output()
	if err != nil {
		t.Fatalf("find the engine's source: %v", err)
	}
	files := token.NewFileSet()
	ours := func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }
	//nolint:staticcheck // one package, no build tags of interest
	packages, err := parser.ParseDir(files, strings.TrimSpace(string(out)), ours, 0)
	if err != nil {
		t.Fatal(err)
	}
	source := &engineSource{files: files, constants: map[string]string{}}
	for _, file := range packages["ftpserver"].Files {
		source.readConstants(file)
	}
	for _, file := range packages["ftpserver"].Files {
		ast.Inspect(file, source.visit)
	}
	return source.replies
}

type engineSource struct {
	files     *token.FileSet
	constants map[string]string
	replies   []engineReply
}

func (e *engineSource) readConstants(file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, name := range spec.Names {
			if i < len(spec.Values) {
				if value, ok := spec.Values[i].(*ast.BasicLit); ok {
					e.constants[name.Name] = value.Value
				}
				if call, ok := spec.Values[i].(*ast.CallExpr); ok && len(call.Args) == 1 { // errors.New
					e.constants[name.Name+".Error()"] = e.text(call.Args[0])
				}
			}
		}
		return true
	})
}

func (e *engineSource) visit(n ast.Node) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) != 2 {
		return true
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || method.Sel.Name != "writeMessage" && method.Sel.Name != "multilineAnswer" {
		return true
	}
	position := e.files.Position(call.Pos())
	for _, code := range e.codes(call.Args[0]) {
		e.replies = append(e.replies, engineReply{code, e.text(call.Args[1]),
			fmt.Sprintf("%s:%d", filepath.Base(position.Filename), position.Line)})
	}
	return true
}

// codes is the code of a reply, or the codes between which getErrorCode chooses.
func (e *engineSource) codes(expr ast.Expr) []string {
	if call, ok := expr.(*ast.CallExpr); ok {
		return append(e.codes(call.Args[1]), "552", "553")
	}
	name := e.source(expr)
	if value, ok := e.constants[name]; ok {
		return []string{value}
	}
	return []string{"<" + name + ">"}
}

var formatVerb = regexp.MustCompile(`%[#+]?[a-z]`)

func (e *engineSource) text(expr ast.Expr) string {
	switch x := expr.(type) {
	case *ast.BasicLit:
		return constant.StringVal(constant.MakeFromLiteral(x.Value, x.Kind, 0))
	case *ast.BinaryExpr:
		return strings.NewReplacer("<", "", ">", "").Replace(e.text(x.X)) +
			strings.NewReplacer("<", "", ">", "").Replace(e.text(x.Y))
	case *ast.CallExpr:
		if e.source(x.Fun) == "fmt.Sprintf" {
			text := formatVerb.ReplaceAllString(e.text(x.Args[0]), "x")
			return strings.ReplaceAll(text, "\r\n", "\n")
		}
	}
	name := e.source(expr)
	if value, ok := e.constants[name]; ok {
		return value
	}
	return "<" + name + ">"
}

// source writes an expression as the source has it, for the few forms there are.
func (e *engineSource) source(expr ast.Expr) string {
	switch x := expr.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.BasicLit:
		return x.Value
	case *ast.SelectorExpr:
		return e.source(x.X) + "." + x.Sel.Name
	case *ast.IndexExpr:
		return e.source(x.X) + "[" + e.source(x.Index) + "]"
	case *ast.CallExpr:
		var args []string
		for _, arg := range x.Args {
			args = append(args, e.source(arg))
		}
		return e.source(x.Fun) + "(" + strings.Join(args, ", ") + ")"
	}
	return fmt.Sprintf("%T", expr)
}
