package usersfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/babelftp/babelftp/internal/config/yamlconf"
	"github.com/babelftp/babelftp/internal/storage/state"
)

// moveDelay is the time between the copies and the removal of the originals. After it, all replicas know the copies.
const moveDelay = 3 * time.Second

// A Move moves the users of a tenant between users_file and the shared state. First it copies all users, and then it
// removes the originals, so that nothing is lost if it is interrupted. Another Move completes it.
type Move struct {
	To Kind
	// Replace replaces users at the destination who have other settings. By default they are reported, and not moved.
	Replace bool
	// DryRun only reports.
	DryRun bool
	// Moved is called for each copied user.
	Moved func(user string, from, to Place)
	// Note is called with each user or file that has to be moved by hand.
	Note func(text string)
	// Wait waits for a duration; for tests.
	Wait func(context.Context, time.Duration)
}

// errDiffers reports a user whom both stores have with different settings.
var errDiffers = errors.New("the destination has this user with other settings")

// Move moves all users.
func (s *Store) Move(ctx context.Context, m Move) error {
	if s.opts.State == nil || s.opts.UsersFile == "" {
		return fmt.Errorf("tenant %s needs both users_file and users_store: %w", s.opts.Tenant, ErrReadOnly)
	}
	if err := s.opts.State.Sync(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if m.To == InState {
		return s.moveToState(ctx, m)
	}
	return s.moveToFile(ctx, m)
}

// A copied user is a user whom a move has copied, with the version that it has copied.
type copiedUser struct{ name, version string }

// moveToState moves the users of all files.
func (s *Store) moveToState(ctx context.Context, m Move) error {
	copied := map[string][]copiedUser{} // by file
	var files []string
	var failed error
	err := s.eachFile(func(file string, d *Document) bool {
		files = append(files, file)
		for _, user := range d.Names() {
			switch err := s.copyToState(ctx, m, file, d, user); {
			case errors.Is(err, errDiffers):
				m.Note(fmt.Sprintf("user %s@%s was not moved, because %s has other settings for the user: move with --replace to use those "+
					"of %s, or run `babelftp users remove` to keep those of the state", user, s.opts.Tenant, s.item(user), file))
			case err != nil:
				failed = fmt.Errorf("user %s@%s: %w", user, s.opts.Tenant, err)
				return false
			default:
				copied[file] = append(copied[file], copiedUser{user, d.Version(user)})
			}
		}
		return true
	})
	s.opts.State.Flush(ctx)
	if err = errors.Join(err, failed); err != nil || m.DryRun || len(copied) == 0 {
		return err
	}
	m.Wait(ctx, moveDelay)
	for _, file := range files {
		if err := Writable(file); err != nil && len(copied[file]) > 0 {
			m.Note(fmt.Sprintf("%s still has the users, because %v: remove users_file from the configuration of all replicas",
				file, err))
			continue
		}
		if err := s.removeFromFile(m, file, copied[file]); err != nil {
			return err
		}
	}
	return nil
}

// copyToState copies a user.
func (s *Store) copyToState(ctx context.Context, m Move, file string, d *Document, user string) error {
	text, err := d.alone(user, filepath.Dir(file))
	if err != nil {
		return err
	}
	want, err := Parse(text)
	if err != nil {
		return err
	}
	place := s.item(user)
	check := func(_ string, text []byte) error { return s.opts.Check(user, place, text) }
	err = s.editItem(ctx, user, func(now *Document) error {
		if now.Has(user) && now.Version(user) != want.Version(user) && !m.Replace {
			return errDiffers
		}
		*now = *want
		return nil
	}, check, m.DryRun)
	if err == nil {
		m.Moved(user, Place{InFile, file}, place)
	}
	return err
}

// removeFromFile removes users who have been copied, unless they have changed since then.
func (s *Store) removeFromFile(m Move, file string, users []copiedUser) error {
	if len(users) == 0 {
		return nil
	}
	return Edit(file, func(d *Document) error {
		var names []string
		for _, u := range users {
			if d.Version(u.name) == u.version {
				names = append(names, u.name)
				continue
			}
			m.Note(fmt.Sprintf("user %s@%s stays in %s, because it was changed during the move: run it again with --replace",
				u.name, s.opts.Tenant, file))
		}
		return d.removeAll(names)
	}, func(file string, text []byte) error { return s.opts.Check("", Place{InFile, file}, text) })
}

// removeAll removes users, which may share settings by aliases.
func (d *Document) removeAll(names []string) error {
	for len(names) > 0 {
		var errs []error
		left := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			err := d.Remove(name)
			errs = append(errs, err)
			return err == nil
		})
		if len(left) == len(names) {
			return errors.Join(errs...)
		}
		names = left
	}
	return nil
}

// moveToFile moves the users in the shared state to one file.
func (s *Store) moveToFile(ctx context.Context, m Move) error {
	to := Place{InFile, s.opts.NewIn}
	if to.Name == "" {
		only := &Store{Options{Tenant: s.opts.Tenant, UsersFile: s.opts.UsersFile}}
		var err error
		if to, err = only.PlaceOfNew(""); err != nil {
			return err
		}
	}
	var copied []copiedUser
	add := func(d *Document) error {
		copied = nil
		for _, item := range s.opts.State.Names(TenantPrefix(s.opts.Tenant)) {
			value, _ := s.opts.State.Get(item)
			u, ok := ParseItem(item, value)
			if !ok {
				continue
			}
			if u.Text == nil {
				m.Note(fmt.Sprintf("%s is not a user, and was not moved", s.opts.State.URL(item)))
				continue
			}
			from, err := Parse(u.Text)
			if err != nil {
				return err
			}
			if d.Has(u.Name) && d.Version(u.Name) != from.Version(u.Name) && !m.Replace {
				m.Note(fmt.Sprintf("user %s@%s was not moved, because %s has other settings for the user: move with --replace to use those "+
					"of the state", u.Name, s.opts.Tenant, to.Name))
				continue
			}
			if d.Version(u.Name) != from.Version(u.Name) {
				if err := d.adopt(from, u.Name); err != nil {
					return err
				}
			}
			copied = append(copied, copiedUser{u.Name, from.Version(u.Name)})
		}
		return nil
	}
	check := func(file string, text []byte) error { return s.opts.Check("", Place{InFile, file}, text) }
	write := Edit
	if m.DryRun {
		write = DryRun
	}
	if err := write(to.Name, add, check); err != nil {
		return err
	}
	for _, u := range copied {
		m.Moved(u.name, s.item(u.name), to)
	}
	if m.DryRun || len(copied) == 0 {
		return nil
	}
	m.Wait(ctx, moveDelay)
	for _, u := range copied {
		if err := s.removeItem(ctx, m, u); err != nil {
			return err
		}
	}
	s.opts.State.Flush(ctx)
	return nil
}

// removeItem removes a copied user, unless it has changed since then.
func (s *Store) removeItem(ctx context.Context, m Move, u copiedUser) error {
	err := s.editItem(ctx, u.name, func(d *Document) error {
		if d.Version(u.name) != u.version {
			return ErrConflict
		}
		return d.Remove(u.name)
	}, func(string, []byte) error { return nil }, false)
	if errors.Is(err, ErrConflict) {
		m.Note(fmt.Sprintf("user %s@%s stays in the state too, because it was changed during the move: run it again with --replace",
			u.name, s.opts.Tenant))
		return nil
	}
	return err
}

// alone returns a users_file with one user, without aliases and without the names of other files, which are relative to
// dir.
func (d *Document) alone(user, dir string) ([]byte, error) {
	one, err := Parse(nil)
	if err == nil {
		err = one.adopt(d, user)
	}
	if err != nil {
		return nil, err
	}
	if name := one.Get(user, passwordHash+yamlconf.FileSuffix); name != "" {
		hash, err := os.ReadFile(yamlconf.ResolvePath(dir, name))
		if err != nil {
			return nil, fmt.Errorf("cannot read password_hash_file: %w", err)
		}
		if err := one.Set(user, strings.TrimRight(string(hash), "\r\n"), passwordHash); err != nil {
			return nil, err
		}
		if err := one.Unset(user, passwordHash+yamlconf.FileSuffix); err != nil {
			return nil, err
		}
	}
	return one.Text()
}

// adopt adds a user of another document with its comments, or replaces it.
func (d *Document) adopt(from *Document, user string) error {
	i, found := from.find(user)
	if found == nil {
		return ErrNotFound
	}
	name := *from.users.Content[i]
	name.FootComment = ""
	settings, err := expanded(found, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", pathOf(user), err)
	}
	if err := d.Remove(user); err != nil {
		return err
	}
	d.users.Style &^= yaml.FlowStyle
	put(d.users, user, settings)
	d.users.Content[len(d.users.Content)-2].HeadComment = name.HeadComment
	d.users.Content[len(d.users.Content)-2].LineComment = name.LineComment
	return nil
}

// maxNodes limits the depth of expanded aliases.
const maxNodes = 50

// expanded returns a copy of a node in which aliases are replaced by what they refer to.
func expanded(n *yaml.Node, depth int) (*yaml.Node, error) {
	if depth > maxNodes {
		return nil, errors.New("it is nested too deeply, or an alias contains itself")
	}
	if n.Kind == yaml.AliasNode {
		return expanded(n.Alias, depth+1)
	}
	next := *n
	next.Anchor, next.Content = "", make([]*yaml.Node, len(n.Content))
	for i, inner := range n.Content {
		var err error
		if next.Content[i], err = expanded(inner, depth+1); err != nil {
			return nil, err
		}
	}
	return &next, nil
}

// Homonyms returns the users of other tenants in the shared state who could log in with the same name as a user.
// Their settings are empty.
func Homonyms(ctx context.Context, s *state.Store, tenant, user string) (found map[string][]string, err error) {
	wanted := map[string]string{} // by the last part of the names of items
	for _, name := range []string{user, user + "@" + tenant} {
		wanted[strings.TrimPrefix(itemName("", name), TenantPrefix(""))] = name
	}
	plain, other := user, ""
	if at := strings.LastIndexByte(user, '@'); at >= 0 {
		plain, other = user[:at], user[at+1:]
	}
	items, err := s.List(ctx, ItemsPrefix)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	found = map[string][]string{}
	for _, item := range items {
		of, encoded, _ := strings.Cut(strings.TrimPrefix(item, ItemsPrefix), "/")
		name, same := wanted[encoded]
		if of == other && item == itemName(other, plain) {
			name, same = plain, true
		}
		if of == tenant || !same {
			continue
		}
		value, err := s.Read(ctx, item)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		if _, ok := ParseItem(item, value); ok {
			found[of] = append(found[of], name)
		}
	}
	return found, nil
}
