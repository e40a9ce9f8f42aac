package servicetest

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

// An IdentityProvider is the OpenID Connect provider of the npm package oidc-provider, in a process of its own. Its
// login form accepts any name with any password.
type IdentityProvider struct {
	Config config.OIDC // without roles
	groups string
	stop   func()
}

// StartIdentityProvider starts a provider for a client with the redirect URI. The test is skipped with -short.
func StartIdentityProvider(tb testing.TB, redirect string) *IdentityProvider {
	tb.Helper()
	if testing.Short() {
		tb.Skip("-short starts no program; this test needs Node.js")
	}
	root, err := s3test.Repository()
	must.OK(tb, err)
	modules := filepath.Join(root, ".tools/oidc/node_modules")
	if _, err := os.Stat(modules); err != nil {
		tb.Fatalf("%v; run make .tools/oidc/node_modules", err)
	}
	p := &IdentityProvider{groups: filepath.Join(tb.TempDir(), "groups.json")}
	p.SetGroups(tb, `{}`)
	script := filepath.Join(root, "internal/testkit/servicetest/oidc/provider.mjs")
	command := exec.CommandContext(tb.Context(), "node", script, modules, redirect, p.groups)
	command.Stderr = tb.Output()
	in, err := command.StdinPipe()
	must.OK(tb, err)
	out, err := command.StdoutPipe()
	must.OK(tb, err)
	must.OK(tb, command.Start())
	p.stop = func() {
		_ = in.Close()
		_ = command.Wait() // the process ends with its input
	}
	tb.Cleanup(p.stop)
	lines := bufio.NewReader(out)
	issuer, err := lines.ReadString('\n')
	must.OK(tb, err)
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	p.Config = config.OIDC{
		Issuer: strings.TrimSpace(issuer), ClientID: "babelftp", ClientSecret: value.NewSecret("a secret: with / and %"),
	}
	return p
}

// SetGroups sets the groups of people, as a JSON object with a list for each name.
func (p *IdentityProvider) SetGroups(tb testing.TB, groups string) {
	tb.Helper()
	must.ReplaceFile(tb, p.groups, groups)
}

// Stop ends the process.
func (p *IdentityProvider) Stop() { p.stop() }
