// Package usersfile changes a users_file: it adds users, sets and removes their keys, and removes users. Comments and
// the order of users and keys stay.
//
// A [Document] is the text of a file. [Change] reads one, lets a function change it, checks the result and writes it,
// while no other command does the same.
//
// The users of other FTP servers become users of a configuration. [SFTPGo] reads a dump in JSON. [ProFTPD] reads an
// AuthUserFile in the format of passwd(5), [PureFTPd] a pureftpd.passwd, and [VSFTPD] names and passwords, or
// lines of htpasswd, with a file of settings for each user. A permission that the other server gave in part only is
// left out. A user with a restriction that a configuration cannot express, or that the import does not know, is
// disabled. Whatever is not imported becomes a comment above the user, and a warning. A file of another format is an
// error that names the format.
package usersfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/babelftp/babelftp/internal/config"
)

// A Document is the users of a file.
type Document struct{ root, users *yaml.Node }

// usersKey is the only key of a file of users.
const usersKey = "users"

// Parse reads the text of a file, which may be empty.
func Parse(text []byte) (*Document, error) {
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	d := &Document{root: new(yaml.Node)}
	switch err := loader.Load(d.root); {
	case errors.Is(err, io.EOF): // there are comments at most
		d.root.HeadComment = strings.TrimSpace(string(text))
	case err != nil:
		return nil, fmt.Errorf("this is not YAML: %w", err)
	}
	if d.root.Kind == 0 || d.root.Content[0].Tag == "!!null" {
		comment := d.root.HeadComment
		d.root = &yaml.Node{Kind: yaml.DocumentNode, HeadComment: comment, Content: []*yaml.Node{mapping()}}
	}
	top := d.root.Content[0]
	if top.Kind != yaml.MappingNode {
		return nil, errors.New("this is no mapping with the key users")
	}
	if _, d.users = find(top, func(key string) bool { return key == usersKey }); d.users == nil {
		d.users = mapping()
		top.Content = append(top.Content, scalar(usersKey), d.users)
	}
	if d.users.Tag == "!!null" {
		*d.users = yaml.Node{Kind: yaml.MappingNode, HeadComment: d.users.HeadComment, FootComment: d.users.FootComment}
	}
	if d.users.Kind != yaml.MappingNode {
		return nil, errors.New("users is no mapping of names")
	}
	return d, nil
}

// Text is the text of the file.
func (d *Document) Text() ([]byte, error) {
	return yaml.Dump(d.root, yaml.WithIndent(indentOf(d.root.Content[0])), yaml.WithCompactSeqIndent(false),
		yaml.WithLineWidth(-1), yaml.WithQuotePreference(yaml.QuoteDouble))
}

// indentOf is how many spaces the file indents by.
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

// Has tells whether a user is there.
func (d *Document) Has(user string) bool {
	_, found := d.find(user)
	return found != nil
}

// Add adds a user without keys. There must be none of the name.
func (d *Document) Add(user string) {
	d.users.Style &^= yaml.FlowStyle
	put(d.users, user, mapping())
}

// Remove removes a user.
func (d *Document) Remove(user string) {
	if i, found := d.find(user); found != nil {
		d.users.Content = slices.Delete(d.users.Content, i, i+2)
	}
}

// errAlias reports settings that other users have too.
var errAlias = errors.New("the settings of the user are an alias of YAML (*name), which others share: write them out first")

// settings are the keys of a user.
func (d *Document) settings(user string) (*yaml.Node, error) {
	_, found := d.find(user)
	switch {
	case found == nil:
		return nil, errors.New("there is no such user")
	case found.Kind == yaml.AliasNode:
		return nil, errAlias
	case found.Tag == "!!null":
		*found = *mapping()
	case found.Kind != yaml.MappingNode:
		return nil, errors.New("the user is no mapping of settings")
	}
	return found, nil
}

// Get is the value of a key of a user, empty where it has none.
func (d *Document) Get(user, key string) string {
	settings, err := d.settings(user)
	if err != nil {
		return ""
	}
	if _, value := find(settings, func(k string) bool { return k == key }); value != nil {
		return value.Value
	}
	return ""
}

// Set gives a key of a user one value, or a list of values, in place of the one before.
func (d *Document) Set(user, key string, value any) error {
	settings, err := d.settings(user)
	if err != nil {
		return err
	}
	node := new(yaml.Node)
	if err := node.Encode(value); err != nil {
		return err
	}
	if node.Kind == yaml.SequenceNode {
		node.Style = yaml.FlowStyle
	}
	if _, before := find(settings, func(k string) bool { return k == key }); before != nil {
		node.HeadComment, node.LineComment = before.HeadComment, before.LineComment
		node.FootComment = before.FootComment
		*before = *node
		return nil
	}
	put(settings, key, node)
	return nil
}

// Unset removes a key of a user.
func (d *Document) Unset(user, key string) error {
	settings, err := d.settings(user)
	if err != nil {
		return err
	}
	if i, found := find(settings, func(k string) bool { return k == key }); found != nil {
		settings.Content = slices.Delete(settings.Content, i, i+2)
	}
	return nil
}

// WithoutReason removes the comments above a user that say why the user is disabled, which an import writes.
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

// moved begins the comment above a user who has moved from another server. The address follows, and the time.
const moved = "# moved from "

// NoteMove writes above a user from which server it has moved, and when.
func (d *Document) NoteMove(user, from string, at time.Time) {
	if i, found := d.find(user); found != nil {
		d.users.Content[i].HeadComment = moved + from + " at " + at.UTC().Format(time.RFC3339)
	}
}

// MovedFrom is the server that NoteMove has written above a user, empty without.
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

// HasSpelling reports whether there is a user of this name in some spelling, see [config.FoldUser].
func (d *Document) HasSpelling(user string) bool {
	user = config.FoldUser(user)
	_, settings := find(d.users, func(key string) bool { return config.FoldUser(key) == user })
	return settings != nil
}

// find is where the name of a user stands, and the settings, nil where there is no such user.
func (d *Document) find(user string) (int, *yaml.Node) {
	user = config.NormalizeUser(user)
	return find(d.users, func(key string) bool { return config.NormalizeUser(key) == user })
}

// find is where the first key of a mapping stands that is wanted, and its value.
func find(in *yaml.Node, wanted func(key string) bool) (int, *yaml.Node) {
	for i := 0; i+1 < len(in.Content); i += 2 {
		if wanted(in.Content[i].Value) {
			return i, in.Content[i+1]
		}
	}
	return 0, nil
}

// put adds a key and its value to the end of a mapping. What comments there stays at the end.
func put(in *yaml.Node, key string, value *yaml.Node) {
	name := scalar(key)
	if n := len(in.Content); n > 0 {
		last := in.Content[n-2]
		name.FootComment, last.FootComment = last.FootComment, ""
	}
	in.Content = append(in.Content, name, value)
}

func mapping() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"} }

func scalar(text string) *yaml.Node {
	node := new(yaml.Node)
	if err := node.Encode(text); err != nil {
		panic(err) // any text can be a scalar
	}
	return node
}
