// Package usersfile edits the users_file of a tenant and imports users from other FTP servers.
//
// A [Document] is a parsed file. It preserves comments and the order of users and keys. [Edit] reads a file, calls
// a function that edits the document, validates the result and replaces the file, while it holds a lock that excludes
// other commands and the server.
//
// [SFTPGo] imports a JSON dump, [ProFTPD] an AuthUserFile in the format of passwd(5), [PureFTPd] a pureftpd.passwd,
// and [VSFTPD] names and passwords, or htpasswd lines, with the settings of vsftpd. Permissions that the other server
// granted only partly are omitted, and users with restrictions that a configuration cannot express, or that the
// import does not know, are disabled. Everything that is not imported becomes a comment above the user and a warning.
// A file in another format is an error that names the format.
package usersfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// A Document is the parsed content of a users_file.
type Document struct{ root, users *yaml.Node }

// Files returns the files of a users_file, which is one file or a folder of files.
func Files(usersFile string) ([]string, error) {
	if info, err := os.Stat(usersFile); err != nil || !info.IsDir() {
		return []string{usersFile}, nil
	}
	entries, err := os.ReadDir(usersFile)
	var files []string
	for _, e := range entries {
		if yamlconf.IsDocument(e.Name()) {
			files = append(files, filepath.Join(usersFile, e.Name()))
		}
	}
	return files, err
}

// Read reads and parses a file.
func Read(name string) (*Document, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, yamlconf.WithoutPath(err))
	}
	d, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return d, nil
}

// usersKey is the only key of a users_file.
const usersKey = "users"

// Parse parses the content of a file, which may be empty.
func Parse(text []byte) (*Document, error) {
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	d := &Document{root: new(yaml.Node)}
	switch err := loader.Load(d.root); {
	case errors.Is(err, io.EOF): // no content, or only comments
		d.root.HeadComment = strings.TrimSpace(string(text))
	case err != nil:
		return nil, fmt.Errorf("invalid YAML: %w", err)
	}
	if d.root.Kind == 0 || d.root.Content[0].Tag == "!!null" {
		comment := d.root.HeadComment
		d.root = &yaml.Node{Kind: yaml.DocumentNode, HeadComment: comment, Content: []*yaml.Node{mapping()}}
	}
	top := d.root.Content[0]
	if top.Kind != yaml.MappingNode {
		return nil, errors.New(`missing "users" mapping`)
	}
	if _, d.users = find(top, func(key string) bool { return key == usersKey }); d.users == nil {
		d.users = mapping()
		top.Content = append(top.Content, scalar(usersKey), d.users)
	}
	if d.users.Tag == "!!null" {
		*d.users = yaml.Node{Kind: yaml.MappingNode, HeadComment: d.users.HeadComment, FootComment: d.users.FootComment}
	}
	if d.users.Kind != yaml.MappingNode {
		return nil, errors.New(`"users" must be a mapping of user names`)
	}
	return d, nil
}

// Text returns the content of the file.
func (d *Document) Text() ([]byte, error) {
	return yaml.Dump(d.root, yaml.WithIndent(indentOf(d.root.Content[0])), yaml.WithCompactSeqIndent(false),
		yaml.WithLineWidth(-1), yaml.WithQuotePreference(yaml.QuoteDouble))
}

// indentOf returns the number of spaces by which the file is indented.
func indentOf(top *yaml.Node) int {
	const usual, most = 2, 8
	for i := 1; i < len(top.Content); i += 2 {
		if users := top.Content[i]; len(users.Content) > 0 && users.Content[0].Line > top.Content[i-1].Line {
			if n := users.Content[0].Column - top.Content[i-1].Column; n >= usual && n <= most {
				return n
			}
		}
	}
	return usual
}

// Has reports whether the user exists.
func (d *Document) Has(user string) bool {
	_, found := d.find(user)
	return found != nil
}

// Add adds a user without settings. The user must not exist.
func (d *Document) Add(user string) {
	d.users.Style &^= yaml.FlowStyle
	put(d.users, user, mapping())
}

// Remove removes a user.
func (d *Document) Remove(user string) error {
	i, found := d.find(user)
	if found == nil {
		return nil
	}
	if err := d.mayDrop(pathOf(user), found); err != nil {
		return err
	}
	drop(d.users, i)
	return nil
}

// settings returns the settings of a user.
func (d *Document) settings(user string) (*yaml.Node, error) {
	_, found := d.find(user)
	if found == nil {
		return nil, errors.New("user not found")
	}
	return found, d.open(pathOf(user), found)
}

// pathOf returns the path of a setting for errors.
func pathOf(user string, path ...string) string {
	return strings.Join(append([]string{usersKey, user}, path...), ".")
}

// open returns an error if n is not a mapping whose keys can be changed without a change for other users. A null node
// becomes an empty mapping.
func (d *Document) open(path string, n *yaml.Node) error {
	switch {
	case n.Kind == yaml.AliasNode:
		return fmt.Errorf("%s is a YAML alias (*%s) that other users share: expand it first", path, n.Value)
	case n.Tag == "!!null":
		*n = *mapping()
	case n.Kind != yaml.MappingNode:
		return fmt.Errorf("%s must be a mapping", path)
	case d.aliases()[n]:
		return sharedError(path, n)
	}
	return nil
}

// sharedError returns an error for a node that cannot be changed because an alias refers to it.
func sharedError(path string, n *yaml.Node) error {
	return fmt.Errorf("%s is shared by a YAML anchor (&%s): expand its aliases (*%[2]s) first", path, n.Anchor)
}

// aliases returns the nodes that aliases refer to.
func (d *Document) aliases() map[*yaml.Node]bool {
	found := map[*yaml.Node]bool{}
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		if n.Alias != nil {
			found[n.Alias] = true
		}
		for _, inner := range n.Content {
			walk(inner)
		}
	}
	walk(d.root)
	return found
}

// mayDrop returns an error if an alias refers to n or to a node in it.
func (d *Document) mayDrop(path string, n *yaml.Node) error {
	aliases := d.aliases()
	var first *yaml.Node
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		if first == nil && aliases[n] {
			first = n
		}
		for _, inner := range n.Content {
			walk(inner)
		}
	}
	if walk(n); first != nil {
		return sharedError(path, first)
	}
	return nil
}

// Get returns the value of a setting, or an empty string. The path has the keys that lead to the value.
func (d *Document) Get(user string, path ...string) string {
	_, at := d.find(user)
	for _, key := range path {
		if at == nil || at.Kind != yaml.MappingNode {
			return ""
		}
		_, at = find(at, func(k string) bool { return k == key })
	}
	if at == nil {
		return ""
	}
	return at.Value
}

// Set sets a setting to a value, a list of values or a node. The path has the keys that lead to it; missing sections
// are added. Comments are kept.
func (d *Document) Set(user string, value any, path ...string) error {
	section, err := d.settings(user)
	if err != nil {
		return err
	}
	node, isNode := value.(*yaml.Node)
	if !isNode {
		node = new(yaml.Node)
		if err := node.Encode(value); err != nil {
			return err
		}
	}
	last := len(path) - 1
	switch {
	case node.Tag == "!!binary":
		return fmt.Errorf("%s: %q is not UTF-8", pathOf(user, path...), value)
	case node.Kind == yaml.SequenceNode:
		node.Style = yaml.FlowStyle
	}
	for i, key := range path[:last] {
		_, inner := find(section, func(k string) bool { return k == key })
		if inner == nil {
			inner = mapping()
			put(section, key, inner)
		}
		if err := d.open(pathOf(user, path[:i+1]...), inner); err != nil {
			return err
		}
		section = inner
	}
	if _, before := find(section, func(k string) bool { return k == path[last] }); before != nil {
		if err := d.mayDrop(pathOf(user, path...), before); err != nil {
			return err
		}
		node.HeadComment, node.LineComment = before.HeadComment, before.LineComment
		node.FootComment = before.FootComment
		*before = *node
		return nil
	}
	put(section, path[last], node)
	return nil
}

// Unset removes a setting, and the sections around it that would be empty. The path has the keys that lead to it.
func (d *Document) Unset(user string, path ...string) error {
	section, err := d.settings(user)
	if err != nil {
		return err
	}
	from, name, index := section, "", 0 // what to remove
	for at, key := range path {
		i, found := find(section, func(k string) bool { return k == key })
		if found == nil {
			return nil
		}
		if at == 0 || len(section.Content) > 2 {
			from, name, index = section, pathOf(user, path[:at+1]...), i
		}
		if at < len(path)-1 {
			if err := d.open(pathOf(user, path[:at+1]...), found); err != nil {
				return err
			}
		}
		section = found
	}
	if err := d.mayDrop(name, from.Content[index+1]); err != nil {
		return err
	}
	drop(from, index)
	return nil
}

// WithoutReason removes the comments of an import that say why the user is disabled.
func (d *Document) WithoutReason(user string) {
	i, found := d.find(user)
	if found == nil {
		return
	}
	name := d.users.Content[i]
	kept := slices.DeleteFunc(strings.Split(name.HeadComment, "\n"), func(line string) bool {
		return strings.HasPrefix(line, "# disabled: ")
	})
	name.HeadComment = strings.Join(kept, "\n")
}

// moved is the beginning of the comment above a user who was moved from another server. The address and the time
// follow.
const moved = "# moved from "

// NoteMove adds a comment about the server from which a user was moved, and when.
func (d *Document) NoteMove(user, from string, at time.Time) {
	if i, found := d.find(user); found != nil {
		d.users.Content[i].HeadComment = moved + from + " at " + at.UTC().Format(time.RFC3339)
	}
}

// MovedFrom returns the server in the comment of NoteMove, or an empty string.
func (d *Document) MovedFrom(user string) (from string) {
	i, found := d.find(user)
	if found == nil {
		return ""
	}
	for line := range strings.Lines(d.users.Content[i].HeadComment) {
		if noted, ok := strings.CutPrefix(line, moved); ok {
			from, _, _ = strings.Cut(noted, " ")
		}
	}
	return from
}

// HasSpelling reports whether a user with this name exists in any spelling; see [config.FoldUser].
func (d *Document) HasSpelling(user string) bool {
	user = config.FoldUser(user)
	_, settings := find(d.users, func(key string) bool { return config.FoldUser(key) == user })
	return settings != nil
}

// find returns the index and the settings of a user, or nil if the user does not exist.
func (d *Document) find(user string) (int, *yaml.Node) {
	user = config.NormalizeUser(user)
	return find(d.users, func(key string) bool { return config.NormalizeUser(key) == user })
}

// find returns the index and the value of the first key that wanted accepts, or nil.
func find(in *yaml.Node, wanted func(key string) bool) (int, *yaml.Node) {
	for i := 0; i+1 < len(in.Content); i += 2 {
		if wanted(in.Content[i].Value) {
			return i, in.Content[i+1]
		}
	}
	return 0, nil
}

// put appends a key and a value to a mapping. A comment at the end of the mapping stays there.
func put(in *yaml.Node, key string, value *yaml.Node) {
	name := scalar(key)
	if n := len(in.Content); n > 0 {
		last := in.Content[n-2]
		name.FootComment, last.FootComment = last.FootComment, ""
	}
	in.Content = append(in.Content, name, value)
}

// drop removes the key at index i and its value from a mapping. A comment at the end of the mapping stays there, also
// if the parser has attached it to the last key in the value.
func drop(in *yaml.Node, i int) {
	var feet []string
	for key, value := in.Content[i], in.Content[i+1]; ; {
		if key.FootComment != "" {
			feet = append(feet, key.FootComment)
		}
		last := len(value.Content) - 1
		if value.Kind != yaml.MappingNode || last < 0 {
			break
		}
		key, value = value.Content[last-1], value.Content[last]
	}
	if i > 0 && len(feet) > 0 {
		before := in.Content[i-2]
		if before.FootComment != "" {
			feet = append([]string{before.FootComment}, feet...)
		}
		before.FootComment = strings.Join(feet, "\n\n")
	}
	in.Content = slices.Delete(in.Content, i, i+2)
}

func mapping() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"} }

func scalar(text string) *yaml.Node {
	node := new(yaml.Node)
	if err := node.Encode(text); err != nil {
		panic(err) // strings can always be encoded
	}
	return node
}
