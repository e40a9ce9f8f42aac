package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A documentedCommand is a command line of babelftp that a page shows.
type documentedCommand struct {
	where string
	args  []string
	whole bool // from a block, where nothing is left out
}

var (
	separators = regexp.MustCompile(`&&|\|\||[;|()<>]|\$\(`)
	comment    = regexp.MustCompile(`(?:^|\s)#.*$`)
	assignment = regexp.MustCompile(`^\w+=`)
	inlineCode = regexp.MustCompile("`(babelftp [^`]+)`")
)

// documentedCommands returns the command lines of babelftp on the pages of the repository.
func documentedCommands(t *testing.T) []documentedCommand {
	t.Helper()
	const root = "../.."
	var found []documentedCommand
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata"):
			return fs.SkipDir
		case filepath.Ext(name) != ".md" || entry.Name() == "CHANGELOG.md":
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		fence := ""
		for i, line := range strings.Split(string(text), "\n") {
			where := fmt.Sprintf("%s:%d", strings.TrimPrefix(filepath.ToSlash(name), root+"/"), i+1)
			language, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
			switch {
			case isFence && fence != "":
				fence = ""
			case isFence:
				fence = "block " + language
			case fence == "":
				for _, m := range inlineCode.FindAllStringSubmatch(line, -1) {
					found = append(found, documentedCommand{where, strings.Fields(m[1])[1:], false})
				}
			case fence == "block sh", fence == "block console" && strings.HasPrefix(line, "$ "):
				for part := range strings.SplitSeq(
					separators.ReplaceAllString(comment.ReplaceAllString(line, ""), "\n"), "\n") {
					if args, ok := argumentsOf(part); ok {
						found = append(found, documentedCommand{where, args, true})
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// argumentsOf returns the arguments of babelftp in a simple command of the shell. It returns false if another program
// is called.
func argumentsOf(command string) ([]string, bool) {
	words := strings.Fields(strings.ReplaceAll(command, `"`, " "))
	if i := slices.Index(words, "--"); i >= 0 && slices.Contains(words[:i], "exec") { // kubectl exec POD -- babelftp
		words = words[i+1:]
	}
	for len(words) > 0 && (words[0] == "$" || words[0] == "sudo" || assignment.MatchString(words[0])) {
		words = words[1:]
	}
	switch {
	case len(words) > 1 && words[0] == "go" && words[1] == "run":
		words = words[2:]
	case len(words) > 1 && words[0] == "docker" && words[1] == "run":
		image := slices.IndexFunc(words, func(w string) bool { return strings.Contains(w, "/babelftp:") })
		return words[max(image, 0)+1:], image >= 0
	}
	if len(words) == 0 || path.Base(words[0]) != "babelftp" {
		return nil, false
	}
	return words[1:], true
}

// checkCommand returns an error if babelftp has no such command, or no such flag of it.
func checkCommand(c documentedCommand) error {
	cmd, rest, err := newRootCommand().Find(c.args)
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	if rest := cmd.Flags().Args(); c.whole || len(rest) > 0 {
		return cmd.ValidateArgs(rest)
	}
	return nil // `babelftp bans` names all of them
}

// TestDocumentedCommands wants each command line of babelftp on a page to name commands and flags that exist.
func TestDocumentedCommands(t *testing.T) {
	commands := documentedCommands(t)
	for _, c := range commands {
		if err := checkCommand(c); err != nil {
			t.Errorf("%s: babelftp %s: %v", c.where, strings.Join(c.args, " "), err)
		}
	}
	if len(commands) < 40 {
		t.Errorf("the pages show %d commands", len(commands))
	}
}

// TestWrongCommands shows what TestDocumentedCommands finds.
func TestWrongCommands(t *testing.T) {
	for line, want := range map[string]bool{
		"babelftp serve --config babelftp.yaml":                         true,
		"sudo /usr/local/bin/babelftp check -c f --probe":               true,
		"kubectl exec babelftp-0 -- babelftp debug --tenant acme":       true,
		"babelftp bans add 192.0.2.7 --time 24h":                        true,
		"docker run --rm -i ghcr.io/babelftp/babelftp:latest languages": true,
		"babelftp serve --conf babelftp.yaml":                           false,
		"babelftp ban add 192.0.2.7":                                    false,
		"babelftp bans add":                                             false,
		"babelftp debug --for soon":                                     false,
		"X=1 go run ./cmd/babelftp demos":                               false,
	} {
		args, ok := argumentsOf(line)
		if !ok {
			t.Errorf("%s: no command of babelftp", line)
		}
		if err := checkCommand(documentedCommand{args: args, whole: true}); (err == nil) != want {
			t.Errorf("%s: %v", line, err)
		}
	}
	for _, line := range []string{"install -m 755 babelftp /usr/local/bin/", "helm install babelftp ./deploy/babelftp",
		""} {
		if args, ok := argumentsOf(line); ok {
			t.Errorf("%s: babelftp %v", line, args)
		}
	}
}
