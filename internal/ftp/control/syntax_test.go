package control

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/ftp/wire"
)

// The catalogs translate exactly the words in the syntax of commands.
func TestWordsOfCommands(t *testing.T) {
	syntaxes := []string{}
	for _, c := range commandTable() {
		syntaxes = append(syntaxes, c.syntax)
	}
	used := map[i18n.ID]bool{}
	for _, syntax := range syntaxes {
		for _, word := range regexp.MustCompile(`[A-Za-z0-9-]+`).FindAllString(syntax, -1) {
			if regexp.MustCompile(`^[a-z-]{2,}$`).MatchString(word) {
				used[i18n.SyntaxWord(word)] = true
			}
		}
	}
	known := slices.DeleteFunc(loadBundle(t).IDs(), func(id i18n.ID) bool { return !id.InSyntax() })
	if words := slices.Sorted(maps.Keys(used)); !slices.Equal(words, known) {
		t.Errorf("got words %q in the syntax of commands, want %q as in the catalogs", words, known)
	}
}

// Package wire knows which commands take a pathname.
func TestCommandsWithPathnames(t *testing.T) {
	for name, c := range commandTable() {
		verb, _, service := strings.Cut(name, " ")
		if !service && !strings.Contains(c.syntax, "<SP>") {
			continue // without an argument
		}
		takes := strings.Contains(c.syntax, "pathname") || verb == "SITE"
		if got := wire.TakesPathname(verb); got != takes {
			t.Errorf("%s takes a pathname: got %v, want %v", name, got, takes)
		}
	}
}
