// Package docs_test checks the Markdown pages of the repository: their links, configurations and generated
// parts.
package docs_test

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// root is the root directory of the repository.
const root = ".."

// pages returns all Markdown files, relative to root.
func pages(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata"):
			return fs.SkipDir
		case filepath.Ext(path) == ".md":
			relative, err := filepath.Rel(root, path)
			found = append(found, relative)
			return err
		}
		return nil
	})
	must.OK(t, err)
	return found
}

// A line is a line of Markdown.
type line struct {
	number int
	text   string
	fence  string // language of the fenced block that has the line, "text" by default; empty outside of blocks
}

func lines(t *testing.T, page string) []line {
	t.Helper()
	content := must.ReadFile(t, filepath.Join(root, page))
	var all []line
	fence := ""
	for i, text := range strings.Split(content, "\n") {
		if language, isFence := strings.CutPrefix(strings.TrimSpace(text), "```"); isFence {
			switch {
			case fence != "":
				fence = ""
			case language == "":
				fence = "text"
			default:
				fence = language
			}
			continue
		}
		all = append(all, line{i + 1, text, fence})
	}
	if fence != "" {
		t.Errorf("%s: unclosed block", page)
	}
	return all
}

var (
	link    = regexp.MustCompile(`\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)`)
	mention = regexp.MustCompile("`([^`\\s]+\\.md)`")
	heading = regexp.MustCompile(`^#{1,6} (.*)$`)
)

// anchors returns the anchors that GitHub generates for the headings of a page.
func anchors(t *testing.T, page string) []string {
	t.Helper()
	var names []string
	for _, l := range lines(t, page) {
		if l.fence != "" {
			continue
		}
		if m := heading.FindStringSubmatch(l.text); m != nil {
			name := strings.Map(func(r rune) rune {
				switch {
				case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
					return unicode.ToLower(r)
				case r == ' ':
					return '-'
				}
				return -1
			}, link.ReplaceAllString(m[1], "$1"))
			for n, base := 1, name; slices.Contains(names, name); n++ {
				name = fmt.Sprintf("%s-%d", base, n)
			}
			names = append(names, name)
		}
	}
	return names
}

// TestLinks checks that links to files and headings of the repository work, and that every mention of a page
// is a link.
func TestLinks(t *testing.T) {
	for _, page := range pages(t) {
		t.Run(page, func(t *testing.T) {
			for _, l := range lines(t, page) {
				if l.fence != "" {
					continue
				}
				for _, m := range link.FindAllStringSubmatch(l.text, -1) {
					if err := follow(t, page, m[2]); err != nil {
						t.Errorf("%s:%d: %v", page, l.number, err)
					}
				}
				for _, m := range mention.FindAllStringSubmatch(link.ReplaceAllString(l.text, ""), -1) {
					t.Errorf("%s:%d: %s is not a link", page, l.number, m[1])
				}
			}
		})
	}
}

// follow returns an error if a link leads nowhere. It does not check links to other hosts.
func follow(t *testing.T, page, target string) error {
	t.Helper()
	if strings.Contains(target, "://") {
		return nil
	}
	file, anchor, hasAnchor := strings.Cut(target, "#")
	to := page
	if file != "" {
		to = filepath.Join(filepath.Dir(page), file)
	}
	if _, err := os.Stat(filepath.Join(root, to)); err != nil {
		return fmt.Errorf("link to %s: %w", target, err)
	}
	if hasAnchor && !slices.Contains(anchors(t, to), anchor) {
		return fmt.Errorf("link to %s: %s has no heading %q", target, to, anchor)
	}
	return nil
}

// firstLine marks a complete configuration.
const firstLine = "# babelftp.yaml"

// hash replaces "$argon2id$..." in the configurations on pages.
const hash = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$3q2+7wABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhs"

// TestConfigurations loads all complete configurations on the pages.
func TestConfigurations(t *testing.T) {
	found := 0
	for _, page := range pages(t) {
		for number, text := range configurations(t, page) {
			found++
			t.Run(fmt.Sprintf("%s:%d", page, number), func(t *testing.T) {
				if err := load(t, text); err != nil {
					t.Error(err)
				}
			})
		}
	}
	if found < 6 {
		t.Errorf("the pages show %d configurations", found)
	}
}

// configurations returns the complete configurations on a page, by the numbers of their first lines.
func configurations(t *testing.T, page string) map[int]string {
	t.Helper()
	blocks := map[int]string{}
	begin := 0
	for _, l := range lines(t, page) {
		switch {
		case l.fence != "yaml":
			begin = 0
			continue
		case l.text == firstLine:
			begin = l.number
		}
		if begin > 0 {
			blocks[begin] += l.text + "\n"
		}
	}
	return blocks
}

// load loads a configuration in a directory with the files that it refers to.
func load(t *testing.T, text string) error {
	t.Helper()
	dir := t.TempDir()
	text = strings.ReplaceAll(text, "$argon2id$...", hash)
	for _, folder := range []string{"/run/secrets/", "/run/babelftp/secrets/", "/etc/babelftp/", "/var/lib/babelftp/"} {
		text = strings.ReplaceAll(text, folder, "")
	}
	cert, key := must.Certificate(t, &x509.Certificate{DNSNames: []string{"ftp.acme.example"}})
	clients := must.NewAuthority(t, "clients")
	files := map[string]string{
		"babelftp.yaml": text, "scanner": hash, "s3": "secret", "state.keys": strings.Repeat("A", 43) + "=", "ldap": "secret",
		"s3.id": "AKIAEXAMPLE", "s3.key": "secret",
		"collector": "Authorization: Bearer 3f2a", "tls.crt": cert, "tls.key": key, "acme.crt": cert, "acme.key": key,
		"scanner.hash": hash, "store-ca.crt": cert, "old.pem": cert, "administrators": "ann:" + hash, "oidc.secret": "secret",
		"administrators.crt": cert, "acme/users.yaml": "users: {scanner: {password_hash: '" + hash + "'}}",
		"tenants/acme.yaml":               "users: {alice: {password_hash: '" + hash + "'}}",
		"users.yaml":                      "users: {scanner: {password_hash: '" + hash + "'}}",
		"locales/sv/messages.gotext.json": `{"language": "sv", "messages": []}`,
		"clients.crt":                     clients.Certificate, "clients.crl": clients.Revoke(&x509.RevocationList{}),
	}
	for _, folder := range []string{"acme", "tenants", "locales/sv"} {
		must.OK(t, os.MkdirAll(filepath.Join(dir, folder), 0o700))
	}
	for name, content := range files {
		must.WriteFile(t, filepath.Join(dir, name), content)
	}
	_, err := config.Load(filepath.Join(dir, "babelftp.yaml"), nil)
	var problems config.Problems
	if errors.As(err, &problems) {
		return problems
	}
	return err
}

// TestGoVersion checks that the pages require the version of Go in go.mod.
func TestGoVersion(t *testing.T) {
	_, version, _ := strings.Cut(must.ReadFile(t, filepath.Join(root, "go.mod")), "\ngo ")
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	for _, page := range []string{"README.md", "CONTRIBUTING.md"} {
		if want := "Go " + major + "." + minor + " or later"; !strings.Contains(must.ReadFile(t, filepath.Join(root, page)), want) {
			t.Errorf("%s does not say that the build needs %s", page, want)
		}
	}
}
