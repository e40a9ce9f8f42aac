// Package docs_test checks the Markdown of the repository: its links, and the configurations that it shows.
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

// root is the folder of the repository.
const root = ".."

// pages returns all Markdown files, by their paths from root.
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

// A line of Markdown and the fenced block that it is in.
type line struct {
	number int
	text   string
	fence  string // the language of the block, "text" for none; empty outside of blocks
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
		t.Errorf("%s: a block is not closed", page)
	}
	return all
}

var (
	link    = regexp.MustCompile(`\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)`)
	mention = regexp.MustCompile("`([^`\\s]+\\.md)`")
	heading = regexp.MustCompile(`^#{1,6} (.*)$`)
)

// anchors returns the headings of a page as GitHub links to them.
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

// TestLinks follows the links from each page to files and headings of the repository, and wants each mention of a
// page to be a link.
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
					t.Errorf("%s:%d: %s is no link", page, l.number, m[1])
				}
			}
		})
	}
}

// follow returns an error where a link of a page leads nowhere. It does not ask other hosts.
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

// firstLine is how a configuration begins that is complete.
const firstLine = "# babelftp.yaml"

// hash is the password hash that the pages write as "$argon2id$...".
const hash = "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$3q2+7wABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhs"

// TestConfigurations loads every complete configuration that a page shows.
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

// configurations returns the complete configurations of a page, by the numbers of their first lines.
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

// load loads a configuration, next to the files that it names.
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
		"babelftp.yaml": text, "scanner": hash, "s3": "secret", "ldap": "secret",
		"s3.id": "AKIAEXAMPLE", "s3.key": "secret",
		"collector": "Authorization: Bearer 3f2a", "tls.crt": cert, "tls.key": key, "acme.crt": cert, "acme.key": key,
		"scanner.hash": hash, "store-ca.crt": cert, "old.pem": cert, "administrators": "ann:" + hash,
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

// TestGoVersion compares the version of Go that pages ask for with the version in go.mod.
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
