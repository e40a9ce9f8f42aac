package panics

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
)

// unguarded are the functions that start a goroutine in which a panic ends the process, and why that is right: by
// file and function.
func unguarded() map[string]string {
	const (
		waits   = "it waits, closes or cancels something, or writes bytes"
		accepts = "it accepts connections, each of which has a goroutine that is guarded"
		counts  = "it changes what the process has counted, and no bytes of others reach it"
		command = "a command of an operator, which serves nobody"
		caught  = "what it calls catches panics"
		http    = "net/http recovers the panics of its connections"
		loop    = "a server without this loop does not do its work, and a new process does"
	)
	return map[string]string{
		"cmd/babelftp/check.go probeBuckets":                      command,
		"cmd/babelftp/run.go serveUntil":                          loop,
		"cmd/babelftp/run.go stopSignals":                         waits,
		"cmd/babelftp/serve.go newServeCommand":                   caught,
		"driver/internal/fairness/fairness.go Begin":              counts,
		"driver/internal/fairness/fairness.go probe":              counts,
		"driver/internal/fairness/fairness.go release":            counts,
		"driver/internal/s3api/idle.go WatchIdle":                 waits,
		"driver/internal/journal/entry.go Take":                   caught,
		"driver/internal/listing/lister.go list":                  waits,
		"driver/internal/membudget/arena.go put":                  counts,
		"driver/internal/membudget/revocable.go revokeForStarved": counts,
		"driver/internal/upload/multipart.go drain":               waits,
		"driver/internal/upload/multipart.go outlive":             waits,
		"driver/internal/upload/multipart.go wait":                waits,
		"driver/internal/upload/write.go ReadFrom":                waits,
		"internal/ftp/engine/server.go serve":                     loop,
		"internal/ftp/accept/accept.go Shutdown":                  waits,
		"internal/storage/access/probe.go ProbeAll":               command,
		"internal/certs/acme.go Start":                       http,
		"internal/admin/listener/gate.go guard":                   waits,
		"internal/users/auth/ldap.go dial":                        waits,
		"internal/users/auth/ldap.go login":                       waits,
		"internal/ftp/relay/cluster.go Shutdown":                  waits,
		"internal/ftp/relay/cluster.go Start":                     accepts,
		"internal/ftp/relay/cluster.go pass":                      waits,
		"internal/ftp/relay/owned.go newOwned":                    waits,
		"internal/ftp/relay/peers.go confirm":                     caught,
		"internal/ftp/relay/ready.go refusedBy":                   waits,
		"internal/ftp/relay/relay.go relay":                       waits,
		"internal/ftp/dataconn/active.go Open":                    waits,
		"internal/report/events/sender.go run":                    caught,
		"internal/base/logline/writer.go Start":                   waits,
		"internal/ftp/passive/late.go expectLate":                 counts,
		"internal/ftp/passive/ports.go listen":                    accepts,
		"internal/storage/s3client/watch.go watch":                caught,
		"internal/ftp/proxyproto/trust.go Listen":                 accepts,
		"internal/storage/s3client/watch.go Run":                  caught,
		"internal/storage/s3client/watch.go look":                 caught,
		"internal/server/admin.go start":                          http,
		"internal/server/quotas.go countQuotas":                   caught,
		"internal/server/reload.go countNew":                      caught,
		"internal/server/server.go Serve":                         loop,
		"internal/server/server.go Start":                         http,
		"internal/users/tenant/password.go newVerifier":           counts,
		"internal/server/upkeep.go forEach":                       caught,
		"internal/admin/overview/uploads.go Uploads":              caught,
	}
}

// packagesForTests are folders that the server does not serve anyone by.
func packagesForTests() []string {
	return []string{
		"driver/drivertest", "driver/internal/s3fake", "internal/acceptance", "internal/testkit/acmetest",
		"internal/testkit/certtest", "internal/testkit/configtest", "internal/conformance",
		"internal/storage/embeddeds3", "internal/testkit/ftptest", "internal/testkit/jwttest",
		"internal/testkit/ldaptest", "internal/acceptance/linearizability", "internal/testkit/s3sim",
		"internal/testkit/s3test",
	}
}

// TestGoroutines finds each goroutine of the server that does not recover a panic. One panic in such a goroutine ends
// the sessions of all clients.
func TestGoroutines(t *testing.T) {
	root := os.DirFS("../../..")
	known := unguarded()
	for _, top := range []string{"cmd", "driver", "i18n", "internal"} {
		err := fs.WalkDir(root, top, func(dir string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return err
			}
			if entry.Name() == "testdata" || slices.Contains(packagesForTests(), dir) {
				return fs.SkipDir
			}
			for _, where := range unguardedIn(t, root, dir) {
				if _, ok := known[where]; !ok {
					t.Errorf(
						"%s starts a goroutine that recovers no panic: defer Guard.Recover first, or do its work by "+
							"Catch or Result", where)
				}
				delete(known, where)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for where := range known {
		t.Errorf("%s starts no such goroutine; remove it from the table", where)
	}
}

// unguardedIn are the functions of a folder that start goroutines which recover no panic.
func unguardedIn(t *testing.T, root fs.FS, dir string) (found []string) {
	t.Helper()
	names, err := fs.Glob(root, dir+"/*.go")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]*ast.File{}
	bodies := map[string][]*ast.BlockStmt{} // of functions and methods, by name
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = file
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				bodies[f.Name.Name] = append(bodies[f.Name.Name], f.Body)
			}
		}
	}
	for name, file := range files {
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if work := started(n); work != nil && !guarded(work, bodies) {
					found = append(found, name+" "+f.Name.Name)
				}
				return true
			})
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// started is what a statement or call runs in a goroutine of its own, nil for nothing.
func started(n ast.Node) ast.Expr {
	if statement, ok := n.(*ast.GoStmt); ok {
		return statement.Call.Fun
	}
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return nil
	}
	callee, ok := call.Fun.(*ast.SelectorExpr)
	// of sync.WaitGroup, errgroup.Group, time and context
	if !ok || callee.Sel.Name != "Go" && callee.Sel.Name != "AfterFunc" {
		return nil
	}
	return call.Args[len(call.Args)-1]
}

// guarded tells whether a function recovers panics: it defers Guard.Recover, or does its work by Catch or Result.
func guarded(work ast.Expr, bodies map[string][]*ast.BlockStmt) bool {
	var named []*ast.BlockStmt // functions and methods of the name, all of which must
	switch work := work.(type) {
	case *ast.FuncLit:
		named = append(named, work.Body)
		if call := onlyCall(work.Body); call != nil && guarded(call.Fun, bodies) {
			return true
		}
	case *ast.Ident:
		named = bodies[work.Name]
	case *ast.SelectorExpr:
		named = bodies[work.Sel.Name]
	}
	return len(named) > 0 && !slices.ContainsFunc(named, func(b *ast.BlockStmt) bool { return !recovers(b) })
}

// onlyCall is the call that a function consists of, nil if it is more.
func onlyCall(body *ast.BlockStmt) *ast.CallExpr {
	if len(body.List) != 1 {
		return nil
	}
	statement, ok := body.List[0].(*ast.ExprStmt)
	if !ok {
		return nil
	}
	call, _ := statement.X.(*ast.CallExpr)
	return call
}

func recovers(body *ast.BlockStmt) bool {
	for _, statement := range body.List {
		if later, ok := statement.(*ast.DeferStmt); ok && calls(later.Call.Fun, "Recover") {
			return true
		}
	}
	caught := false
	ast.Inspect(body, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && calls(call.Fun, "Catch", "Result") {
			caught = true
		}
		return !caught
	})
	return caught
}

func calls(callee ast.Expr, names ...string) bool {
	selector, ok := callee.(*ast.SelectorExpr)
	return ok && slices.Contains(names, selector.Sel.Name)
}
