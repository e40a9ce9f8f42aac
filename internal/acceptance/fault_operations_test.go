package acceptance_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A operation is what a client does in a directory, and what it makes of the objects there.
type operation struct {
	name   string
	tenant string // acme when empty
	before objects
	do     func(k *faultClient, dir string) response
	// after is what the directory holds when the operation was done, the same as before when nil.
	after objects
	// byParts says that an operation which failed may have been done in part: a rename by two requests, for one. Then
	// nothing is lost, and to do it again completes it.
	byParts bool
}

// objects are the contents of a directory by name, which for a marker ends with a slash. A large content is described
// by its size and checksum. A modification time that was set stands behind the content.
type objects map[string]string

func (o objects) with(name, content string) objects {
	c := maps.Clone(o)
	c[name] = content
	return c
}

// described makes a content short enough to be printed.
func described(content []byte, mtime string) string {
	const enough = 100
	text := string(content)
	if len(content) > enough {
		text = fmt.Sprintf("%d bytes %x", len(content), sha256.Sum256(content))
	}
	if mtime != "" {
		text += " of " + mtime
	}
	return text
}

// operations lists what clients do.
func operations() []operation {
	const size = 5<<20 + 345 // two parts, and enough for S3 to copy it as one
	small, large := string(content(4<<10)), string(content(size))
	file := objects{"file": "content"}
	tree := objects{"from/": "", "from/a": "a", "from/sub/b": "b", "beside": "beside"}
	moved := objects{"to/": "", "to/a": "a", "to/sub/b": "b", "beside": "beside"}

	command := func(line string) func(*faultClient, string) response {
		return func(k *faultClient, dir string) response { return k.send("%s", strings.ReplaceAll(line, "{dir}", dir)) }
	}
	upload := func(line, data string) func(*faultClient, string) response {
		return func(k *faultClient, dir string) response {
			return k.transfer(strings.ReplaceAll(line, "{dir}", dir), &data)
		}
	}
	// download wants what comes to be right when the server says so.
	download := func(line string, right func(string) bool) func(*faultClient, string) response {
		return func(k *faultClient, dir string) response {
			r := k.transfer(strings.ReplaceAll(line, "{dir}", dir), nil)
			if r.done() && !right(r.data) {
				r.err = fmt.Errorf("%d and the wrong data, %d bytes", r.code, len(r.data))
			}
			return r
		}
	}
	pair := func(first, from, second, to string) func(*faultClient, string) response {
		return func(k *faultClient, dir string) response {
			if r := k.send("%s %s/%s", first, dir, from); r.code != 350 {
				return r
			}
			return k.send("%s %s/%s", second, dir, to)
		}
	}
	rename := func(from, to string) func(*faultClient, string) response { return pair("RNFR", from, "RNTO", to) }
	copies := func(from, to string) func(*faultClient, string) response {
		return pair("SITE CPFR", from, "SITE CPTO", to)
	}
	is := func(want string) func(string) bool { return func(got string) bool { return got == want } }
	lists := func(got string) bool {
		return strings.Contains(got, "a\r\n") && strings.HasSuffix(got, "sub\r\n")
	}

	return []operation{
		{name: "STOR-new", before: file, do: upload("STOR {dir}/new", small), after: file.with("new", small)},
		{name: "STOR-replace", before: file, do: upload("STOR {dir}/file", small), after: file.with("file", small)},
		{name: "STOR-large", before: file, do: upload("STOR {dir}/file", large), after: file.with("file", large)},
		{
			name: "REST-STOR", before: file, after: file.with("file", "cont"+small),
			do: func(k *faultClient, dir string) response {
				if r := k.send("REST 4"); r.code != 350 {
					return r
				}
				return upload("STOR {dir}/file", small)(k, dir)
			},
		},
		{name: "APPE-small", before: file, do: upload("APPE {dir}/file", small),
			after: file.with("file", "content"+small)},
		{name: "APPE-new", before: file, do: upload("APPE {dir}/new", small), after: file.with("new", small)},
		{name: "APPE-large", before: objects{"file": large}, do: upload("APPE {dir}/file", small),
			after: objects{"file": large + small}},
		{name: "RETR-small", before: objects{"file": small}, do: download("RETR {dir}/file", is(small))},
		{name: "RETR-large", before: objects{"file": large}, do: download("RETR {dir}/file", is(large))},
		{
			name: "REST-RETR", before: objects{"file": large},
			do: func(k *faultClient, dir string) response {
				if r := k.send("REST %d", size/2); r.code != 350 {
					return r
				}
				return download("RETR {dir}/file", is(large[size/2:]))(k, dir)
			},
		},
		{name: "LIST", before: tree, do: download("LIST {dir}/from", lists)},
		{name: "MLSD", before: tree, do: download("MLSD {dir}/from", lists)},
		{name: "CWD", before: tree, do: command("CWD {dir}/from")},
		{name: "SIZE", before: file, do: command("SIZE {dir}/file")},
		{name: "MDTM", before: file, do: command("MDTM {dir}/file")},
		{name: "MFMT", before: file, do: command("MFMT 20200102030405 {dir}/file"),
			after: objects{"file": "content of 1577934245.000000000"}},
		{name: "DELE", before: file, do: command("DELE {dir}/file"), after: objects{}},
		{name: "MKD", before: file, do: command("MKD {dir}/new"), after: file.with("new/", "")},
		{name: "RMD", before: file.with("empty/", ""), do: command("RMD {dir}/empty"), after: file},
		{
			name: "SITE-RMDIR", before: tree, do: command("SITE RMDIR {dir}/from"), byParts: true,
			after: objects{"beside": "beside"},
		},
		{name: "rename-file", before: file, do: rename("file", "new"), after: objects{"new": "content"}, byParts: true},
		{name: "rename-onto-file", before: file.with("old", "old"), do: rename("file", "old"),
			after: objects{"old": "content"}, byParts: true},
		{name: "rename-directory", before: tree, do: rename("from", "to"), after: moved, byParts: true},
		{name: "copy-file", before: file, do: copies("file", "new"), after: file.with("new", "content")},
		{
			name: "copy-directory", before: tree, do: copies("from", "to"), byParts: true,
			after: objects{"from/": "", "from/a": "a", "from/sub/b": "b", "to/": "", "to/a": "a", "to/sub/b": "b",
				"beside": "beside"},
		},
		{
			name: "HASH", before: objects{"file": small},
			do: func(k *faultClient, dir string) response {
				r := k.send("HASH %s/file", dir)
				if r.done() && !strings.Contains(r.text, fmt.Sprintf("%x", sha256.Sum256([]byte(small)))) {
					r.err = fmt.Errorf("%v: the wrong hash", r)
				}
				return r
			},
		},
		{name: "deny-STOR-new", tenant: denying, before: file, do: upload("STOR {dir}/new", small),
			after: file.with("new", small)},
		{name: "deny-STOR-large", tenant: denying, before: file, do: upload("STOR {dir}/new", large),
			after: file.with("new", large)},
		{name: "deny-rename-file", tenant: denying, before: file, do: rename("file", "new"),
			after: objects{"new": "content"}, byParts: true},
	}
}

// equal compares what a bucket holds with what it should. Large contents are given as they are in what it should.
func (o objects) equal(want objects) bool {
	if len(o) != len(want) {
		return false
	}
	for name, content := range want {
		if got, found := o[name]; !found || got != content && got != described([]byte(content), "") {
			return false
		}
	}
	return true
}

func (o objects) String() string {
	var text bytes.Buffer
	for i, name := range slices.Sorted(maps.Keys(o)) {
		if i > 0 {
			text.WriteString(", ")
		}
		fmt.Fprintf(&text, "%s: %s", name, described([]byte(o[name]), ""))
	}
	return "{" + text.String() + "}"
}
