package deploy

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// The text of a release is the section of its version, and a version without one has no release.
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

// Both Dockerfiles make the same image.
func TestImages(t *testing.T) {
	end := func(file string) (lines []string) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		for line := range strings.Lines(string(text)) {
			word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			found[word] = rest // the last stage counts
		}
		for _, word := range []string{"USER", "ENV", "ENTRYPOINT", "EXPOSE", "HEALTHCHECK", "CMD"} {
			lines = append(lines, word+" "+found[word])
		}
		return lines
	}
	if whole, release := end("../Dockerfile"), end("image/Dockerfile"); !slices.Equal(whole, release) {
		t.Errorf("Dockerfile has\n%s\nand image/Dockerfile\n%s", strings.Join(whole, "\n"), strings.Join(release, "\n"))
	}
}
