package usersfile

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/storage/state"
)

// Errors of a [Store].
var (
	ErrNotFound = errors.New("user not found")
	// ErrConflict reports that someone else changed the user at the same time. Nothing was written.
	ErrConflict = errors.New("somebody else changed the user at the same time: look at that change, and try again")
	// ErrUnavailable reports that the shared state cannot be reached.
	ErrUnavailable = errors.New("the shared state cannot be reached")
	// ErrReadOnly reports that the store cannot be changed, for example because the tenant has none.
	ErrReadOnly = errors.New("users cannot be changed here")
)

// A Kind is a kind of store.
type Kind string

// The kinds of stores.
const (
	InFile  Kind = "file"  // users_file
	InState Kind = "state" // users_store: state
)

// A Place says where a user is stored.
type Place struct {
	Kind Kind
	Name string // path of the file, or URL of the item
}

// String returns the name of the place for messages.
func (p Place) String() string { return p.Name }

// Options are the options of a [Store].
type Options struct {
	Tenant string
	// UsersFile is the users_file of the tenant, or empty.
	UsersFile string
	// NewIn is the file for new users if UsersFile is a folder. It may be empty if the folder has one file.
	NewIn string
	// State is the shared state. It is nil unless users_store of the tenant is state.
	State *state.Store
	// Check validates a change before it is written. text is the new content of the file, or the users_file with the
	// one user of an item.
	Check func(user string, in Place, text []byte) error
}

// A Store holds the users of a tenant that can be changed while the server runs. They are in the files of users_file,
// or in the shared state, or in both while they are moved. If both have a user, the file takes precedence. New users
// are stored in the shared state if the tenant uses it.
type Store struct{ opts Options }

// NewStore returns the store of a tenant. It reads nothing.
func NewStore(o Options) *Store { return &Store{o} }

// IsSet reports whether the tenant has a store.
func (s *Store) IsSet() bool { return s.opts.UsersFile != "" || s.opts.State != nil }

// Read returns a document that has the user, and where it is stored. The document of an item has only this user. The
// error wraps [ErrNotFound] if no store has the user. If the shared state cannot be reached, the last known user is
// returned.
func (s *Store) Read(ctx context.Context, user string) (*Document, Place, error) {
	d, file, err := s.findInFiles(user)
	if err != nil || d != nil {
		return d, Place{InFile, file}, err
	}
	if s.opts.State != nil {
		place := s.item(user)
		if d, err = s.readItem(ctx, user); err != nil || d.Has(user) {
			return d, place, err
		}
	}
	return nil, Place{}, fmt.Errorf("user %s@%s: %w", user, s.opts.Tenant, ErrNotFound)
}

// Edit changes one user: change gets a document that has the user if it exists, and may add, change or remove this
// user, and no other one. Its error is returned, and nothing is written. Edit validates the result with the Check of
// the options. It returns an error that wraps [ErrConflict] if the user was changed in the meantime; to compare with
// a version that was read earlier, compare [Document.Version] in change.
func (s *Store) Edit(ctx context.Context, user string, change func(*Document) error) error {
	return s.edit(ctx, user, change, false)
}

// DryRun is like [Store.Edit], but writes nothing. It returns the error that Edit would return.
func (s *Store) DryRun(ctx context.Context, user string, change func(*Document) error) error {
	return s.edit(ctx, user, change, true)
}

func (s *Store) edit(ctx context.Context, user string, change func(*Document) error, dry bool) error {
	_, place, err := s.Read(ctx, user)
	if errors.Is(err, ErrNotFound) {
		place, err = s.PlaceOfNew(user)
	}
	switch {
	case err != nil:
		return err
	case place.Kind == InState:
		check := func(_ string, text []byte) error { return s.opts.Check(user, place, text) }
		return s.editItem(ctx, user, change, check, dry)
	}
	check := func(file string, text []byte) error { return s.opts.Check(user, Place{InFile, file}, text) }
	if dry {
		return DryRun(place.Name, change, check)
	}
	return Edit(place.Name, change, check)
}

// PlaceOfNew returns the place in which Edit stores a new user.
func (s *Store) PlaceOfNew(user string) (Place, error) {
	switch {
	case s.opts.State != nil && s.opts.NewIn == "":
		return s.item(user), nil
	case s.opts.UsersFile == "":
		return Place{}, fmt.Errorf("tenant %s has neither users_store nor users_file: %w", s.opts.Tenant, ErrReadOnly)
	case s.opts.NewIn != "":
		return Place{InFile, s.opts.NewIn}, nil
	}
	files, err := Files(s.opts.UsersFile)
	if err == nil && len(files) != 1 {
		err = fmt.Errorf("users_file %s is a directory with %d files: choose one with --file: %w", s.opts.UsersFile,
			len(files), ErrReadOnly)
	}
	if err != nil {
		return Place{}, err
	}
	return Place{InFile, files[0]}, nil
}

// Writable returns an error that wraps [ErrReadOnly] if the server must not change the user at this place on its own,
// for example because the file is in a Secret of Kubernetes.
func (s *Store) Writable(at Place) error {
	if at.Kind == InState {
		return nil
	}
	if err := MayRehash(at.Name); err != nil {
		return fmt.Errorf("%s: %w: %w", at.Name, ErrReadOnly, err)
	}
	return nil
}

// Places returns where each user is stored, by normalized name. It reads the last known shared state.
func (s *Store) Places() (map[string]Place, error) {
	places := map[string]Place{}
	if s.opts.State != nil {
		prefix := TenantPrefix(s.opts.Tenant)
		for _, item := range s.opts.State.Names(prefix) {
			value, _ := s.opts.State.Get(item)
			if u, ok := ParseItem(item, value); ok {
				places[u.Name] = s.item(u.Name)
			}
		}
	}
	return places, s.eachFile(func(file string, d *Document) bool {
		for _, name := range d.Names() {
			places[name] = Place{InFile, file}
		}
		return true
	})
}

// findInFiles returns the first file that has the user and its content, or nil.
func (s *Store) findInFiles(user string) (found *Document, in string, err error) {
	err = s.eachFile(func(file string, d *Document) bool {
		if d.Has(user) {
			found, in = d, file
		}
		return found == nil
	})
	return found, in, err
}

// eachFile calls f with each file of users_file until it returns false. Missing files are skipped.
func (s *Store) eachFile(f func(file string, d *Document) bool) error {
	if s.opts.UsersFile == "" {
		return nil
	}
	files, err := Files(s.opts.UsersFile)
	if err != nil {
		return err
	}
	for _, file := range files {
		switch d, err := Read(file); {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			return err
		case !f(file, d):
			return nil
		}
	}
	return nil
}

// Names returns the normalized names of all users in the document.
func (d *Document) Names() (names []string) {
	for i := 0; i+1 < len(d.users.Content); i += 2 {
		names = append(names, config.NormalizeUser(d.users.Content[i].Value))
	}
	return names
}

// Settings returns the settings of a user, as maps, lists and single values, with aliases expanded. It returns nil if
// the user does not exist.
func (d *Document) Settings(user string) (map[string]any, error) {
	_, found := d.find(user)
	if found == nil {
		return nil, nil
	}
	settings := map[string]any{}
	err := found.Decode(&settings)
	return settings, err
}

// Version returns a text that differs between different settings of a user. It does not depend on other users and on
// comments. It is empty if the user does not exist.
func (d *Document) Version(user string) string {
	settings, err := d.Settings(user)
	if err != nil || settings == nil {
		return ""
	}
	text, err := json.Marshal(settings) // keys are sorted
	if err != nil {
		return ""
	}
	const size = 16
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:size])
}

// editItem changes the item of a user in the shared state.
func (s *Store) editItem(
	ctx context.Context, user string, change func(*Document) error, check func(string, []byte) error, dry bool,
) error {
	name, place := itemName(s.opts.Tenant, user), s.item(user)
	if _, err := s.opts.State.Read(ctx, name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	var first []byte
	var refused error
	begun := false
	err := s.opts.State.Update(ctx, name, func(before []byte) (text []byte, err error) {
		if begun && !bytes.Equal(before, first) {
			return nil, ErrConflict
		}
		first, begun = before, true
		if text, refused = edited(place.Name, change, check)(before); refused != nil {
			return nil, refused
		}
		if dry || bytes.Equal(text, before) {
			return nil, errUnchanged
		}
		return text, nil
	})
	switch {
	case err == nil, errors.Is(err, errUnchanged):
		return nil
	case errors.Is(err, ErrConflict), errors.Is(err, state.ErrConflict):
		return fmt.Errorf("%s: %w", place, ErrConflict)
	case refused != nil:
		return refused
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// errUnchanged ends an update that writes nothing.
var errUnchanged = errors.New("nothing to write")

// readItem returns the item of a user, which is empty if it does not exist. If S3 fails, it returns the last known
// item.
func (s *Store) readItem(ctx context.Context, user string) (*Document, error) {
	name := itemName(s.opts.Tenant, user)
	value, err := s.opts.State.Read(ctx, name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		known, ok := s.opts.State.Get(name)
		if !ok {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		value = known
	}
	d, err := Parse(value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.item(user), err)
	}
	return d, nil
}

// item returns the place of a user in the shared state.
func (s *Store) item(user string) Place {
	return Place{InState, s.opts.State.URL(itemName(s.opts.Tenant, user))}
}
