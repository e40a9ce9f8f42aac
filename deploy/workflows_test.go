package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/internal/testkit/must"
)

// The release notes are the changelog section of the version. A version without a section has no release.
func TestReleaseNotes(t *testing.T) {
	notes := func(version string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "tools/release-notes.sh", version)
		cmd.Dir = ".."
		out, err := cmd.Output()
		return string(out), err
	}
	text, err := notes("Unreleased")
	if err != nil || !strings.Contains(text, "### ") || strings.Contains(text, "\n## ") {
		t.Errorf("%v: %.200s", err, text)
	}
	for _, version := range []string{"", "9.9.9"} {
		if text, err := notes(version); err == nil {
			t.Errorf("version %q has the notes %q", version, text)
		}
	}
}

// The notes describe how to install the release by digest and verify it. Without digests, there are no notes.
func TestReleaseInstall(t *testing.T) {
	const image, chartDigest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "sha256:ba7adb"
	dir := t.TempDir()
	digests, push := filepath.Join(dir, "digests.txt"), filepath.Join(dir, "push.txt")
	writeFile(t, digests, strings.Repeat("0", 64)+"  ghcr.io/babelftp/babelftp:1.2\n"+
		image+"  ghcr.io/babelftp/babelftp:1.2.3\n")
	writeFile(t, push, "Pushed: ghcr.io/babelftp/charts/babelftp:1.2.3\nDigest: "+chartDigest+"\n")
	install := func(version, push string) (string, error) {
		out, err := exec.CommandContext(t.Context(), "../tools/release-install.sh", version, digests, push).Output()
		return string(out), err
	}
	text, err := install("1.2.3", push)
	must.OK(t, err)
	for _, want := range []string{
		"docker run --rm ghcr.io/babelftp/babelftp@sha256:" + image + " version\n",
		"--version 1.2.3 --set image.digest=sha256:" + image,
		"ghcr.io/babelftp/charts/babelftp@" + chartDigest + "\n",
		"release.yaml@refs/tags/v1.2.3 \\\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("missing %q in the notes:\n%s", want, text)
		}
	}
	for _, files := range [][2]string{{"9.9.9", push}, {"1.2.3", digests}} {
		if text, err := install(files[0], files[1]); err == nil {
			t.Errorf("%q: %s", files, text)
		}
	}
}

// Both Dockerfiles build the same image.
func TestImages(t *testing.T) {
	end := func(file string) (lines []string) {
		text, err := os.ReadFile(file)
		must.OK(t, err)
		if !regexp.MustCompile(`(?m)^COPY .*--chown=65532:65532 \S+ /var/lib/babelftp$`).Match(text) {
			t.Errorf("%s: a volume for certificates would belong to root", file)
		}
		found := map[string]string{}
		for line := range strings.Lines(string(text)) {
			word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			found[word] = rest // the last stage wins
		}
		for _, word := range []string{"USER", "ENV", "ENTRYPOINT", "EXPOSE", "HEALTHCHECK", "CMD"} {
			lines = append(lines, word+" "+found[word])
		}
		if !regexp.MustCompile(`(?m)^COPY .*/babelftp \S*/babelftp-kubernetes /usr/local/bin/$`).Match(text) {
			t.Errorf("%s: a program is missing", file)
		}
		return lines
	}
	if whole, release := end("../Dockerfile"), end("image/Dockerfile"); !slices.Equal(whole, release) {
		t.Errorf("Dockerfile has\n%s\nand image/Dockerfile\n%s", strings.Join(whole, "\n"), strings.Join(release, "\n"))
	}
}
