package main

import (
	"debug/buildinfo"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// maxDeployedModules is how many modules the build that people deploy may link: each is one more to watch for vulnerabilities.
const maxDeployedModules = 40

// The image's build has no S3 server inside, and every build knows the version and the commit that it is given.
func TestBuildTags(t *testing.T) {
	if testing.Short() {
		t.Skip("links the program twice")
	}
	for tags, hasDemo := range map[string]bool{"": true, "nodemo": false} {
		t.Run("tags="+tags, func(t *testing.T) {
			binary := filepath.Join(t.TempDir(), "babelftp")
			build := exec.CommandContext(t.Context(), "go", "build", "-tags", tags, "-o", binary,
				"-ldflags", "-s -w -X main.version=v1.2.3 -X main.commit=1a2b3c4", ".")
			if text, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			text, err := exec.CommandContext(t.Context(), binary, "version").Output()
			if err != nil || !strings.HasPrefix(string(text), "babelftp v1.2.3\ncommit 1a2b3c4\n") {
				t.Errorf("version: %v: %s", err, text)
			}
			help, err := exec.CommandContext(t.Context(), binary, "demo", "--help").Output()
			if err != nil || strings.Contains(string(help), "--data") != hasDemo {
				t.Errorf("demo --help: %v: %s", err, help)
			}
			info, err := buildinfo.ReadFile(binary)
			if err != nil {
				t.Fatal(err)
			}
			embedded := false
			for _, module := range info.Deps {
				embedded = embedded || module.Path == "github.com/versity/versitygw"
			}
			if embedded != hasDemo || !hasDemo && len(info.Deps) > maxDeployedModules {
				t.Errorf("%d modules are linked, an S3 server among them: %t", len(info.Deps), embedded)
			}
			t.Logf("%d modules", len(info.Deps))
		})
	}
}
