package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
	"github.com/babelftp/babelftp/internal/server"
	"github.com/babelftp/babelftp/internal/storage/state"
	"github.com/babelftp/babelftp/internal/users/usersfile"
)

// howToEdit ends the description of a command that changes users.
const howToEdit = "USER has the form alice@acme, or alice if there is only one tenant. The command changes the users_file of the " +
	"tenant, preserves its comments, mode and\n" +
	"owner, and writes nothing if `babelftp check` would reject the result. With users_store: state, it changes the user in the " +
	"shared state. A running server uses the\n" +
	"change within a second, and other replicas use a change in the shared state within two seconds."

// An account is a user in the store of a tenant.
type account struct {
	ctx                  context.Context
	config, tenant, user string
	store                *usersfile.Store
	place                usersfile.Place // of the user
	state                *state.Store    // nil without users_store
	warn                 io.Writer
}

// String returns the user in the form USER@TENANT.
func (a account) String() string { return userOf(a.user, a.tenant) }

// findAccount finds the user in the store of the tenant. If add is set, the user must not exist, and inFile chooses the
// file if users_file is a directory.
func findAccount(cmd *cobra.Command, configFile, name string, add bool, inFile string) (account, error) {
	if configFile == "" {
		return account{}, errNoConfig(cmd)
	}
	if !utf8.ValidString(name) {
		return account{}, newUsageError(cmd, "the user %q is not UTF-8", name)
	}
	tenants, err := config.TenantPlaces(configFile, os.Environ())
	if err != nil {
		return account{}, err
	}
	a := account{ctx: cmd.Context(), config: configFile, user: name, warn: cmd.ErrOrStderr()}
	if at := strings.LastIndexByte(name, '@'); at >= 0 {
		if tenants[name[at+1:]] != nil {
			a.user, a.tenant = name[:at], name[at+1:]
		}
	}
	names := slices.Sorted(maps.Keys(tenants))
	switch {
	case a.tenant != "":
	case len(names) == 1:
		a.tenant = names[0]
	default:
		return account{}, newUsageError(cmd, "missing tenant in %q: want USER@TENANT, with one of %s", name,
			strings.Join(names, ", "))
	}
	place := tenants[a.tenant]
	switch {
	case place.UsersStore != "":
		err = a.findInState(place, add, inFile)
		return a, err
	case place.UsersFile == "":
		return account{}, a.noUsersFile(place)
	}
	if err := placed(place); err != nil {
		return account{}, err
	}
	a.place = usersfile.Place{Kind: usersfile.InFile}
	a.place.Name, err = a.choose(place, add, inFile)
	a.store = usersfile.NewStore(usersfile.Options{
		Tenant: a.tenant, UsersFile: place.UsersFile, NewIn: a.place.Name, Check: a.check,
	})
	return a, err
}

// placed returns an error if users_file would be read as a tenant.
func placed(place *config.TenantPlace) error {
	if !place.Misplaced {
		return nil
	}
	return fmt.Errorf("users_file %s is in tenants_dir, which reads it as a tenant: set `users_file: %s` in %s",
		place.UsersFile, place.Free, place.File)
}

// findInState is like findAccount, for a tenant with users in the shared state.
func (a *account) findInState(place *config.TenantPlace, add bool, inFile string) error {
	if err := a.openState(place, inFile); err != nil {
		return err
	}
	_, at, err := a.store.Read(a.ctx, a.user)
	switch missing := errors.Is(err, usersfile.ErrNotFound); {
	case err != nil && !missing:
		return err
	case !missing && add:
		return a.alreadyExists(at.Name)
	case !missing:
		a.place = at
		return nil
	}
	if set := place.Users[config.NormalizeUser(a.user)]; set != "" {
		return fmt.Errorf("user %s is set in %s: change the user there, or remove it there first", a, set)
	}
	if !add {
		return fmt.Errorf("user %s not found in %s: see babelftp users list", a, a.state)
	}
	a.place, err = a.store.PlaceOfNew(a.user)
	return err
}

// openState opens the store of a tenant with users in the shared state.
func (a *account) openState(place *config.TenantPlace, inFile string) error {
	cfg, err := config.Load(a.config, os.Environ())
	if err != nil {
		return err
	}
	if a.state, err = server.OpenState(a.ctx, cfg); err != nil {
		return err
	}
	if err := placed(place); err != nil {
		return err
	}
	o := usersfile.Options{Tenant: a.tenant, UsersFile: place.UsersFile, State: a.state}
	if inFile != "" {
		if o.NewIn, err = a.newFile(place.UsersFile, inFile); err != nil {
			return err
		}
	}
	o.Check = func(user string, in usersfile.Place, text []byte) error {
		if in.Kind == usersfile.InState {
			return a.checkItem(cfg, user, in, text)
		}
		return a.check(user, in, text)
	}
	a.store = usersfile.NewStore(o)
	return nil
}

// checkItem returns an error if the configuration would be invalid with this user in the shared state.
func (a account) checkItem(cfg *config.Config, name string, in usersfile.Place, text []byte) error {
	u, err := config.ParseUser(in.Name, text, name, false)
	if err == nil && u == nil {
		return nil // removed
	}
	var others map[string][]string
	if err == nil {
		others, err = usersfile.Homonyms(a.ctx, a.state, a.tenant, name)
		if err != nil {
			return err
		}
		users := config.StoredUsers{}
		for tenant, names := range others {
			users[tenant] = map[string]*config.User{}
			for _, other := range names {
				users[tenant][other] = &config.User{Disabled: true}
			}
		}
		cfg, _ = cfg.MergeUsers(users, false, nil)
		err = cfg.CheckUser(a.tenant, name, u)
	}
	if err != nil {
		fmt.Fprintf(a.warn, "babelftp: %s not changed because the change would make the configuration invalid:\n", in)
	}
	return err
}

// noUsersFile returns the error for a tenant without users_file. It says where to set it.
func (a account) noUsersFile(place *config.TenantPlace) error {
	where, move := "below tenants."+a.tenant+" in "+place.File, ""
	if place.Own {
		where = "to " + place.File
	}
	if len(place.Users) > 0 {
		move = ", and move its users there"
	}
	advice := fmt.Sprintf("add `users_file: %s` %s%s", place.Free, where, move)
	if at := place.Users[config.NormalizeUser(a.user)]; at != "" {
		return fmt.Errorf("tenant %s has no users_file, and the user %s is set in %s: change the user there, or %s", a.tenant, a, at,
			advice)
	}
	return fmt.Errorf("tenant %s has no users_file: %s", a.tenant, advice)
}

func (a account) alreadyExists(in string) error {
	return fmt.Errorf("user %s already exists in %s: use babelftp users set, passwd, disable, enable or remove to change it", a, in)
}

// newFile returns the path of the file for a new user in the directory users_file.
func (a account) newFile(usersFile, inFile string) (string, error) {
	info, err := os.Stat(usersFile)
	switch {
	case err != nil || !info.IsDir():
		return "", fmt.Errorf("users_file %s is not a directory, so the server would not read %s: omit --file", usersFile, inFile)
	case !yamlconf.IsDocument(filepath.Base(inFile)):
		return "", fmt.Errorf("invalid --file %s: the server only reads files in %s that end in .yaml", inFile, usersFile)
	}
	return filepath.Join(usersFile, filepath.Base(inFile)), nil
}

// choose returns the file that has the user, or the file for a new user.
func (a account) choose(place *config.TenantPlace, add bool, inFile string) (string, error) {
	usersFile := place.UsersFile
	candidates, err := usersfile.Files(usersFile)
	if err == nil && inFile != "" {
		inFile, err = a.newFile(usersFile, inFile)
	}
	if err != nil {
		return "", err
	}
	if add && inFile != "" {
		candidates = append(candidates, inFile)
	}
	for _, file := range candidates {
		d, err := usersfile.Read(file)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			return "", err
		case d.Has(a.user) && add:
			return "", a.alreadyExists(file)
		case d.Has(a.user):
			return file, nil
		}
	}
	switch at := place.Users[config.NormalizeUser(a.user)]; {
	case at != "":
		return "", fmt.Errorf("user %s is set in %s: change the user there, or move it to %s", a, at, usersFile)
	case !add:
		return "", fmt.Errorf("user %s not found in %s: see babelftp users list", a, usersFile)
	case inFile != "":
		return inFile, nil
	case len(candidates) != 1:
		return "", fmt.Errorf("users_file %s is a directory with %d files: choose one with --file", usersFile, len(candidates))
	}
	return candidates[0], nil
}

// change changes the user if the resulting configuration is valid.
func (a account) change(change func(*usersfile.Document) error) error {
	err := a.store.Edit(a.ctx, a.user, change)
	if a.state != nil {
		a.state.Flush(a.ctx) // the process ends now
	}
	return err
}

// check returns an error if the configuration would be invalid with this text in a file. If it is already
// invalid without the change, the error only has the existing problems.
func (a account) check(_ string, in usersfile.Place, text []byte) error {
	file := in.Name
	_, err := config.LoadWith(a.config, os.Environ(), map[string][]byte{file: text})
	if err == nil {
		return nil
	}
	why := "the change would make the configuration invalid:"
	_, before := config.Load(a.config, os.Environ())
	wrong, _ := errors.AsType[config.Problems](err)
	already, _ := errors.AsType[config.Problems](before)
	already = slices.DeleteFunc(already, func(p *yamlconf.Problem) bool {
		return !slices.ContainsFunc(wrong, func(q *yamlconf.Problem) bool { // it may be in another line now
			return q.Source == p.Source && q.Path == p.Path && q.Message == p.Message
		})
	})
	if len(already) > 0 {
		why, err = "the configuration is already invalid; fix it first:", already
	}
	fmt.Fprintf(a.warn, "babelftp: %s not changed because %s\n", file, why)
	return err
}

// changeHash asks for a password with hash and passes its hash to change. It first tries the change with
// another hash, so that errors are reported before the user types a password.
func (a account) changeHash(hash func() (string, error), change func(d *usersfile.Document, hash string) error) error {
	example, err := passwordhash.New("example")
	if err != nil {
		return err
	}
	with := func(hash string) func(*usersfile.Document) error {
		return func(d *usersfile.Document) error { return change(d, hash) }
	}
	if err := a.store.DryRun(a.ctx, a.user, with(example)); err != nil {
		return err
	}
	text, err := hash()
	if err != nil {
		return err
	}
	return a.change(with(text))
}

const oneUser = "one USER, such as alice@acme"

// newUsersChange returns a command that changes one user. do returns a message about the change.
func newUsersChange(use, short, long, example string, do func(account) (string, error)) *cobra.Command {
	cmd := &cobra.Command{
		Use: use + " USER [--config FILE]", Short: short, Long: long + "\n\n" + howToEdit,
		Example: example, Args: exactly(1, oneUser),
	}
	file := addConfigFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a, err := findAccount(cmd, *file, args[0], false, "")
		if err != nil {
			return err
		}
		return runEdit(cmd, a, do)
	}
	return cmd
}

// runEdit calls do and prints its message.
func runEdit(cmd *cobra.Command, a account, do func(account) (string, error)) error {
	message, err := do(a)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), visible(message))
	return err
}

// addPasswordFlag adds --password-file. The returned function reads the password and hashes it.
func addPasswordFlag(cmd *cobra.Command) func() (hash string, err error) {
	file := cmd.Flags().String("password-file", "", "the `FILE` with the password")
	return func() (string, error) {
		password, err := passwordFrom(cmd, *file)
		if err != nil {
			return "", err
		}
		return passwordhash.New(password)
	}
}

func passwordFrom(cmd *cobra.Command, file string) (string, error) {
	if file == "" || file == "-" {
		return readPassword(cmd.InOrStdin(), cmd.ErrOrStderr())
	}
	return passwordInFile(file)
}

func newUsersAddCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add USER [--config FILE]",
		Short: "Add a user",
		Long: "Add a user. The command asks for the password on a terminal, twice, or reads it from standard input. " +
			"Without --root, the user sees the\n" +
			"whole tenant.\n\n" + howToEdit,
		Example: "  babelftp users add alice@acme --root /alice\n" +
			"  babelftp users add alice@acme --root /alice --expires 2027-01-31 --permissions list,read\n" +
			"  openssl rand -base64 18 | tee password | babelftp users add scanner@acme --root /scans --permissions write\n" +
			"  babelftp users add bob@acme --root /bob --disabled        # no password yet",
		Args: exactly(1, oneUser),
	}
	configFile := addConfigFlag(cmd)
	hash := addPasswordFlag(cmd)
	flags := cmd.Flags()
	root := flags.String("root", "", "the `DIRECTORY` of the tenant that the user sees as /")
	home := flags.String("home", "", "the `DIRECTORY` in which a session starts")
	permissions := flags.StringSlice("permissions", nil, "a `LIST` of permissions: list, read, write, delete, "+
		"rename, mkdir, password")
	quota := flags.String("quota", "", "the maximum `SIZE` of all files below root, such as 10GiB")
	expires := flags.String("expires", "", "the last `DATE` in UTC, such as 2027-01-31, or an RFC 3339 time")
	disabled := flags.Bool("disabled", false, "do not let the user log in; needs no password")
	mustChange := flags.Bool("must-change", false, mustChangeUsage)
	inFile := flags.String("file", "", "the `NAME` of the file, if users_file is a directory")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a, err := findAccount(cmd, *configFile, args[0], true, *inFile)
		if err != nil {
			return err
		}
		type setting struct {
			key   string
			value any
		}
		var settings []setting
		if *disabled {
			settings = append(settings, setting{"disabled", true})
		}
		if *mustChange {
			settings = append(settings, setting{"must_change_password", true})
		}
		settings = append(settings,
			setting{"expires", *expires}, setting{"root", *root}, setting{"home", *home}, setting{"quota", *quota})
		if flags.Changed("permissions") {
			settings = append(settings, setting{"permissions", *permissions})
		}
		add := func(d *usersfile.Document, hash string) error {
			if d.Has(a.user) {
				return fmt.Errorf("user %s already exists", a)
			}
			d.Add(a.user)
			for _, s := range append([]setting{{"password_hash", hash}}, settings...) {
				if s.value == "" {
					continue
				}
				if err := d.Set(a.user, s.value, s.key); err != nil {
					return err
				}
			}
			return nil
		}
		return runEdit(cmd, a, func(account) (string, error) {
			message := a.String() + " is added to " + a.place.Name
			if *disabled && !flags.Changed("password-file") {
				return message, a.change(func(d *usersfile.Document) error { return add(d, "") })
			}
			return message, a.changeHash(hash, add)
		})
	}
	return cmd
}

// mustChangeUsage describes --must-change.
const mustChangeUsage = "let the user do nothing but change the password (SITE PSWD); needs the permission password"

func newUsersPasswdCommand() *cobra.Command {
	var hash func() (string, error)
	var mustChange *bool
	cmd := newUsersChange("passwd", "Set the password of a user",
		"Set the password of a user. The command asks for it on a terminal, twice, or reads it from standard input. "+
			"The old\npassword is invalid at once; sessions continue. A disabled user stays disabled.",
		"  babelftp users passwd alice@acme\n"+
			"  openssl rand -base64 18 | tee password | babelftp users passwd alice@acme",
		func(a account) (string, error) {
			message := a.String() + " has a new password"
			disabled := false
			err := a.changeHash(hash, func(d *usersfile.Document, hash string) error {
				if file := d.Get(a.user, "password_hash_file"); file != "" {
					return fmt.Errorf("the password of %s is in %s (password_hash_file): replace its content by the output of `babelftp "+
						"hash-password`", a, file)
				}
				disabled = d.Get(a.user, "disabled") == "true"
				if *mustChange {
					if err := d.Set(a.user, true, "must_change_password"); err != nil {
						return err
					}
				}
				return d.Set(a.user, hash, "password_hash")
			})
			if disabled {
				message += ", and is still disabled: babelftp users enable " + a.String()
			}
			return message, err
		})
	hash = addPasswordFlag(cmd)
	mustChange = cmd.Flags().Bool("must-change", false, mustChangeUsage)
	return cmd
}

func newUsersDisableCommand() *cobra.Command {
	return newUsersChange("disable", "Disable a user",
		"Disable a user. A login with the right password gets 530 with the reason, and sessions of the user "+
			"end when the\nserver has read the file.",
		"  babelftp users disable alice@acme",
		func(a account) (string, error) {
			return a.String() + " is disabled", a.change(func(d *usersfile.Document) error {
				return d.Set(a.user, true, "disabled")
			})
		})
}

func newUsersEnableCommand() *cobra.Command {
	var expires *string
	cmd := newUsersChange("enable", "Enable a user",
		"Enable a user. The command removes the key disabled, and the reason that `babelftp users import` wrote "+
			"above the user.",
		"  babelftp users enable alice@acme --expires 2027-12-31\n"+
			"  babelftp users enable alice@acme --expires never",
		func(a account) (string, error) {
			return a.String() + " may log in", a.change(func(d *usersfile.Document) error {
				var until value.Expiry
				switch {
				case *expires == "never":
					if err := d.Unset(a.user, "expires"); err != nil {
						return err
					}
				case *expires != "":
					if err := d.Set(a.user, *expires, "expires"); err != nil {
						return err
					}
				}
				text := d.Get(a.user, "expires")
				if text != "" && until.UnmarshalText([]byte(text)) == nil && until.Passed(time.Now()) {
					return fmt.Errorf("%s expired on %s: set a later date with --expires, or use --expires never", a, text)
				}
				d.WithoutReason(a.user)
				return d.Unset(a.user, "disabled")
			})
		})
	expires = cmd.Flags().String("expires", "", "the new last `DATE` in UTC, an RFC 3339 time, or never")
	return cmd
}

func newUsersRemoveCommand() *cobra.Command {
	return newUsersChange("remove", "Remove a user",
		"Remove a user. Files in the bucket and open sessions of the user remain: use babelftp users disable "+
			"first to end the sessions.",
		"  babelftp users disable alice@acme && babelftp users remove alice@acme",
		func(a account) (string, error) {
			return a.String() + " is removed from " + a.place.Name, a.change(func(d *usersfile.Document) error {
				return d.Remove(a.user)
			})
		})
}
