package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// The workflows call .ci/run and targets of the Makefile, so that all that they do can be done on any machine.
func TestWorkflows(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../.github/workflows/*.yaml")
	if err != nil || len(files) != 2 {
		t.Fatalf("workflows %v, %v", files, err)
	}
	setup := regexp.MustCompile(`^(apt-get|git config) `)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var workflow struct {
			On          any               `yaml:"on"`
			Permissions map[string]string `yaml:"permissions"`
			Jobs        map[string]struct {
				Steps []struct {
					Run  string `yaml:"run"`
					Uses string `yaml:"uses"`
				} `yaml:"steps"`
			} `yaml:"jobs"`
		}
		if err := yaml.Unmarshal(text, &workflow); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if workflow.On == nil || workflow.Permissions == nil || len(workflow.Jobs) == 0 {
			t.Errorf("%s has no trigger, permissions or jobs", file)
		}
		for name, job := range workflow.Jobs {
			for _, step := range job.Steps {
				target, isMake := strings.CutPrefix(step.Run, "make ")
				switch {
				case step.Run == "" && step.Uses != "", step.Run == ".ci/run", setup.MatchString(step.Run):
				case isMake && strings.Contains(string(makefile), "\n"+target+":"):
				default:
					t.Errorf("%s: job %s: %q is neither .ci/run nor a target of the Makefile", file, name, step.Run)
				}
			}
		}
	}
}

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
		for _, word := range []string{"USER", "ENTRYPOINT", "EXPOSE", "HEALTHCHECK", "CMD"} {
			lines = append(lines, word+" "+found[word])
		}
		return lines
	}
	if whole, release := end("../Dockerfile"), end("image/Dockerfile"); !slices.Equal(whole, release) {
		t.Errorf("Dockerfile has\n%s\nand image/Dockerfile\n%s", strings.Join(whole, "\n"), strings.Join(release, "\n"))
	}
}
