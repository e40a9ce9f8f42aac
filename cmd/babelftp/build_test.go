package main

import (
	"debug/buildinfo"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// maxDeployedModules limits the modules that the deployed build links, because each one has to be watched for
// vulnerabilities.
const maxDeployedModules = 75 // ten of them for traces, three for OpenID Connect

// TestBuildWithoutDemo builds the program like the image does: without an S3 server, with the given version
// and commit, and statically linked, because the image has no dynamic linker. The demo's tests use the normal
// build.
func TestBuildWithoutDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("links the program")
	}
	if code, help, _ := output(t, "", "demo", "--help"); code != 0 || !strings.Contains(help, "--data") {
		t.Errorf("demo --help of a build without tags: %s", help)
	}
	binary := filepath.Join(t.TempDir(), "babelftp")
	build := exec.CommandContext(t.Context(), "go", "build", "-tags", "nodemo", "-o", binary,
		"-ldflags", "-s -w -X main.version=v1.2.3 -X main.commit=1a2b3c4", ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	file, err := elf.Open(binary)
	must.OK(t, err)
	defer file.Close()
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			t.Error("the build needs a dynamic linker")
		}
	}
	version := exec.CommandContext(t.Context(), binary, "version")
	version.Env = []string{}
	text, err := version.Output()
	if err != nil || !strings.HasPrefix(string(text), "babelftp v1.2.3\ncommit 1a2b3c4\n") {
		t.Errorf("version: %v: %s", err, text)
	}
	help, err := exec.CommandContext(t.Context(), binary, "demo", "--help").Output()
	if err != nil || strings.Contains(string(help), "--data") {
		t.Errorf("demo --help: %v: %s", err, help)
	}
	info, err := buildinfo.ReadFile(binary)
	must.OK(t, err)
	for _, module := range info.Deps {
		if module.Path == "github.com/versity/versitygw" {
			t.Error("the program links an S3 server")
		}
		if strings.HasPrefix(module.Path, "k8s.io/") {
			t.Errorf("the program links %s, which only babelftp-kubernetes needs", module.Path)
		}
	}
	if len(info.Deps) > maxDeployedModules {
		t.Errorf("got %d linked modules, want at most %d", len(info.Deps), maxDeployedModules)
	}
	t.Logf("%d modules", len(info.Deps))
}
