package usersfile

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/babelftp/babelftp/internal/base/keyring"
	"github.com/babelftp/babelftp/internal/storage/s3client"
	"github.com/babelftp/babelftp/internal/storage/state"
	"github.com/babelftp/babelftp/internal/testkit/must"
	"github.com/babelftp/babelftp/internal/testkit/s3test"
)

func TestMain(m *testing.M) { s3test.Main(m) }

// A testState is a place with shared state.
type testState struct {
	options state.Options
	proxy   *s3test.Proxy
}

func newTestState(t *testing.T, server string) *testState {
	proxy := s3test.StartProxy(t, s3test.Start(t, server))
	storage := proxy.Server()
	keys, err := keyring.Parse(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", keyring.KeySize))))
	must.OK(t, err)
	return &testState{proxy: proxy, options: state.Options{
		Client: storage.Client(s3client.RetryUnstored("")), Bucket: storage.Bucket(t), Prefix: "state/", Keys: keys,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}}
}

// open returns the shared state as another process sees it.
func (s *testState) open(t *testing.T) *state.Store {
	store := state.New(s.options)
	t.Cleanup(func() { store.Flush(context.WithoutCancel(t.Context())) })
	return store
}

// accept accepts all changes.
func accept(string, Place, []byte) error { return nil }

// onBoth runs a test with a store in a file and in the shared state. open returns the store as another process.
func onBoth(t *testing.T, test func(t *testing.T, kind Kind, open func() *Store)) {
	t.Run("file", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "users.yaml")
		test(t, InFile, func() *Store { return NewStore(Options{Tenant: "acme", UsersFile: file, Check: accept}) })
	})
	for _, server := range []string{"sim-aws", "minio", "versitygw"} {
		t.Run(server, func(t *testing.T) {
			s := newTestState(t, server)
			test(t, InState, func() *Store {
				return NewStore(Options{Tenant: "acme", State: s.open(t), Check: accept})
			})
		})
	}
}

// add returns a change that adds a user.
func add(name, root string) func(*Document) error {
	return func(d *Document) error {
		d.Add(name)
		return d.Set(name, root, "root")
	}
}

// A user can be added, changed and removed, whatever the name is.
func TestStoreEdit(t *testing.T) {
	onBoth(t, func(t *testing.T, kind Kind, open func() *Store) {
		names := []string{"alice", "a/b", "../acme2/eve", "..", "ليلى", "名前 with space", "100%", strings.Repeat("長", 200), "bob@acme"}
		for _, name := range names {
			must.OK(t, open().Edit(t.Context(), name, add(name, "/x")))
		}
		for _, name := range names {
			d, place, err := open().Read(t.Context(), name)
			must.OK(t, err)
			if place.Kind != kind || d.Get(name, "root") != "/x" {
				t.Errorf("%q: %v, root %q", name, place, d.Get(name, "root"))
			}
			before := d.Version(name)
			must.OK(t, open().Edit(t.Context(), name, func(d *Document) error { return d.Set(name, "/y", "root") }))
			d, _, err = open().Read(t.Context(), name)
			must.OK(t, err)
			if d.Get(name, "root") != "/y" || d.Version(name) == before || before == "" {
				t.Errorf("%q was not changed: %q, version %q", name, d.Get(name, "root"), d.Version(name))
			}
			must.OK(t, open().Edit(t.Context(), name, func(d *Document) error { return d.Remove(name) }))
			if _, _, err = open().Read(t.Context(), name); !errors.Is(err, ErrNotFound) {
				t.Errorf("%q is not removed: %v", name, err)
			}
		}
		failed := errors.New("failed")
		if err := open().Edit(t.Context(), "alice", func(*Document) error { return failed }); !errors.Is(err, failed) {
			t.Errorf("Edit returns %v", err)
		}
		must.OK(t, open().DryRun(t.Context(), "alice", add("alice", "/")))
		if _, _, err := open().Read(t.Context(), "alice"); !errors.Is(err, ErrNotFound) {
			t.Errorf("DryRun has written: %v", err)
		}
	})
}

// A change that Check refuses is not written.
func TestStoreCheck(t *testing.T) {
	onBoth(t, func(t *testing.T, _ Kind, open func() *Store) {
		refused := errors.New("refused")
		s := open()
		s.opts.Check = func(user string, _ Place, text []byte) error {
			if user != "alice" || !strings.Contains(string(text), "root: /x") {
				t.Errorf("checked %q: %s", user, text)
			}
			return refused
		}
		if err := s.Edit(t.Context(), "alice", add("alice", "/x")); !errors.Is(err, refused) {
			t.Errorf("Edit returns %v", err)
		}
		if _, _, err := open().Read(t.Context(), "alice"); !errors.Is(err, ErrNotFound) {
			t.Errorf("it was written: %v", err)
		}
	})
}

// If two administrators change one user of the shared state at once, the second one gets a conflict.
func TestStoreConflict(t *testing.T) {
	for _, server := range []string{"sim-aws", "minio", "versitygw"} {
		t.Run(server, func(t *testing.T) {
			s := newTestState(t, server)
			one := NewStore(Options{Tenant: "acme", State: s.open(t), Check: accept})
			other := NewStore(Options{Tenant: "acme", State: s.open(t), Check: accept})
			must.OK(t, one.Edit(t.Context(), "alice", add("alice", "/x")))
			meanwhile := func(change func(*Document) error) func(*Document) error {
				return func(d *Document) error {
					must.OK(t, other.Edit(t.Context(), "alice", change))
					return d.Set("alice", "fr", "language")
				}
			}
			first := true
			err := one.Edit(t.Context(), "alice", func(d *Document) error {
				if !first {
					t.Error("the change was repeated")
				}
				first = false
				return meanwhile(func(d *Document) error { return d.Set("alice", "1GiB", "quota") })(d)
			})
			if !errors.Is(err, ErrConflict) {
				t.Errorf("Edit during a change returns %v", err)
			}
			err = one.Edit(t.Context(), "alice", meanwhile(func(d *Document) error { return d.Remove("alice") }))
			if !errors.Is(err, ErrConflict) {
				t.Errorf("Edit during a removal returns %v", err)
			}
			if _, _, err := one.Read(t.Context(), "alice"); !errors.Is(err, ErrNotFound) {
				t.Errorf("the removed user is back: %v", err)
			}
			must.OK(t, one.Edit(t.Context(), "alice", add("alice", "/z"))) // with the name of a removed user
		})
	}
}

// While S3 is down, users can be read from the copy, but not changed.
func TestStoreWithoutS3(t *testing.T) {
	s := newTestState(t, "sim-aws")
	shared := s.open(t)
	store := NewStore(Options{Tenant: "acme", State: shared, Check: accept})
	must.OK(t, store.Edit(t.Context(), "alice", add("alice", "/x")))
	shared.Flush(t.Context())
	down := s.proxy.Inject(s3test.Fault{Effect: s3test.Refuse(403, "AccessDenied")})
	defer down.End()
	d, _, err := store.Read(t.Context(), "alice")
	must.OK(t, err)
	if d.Get("alice", "root") != "/x" {
		t.Error("the known user was not returned")
	}
	if _, _, err := store.Read(t.Context(), "bob"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("Read of an unknown user returns %v", err)
	}
	err = store.Edit(t.Context(), "alice", func(d *Document) error { return d.Set("alice", "/y", "root") })
	if !errors.Is(err, ErrUnavailable) {
		t.Errorf("Edit returns %v", err)
	}
}

// If both stores have a user, the file takes precedence. New users are stored in the shared state.
func TestStoreWithBoth(t *testing.T) {
	s := newTestState(t, "sim-aws")
	file := filepath.Join(t.TempDir(), "users.yaml")
	must.WriteFile(t, file, "users:\n  alice: {root: /file}\n")
	both := NewStore(Options{Tenant: "acme", UsersFile: file, State: s.open(t), Check: accept})
	must.OK(t, NewStore(Options{Tenant: "acme", State: s.open(t), Check: accept}).Edit(t.Context(), "alice", add("alice", "/state")))
	d, place, err := both.Read(t.Context(), "alice")
	must.OK(t, err)
	if place.Kind != InFile || d.Get("alice", "root") != "/file" {
		t.Errorf("read from %s", place)
	}
	must.OK(t, both.Edit(t.Context(), "bob", add("bob", "/b")))
	places, err := both.Places()
	must.OK(t, err)
	if places["alice"].Name != file || places["bob"].Kind != InState || len(places) != 2 {
		t.Errorf("Places = %v", places)
	}
	none := NewStore(Options{Tenant: "acme", Check: accept})
	if err := none.Edit(t.Context(), "alice", add("alice", "/")); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Edit without a store returns %v", err)
	}
}

// Settings expands aliases, and Version ignores comments and other users.
func TestDocumentSettings(t *testing.T) {
	version := func(text string) string {
		d, err := Parse([]byte(text))
		must.OK(t, err)
		return d.Version("alice")
	}
	base := version("users: {alice: {root: /a, permissions: [list]}}")
	for text, same := range map[string]bool{
		"# comment\nusers:\n  bob: {}\n  # hers\n  alice:\n    permissions: [list] # all\n    root: /a\n": true,
		"users: {bob: {permissions: &p [list]}, alice: {root: /a, permissions: *p}}":                      true,
		"users: {alice: {root: /a, permissions: [list, read]}}":                                           false,
		"users: {alice: {}}": false,
		"users: {}":          false,
	} {
		if got := version(text) == base; got != same {
			t.Errorf("%s: same version: %v", text, got)
		}
	}
	if version("users: {}") != "" {
		t.Error("a missing user has a version")
	}
	d, err := Parse([]byte("users: {al: {}, \"e\\u0301\": {}}"))
	must.OK(t, err)
	if names := d.Names(); !slices.Equal(names, []string{"al", "\u00e9"}) {
		t.Errorf("Names = %q", names)
	}
}

// movedTenant returns the options of a tenant whose users are moved, and the content of its file.
func movedTenant(t *testing.T, s *testState, users string) (open func() *Store, file string) {
	file = filepath.Join(t.TempDir(), "users.yaml")
	must.WriteFile(t, file, users)
	must.WriteFile(t, filepath.Join(filepath.Dir(file), "bob.hash"), "$6$bob\n")
	return func() *Store {
		return NewStore(Options{Tenant: "acme", UsersFile: file, State: s.open(t), Check: accept})
	}, file
}

// mover returns a move that collects its notes.
func mover(to Kind, notes *[]string) Move {
	return Move{To: to, Moved: func(string, Place, Place) {}, Note: func(text string) { *notes = append(*notes, text) },
		Wait: func(context.Context, time.Duration) {}}
}

const usersToMove = "# Ours.\nusers:\n  # Sales.\n  alice: {root: &r /a, password_hash: $6$alice} # until spring\n" +
	"  bob:\n    password_hash_file: bob.hash\n    root: *r\n"

// Users can be moved to the state and back, with comments and without aliases and files.
func TestMove(t *testing.T) {
	for _, server := range []string{"sim-aws", "minio", "versitygw"} {
		t.Run(server, func(t *testing.T) {
			open, file := movedTenant(t, newTestState(t, server), usersToMove)
			var notes []string
			dry := mover(InState, &notes)
			dry.DryRun = true
			must.OK(t, open().Move(t.Context(), dry))
			if text := must.ReadFile(t, file); text != usersToMove {
				t.Errorf("a dry run changed the file to\n%s", text)
			}
			if _, place, err := open().Read(t.Context(), "alice"); err != nil || place.Kind != InFile {
				t.Errorf("after a dry run, alice is in %v, %v", place, err)
			}
			must.OK(t, open().Move(t.Context(), mover(InState, &notes)))
			if text := must.ReadFile(t, file); text != "# Ours.\nusers: {}\n" {
				t.Errorf("the file is\n%s", text)
			}
			d, place, err := open().Read(t.Context(), "bob")
			must.OK(t, err)
			if place.Kind != InState || d.Get("bob", "password_hash") != "$6$bob" || d.Get("bob", "root") != "/a" {
				t.Errorf("bob is %v in %s", d, place)
			}
			must.OK(t, open().Move(t.Context(), mover(InState, &notes))) // nothing is left to move
			must.OK(t, open().Move(t.Context(), mover(InFile, &notes)))
			text := must.ReadFile(t, file)
			for _, want := range []string{"# Ours.", "  # Sales.\n  alice: {root: /a, password_hash: $6$alice} # until spring\n", "  bob:\n"} {
				if !strings.Contains(text, want) {
					t.Errorf("the file is\n%s\nwant %q", text, want)
				}
			}
			if s := open(); len(notes) > 0 || s.opts.State.Sync(t.Context()) != nil {
				t.Errorf("notes %q", notes)
			} else if places, _ := s.Places(); places["alice"].Kind != InFile || len(places) != 2 {
				t.Errorf("places %v", places)
			}
		})
	}
}

// A move that was interrupted is completed by another one. Users who were changed in the meantime are not lost.
func TestMoveAgain(t *testing.T) {
	for _, to := range []Kind{InState, InFile} {
		t.Run(string(to), func(t *testing.T) {
			open, _ := movedTenant(t, newTestState(t, "sim-aws"), usersToMove)
			var notes []string
			if to == InFile {
				must.OK(t, open().Move(t.Context(), mover(InState, &notes)))
			}
			interrupted := mover(to, &notes)
			change := func() {
				s := open()
				if to == InFile {
					s.opts.UsersFile = "" // what another replica does, which does not have the file yet
				}
				must.OK(t, s.Edit(t.Context(), "alice", func(d *Document) error { return d.Set("alice", "fr", "language") }))
			}
			interrupted.Wait = func(context.Context, time.Duration) { change() }
			must.OK(t, open().Move(t.Context(), interrupted))
			if len(notes) != 1 || !strings.Contains(notes[0], "alice@acme stays in") {
				t.Fatalf("notes %q", notes)
			}
			notes = nil
			must.OK(t, open().Move(t.Context(), mover(to, &notes)))
			if len(notes) != 1 || !strings.Contains(notes[0], "--replace") {
				t.Fatalf("notes %q", notes)
			}
			notes = nil
			replacing := mover(to, &notes)
			replacing.Replace = true
			must.OK(t, open().Move(t.Context(), replacing))
			d, place, err := open().Read(t.Context(), "alice")
			must.OK(t, err)
			if len(notes) > 0 || place.Kind != to || d.Get("alice", "language") != "fr" {
				t.Errorf("alice is in %s with the language %q, and the notes are %q", place, d.Get("alice", "language"), notes)
			}
		})
	}
}

// A move without one of the two places, or without S3, changes nothing.
func TestMoveErrors(t *testing.T) {
	s := newTestState(t, "sim-aws")
	open, file := movedTenant(t, s, usersToMove)
	var notes []string
	one := open()
	one.opts.UsersFile = ""
	if err := one.Move(t.Context(), mover(InFile, &notes)); !errors.Is(err, ErrReadOnly) {
		t.Errorf("without a file: %v", err)
	}
	refused := errors.New("refused")
	one = open()
	one.opts.Check = func(string, Place, []byte) error { return refused }
	if err := one.Move(t.Context(), mover(InState, &notes)); !errors.Is(err, refused) {
		t.Errorf("with an invalid user: %v", err)
	}
	down := s.proxy.Inject(s3test.Fault{Effect: s3test.Refuse(403, "AccessDenied")})
	if err := open().Move(t.Context(), mover(InState, &notes)); !errors.Is(err, ErrUnavailable) {
		t.Errorf("without S3: %v", err)
	}
	down.End()
	if text := must.ReadFile(t, file); text != usersToMove {
		t.Errorf("the file is\n%s", text)
	}
}

// Homonyms finds the users with whom a new user could be mistaken at a login.
func TestHomonyms(t *testing.T) {
	shared := newTestState(t, "sim-aws").open(t)
	for _, user := range []string{"bob@a", "bob@b", "removed@b", "bob@b@c", "eve@b"} {
		at := strings.LastIndexByte(user, '@')
		s := NewStore(Options{Tenant: user[at+1:], State: shared, Check: accept})
		must.OK(t, s.Edit(t.Context(), user[:at], add(user[:at], "/")))
		if user == "removed@b" {
			must.OK(t, s.Edit(t.Context(), user[:at], func(d *Document) error { return d.Remove("removed") }))
		}
	}
	for user, want := range map[string]string{
		"bob@a": "map[b:[bob]]", "bob@b": "map[a:[bob] c:[bob@b]]", "removed@a": "map[]", "eve@b@a": "map[b:[eve]]", "al@a": "map[]",
	} {
		at := strings.LastIndexByte(user, '@')
		found, err := Homonyms(t.Context(), shared, user[at+1:], user[:at])
		if err != nil || fmt.Sprint(found) != want {
			t.Errorf("%s: %v, %v, want %s", user, found, err, want)
		}
	}
}

// SetPassword replaces the hash and removes must_change_password, unless the hash has changed.
func TestStoreSetPassword(t *testing.T) {
	onBoth(t, func(t *testing.T, _ Kind, open func() *Store) {
		must.OK(t, open().Edit(t.Context(), "alice", func(d *Document) error {
			d.Add("alice")
			return errors.Join(d.Set("alice", "$6$old", "password_hash"), d.Set("alice", true, "must_change_password"))
		}))
		_, place, err := open().Read(t.Context(), "alice")
		must.OK(t, err)
		changed, err := open().SetPassword(t.Context(), place, Rehash{"alice", "$6$other", "$new"})
		if changed || err != nil {
			t.Errorf("another hash: %v, %v", changed, err)
		}
		changed, err = open().SetPassword(t.Context(), place, Rehash{"alice", "$6$old", "$new"})
		if !changed || err != nil {
			t.Errorf("the right hash: %v, %v", changed, err)
		}
		if users, err := open().WriteHashes(t.Context(), place, []Rehash{{"alice", "$new", "$newer"}, {"bob", "a", "b"}}); err != nil ||
			!slices.Equal(users, []string{"alice"}) {
			t.Errorf("WriteHashes = %q, %v", users, err)
		}
		d, _, err := open().Read(t.Context(), "alice")
		must.OK(t, err)
		if d.Get("alice", "password_hash") != "$newer" || d.Get("alice", "must_change_password") != "" {
			t.Errorf("alice has %q, %q", d.Get("alice", "password_hash"), d.Get("alice", "must_change_password"))
		}
	})
}
