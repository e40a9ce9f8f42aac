package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
	"github.com/babelftp/babelftp/internal/users/usersfile"
)

// howToEdit ends the description of a command that changes a users_file.
const howToEdit = "USER is like alice@acme, or alice where there is one tenant. The command changes the users_file of the " +
	"tenant, keeps its comments, mode and\n" +
	"owner, and writes nothing if `babelftp check` would refuse the result. A running server reads the file within a second."

// An account is a user in a users_file.
type account struct {
	config, tenant, user string
	file                 string // with the user
	warn                 io.Writer
}

// String is the user as USER takes it.
func (a account) String() string { return userOf(a.user, a.tenant) }

// findAccount finds the users_file of a user, where a new one is to be added if add is set. inFile chooses a file of a
// folder for that.
func findAccount(cmd *cobra.Command, configFile, who string, add bool, inFile string) (account, error) {
	if configFile == "" {
		return account{}, errNoConfig(cmd)
	}
	files, err := config.UsersFiles(configFile, os.Environ())
	if err != nil {
		return account{}, err
	}
	a := account{config: configFile, user: who, warn: cmd.ErrOrStderr()}
	if at := strings.LastIndexByte(who, '@'); at >= 0 {
		if _, known := files[who[at+1:]]; known {
			a.user, a.tenant = who[:at], who[at+1:]
		}
	}
	tenants := slices.Sorted(maps.Keys(files))
	switch {
	case a.tenant != "":
	case len(tenants) == 1:
		a.tenant = tenants[0]
	default:
		return account{}, newUsageError(cmd, "%q names no tenant: write USER@TENANT, with one of %s", who,
			strings.Join(tenants, ", "))
	}
	if files[a.tenant] == "" {
		return account{}, fmt.Errorf("the tenant %s has no users_file: write users_file: users.yaml below tenants.%[1]s in "+
			"%s, and move the users there", a.tenant, configFile)
	}
	a.file, err = a.choose(files[a.tenant], add, inFile)
	return a, err
}

// choose is the file of the user, or that for a new one. users_file may be a folder.
func (a account) choose(usersFile string, add bool, inFile string) (string, error) {
	candidates, isFolder, err := documentsOf(usersFile)
	if err != nil {
		return "", err
	}
	if isFolder {
		if inFile != "" && !yamlconf.IsDocument(filepath.Base(inFile)) {
			return "", fmt.Errorf("the server reads no file of the name %s in %s: name one that ends in .yaml by --file",
				inFile, usersFile)
		}
		if add && inFile != "" {
			candidates = append(candidates, filepath.Join(usersFile, filepath.Base(inFile)))
		}
	} else if inFile != "" {
		return "", fmt.Errorf("users_file %s is no folder, and the server would not read %s: leave out --file", usersFile,
			inFile)
	}
	for _, file := range candidates {
		d, err := readUsersFile(file)
		switch {
		case errors.Is(err, os.ErrNotExist):
		case err != nil:
			return "", err
		case d.Has(a.user) && add:
			return "", fmt.Errorf("%s is in %s already: babelftp users passwd, disable, enable and remove change a user", a,
				file)
		case d.Has(a.user):
			return file, nil
		}
	}
	switch {
	case !add:
		return "", fmt.Errorf("there is no user %s in %s: babelftp users list shows who there is. A user in %s itself is "+
			"changed there", a, usersFile, a.config)
	case inFile != "":
		return filepath.Join(filepath.Dir(candidates[len(candidates)-1]), filepath.Base(inFile)), nil
	case len(candidates) != 1:
		return "", fmt.Errorf("users_file %s is a folder of %d files: name one by --file", usersFile, len(candidates))
	}
	return candidates[0], nil
}

// documentsOf are the files of a users_file, and whether it is a folder of them.
func documentsOf(usersFile string) (files []string, isFolder bool, err error) {
	if info, err := os.Stat(usersFile); err != nil || !info.IsDir() {
		return []string{usersFile}, false, nil
	}
	entries, err := os.ReadDir(usersFile)
	for _, e := range entries {
		if yamlconf.IsDocument(e.Name()) {
			files = append(files, filepath.Join(usersFile, e.Name()))
		}
	}
	return files, true, err
}

// readUsersFile reads one of these files.
func readUsersFile(name string) (*usersfile.Document, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, yamlconf.WithoutPath(err))
	}
	d, err := usersfile.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return d, nil
}

// change changes the file, if the configuration is good with the result.
func (a account) change(change func(*usersfile.Document) error) error {
	return usersfile.Change(a.file, change, a.check)
}

// check returns an error if the configuration would be wrong with the text in a file. It returns only what is wrong
// without it, if there is such: no change of a user is at fault then.
func (a account) check(file string, text []byte) error {
	_, err := config.LoadWith(a.config, os.Environ(), map[string][]byte{file: text})
	if err == nil {
		return nil
	}
	why := "with the change the configuration would be wrong:"
	_, before := config.Load(a.config, os.Environ())
	wrong, _ := errors.AsType[config.Problems](err)
	already, _ := errors.AsType[config.Problems](before)
	already = slices.DeleteFunc(already, func(p *yamlconf.Problem) bool {
		return !slices.ContainsFunc(wrong, func(q *yamlconf.Problem) bool { // elsewhere in the file, perhaps
			return q.Source == p.Source && q.Path == p.Path && q.Message == p.Message
		})
	})
	if len(already) > 0 {
		why, err = "the configuration is wrong without the change too: correct it first:", already
	}
	fmt.Fprintf(a.warn, "babelftp: %s stays as it is, because %s\n", file, why)
	return err
}

// changeHash is change with the hash of a password. It refuses what is wrong without the password before hash asks for
// it.
func (a account) changeHash(hash func() (string, error), change func(d *usersfile.Document, hash string) error) error {
	example, err := passwordhash.New("example")
	if err != nil {
		return err
	}
	with := func(hash string) func(*usersfile.Document) error {
		return func(d *usersfile.Document) error { return change(d, hash) }
	}
	if err := usersfile.Try(a.file, with(example), a.check); err != nil {
		return err
	}
	text, err := hash()
	if err != nil {
		return err
	}
	return a.change(with(text))
}

const oneUser = "write one USER, like alice@acme"

// newUsersChange makes a command that changes one user. do returns what has happened.
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
		return tell(cmd, a, do)
	}
	return cmd
}

// tell does something with a user, and says what has happened.
func tell(cmd *cobra.Command, a account, do func(account) (string, error)) error {
	happened, err := do(a)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), visible(happened))
	return err
}

// addPasswordFlag adds --password-file, and returns what reads the password and hashes it.
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
		Short: "Add a user to a users_file",
		Long: "Add a user to a users_file. The password is asked for twice on a terminal, or read from standard input. " +
			"Without --root the user sees the\n" +
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
	permissions := flags.StringSlice("permissions", nil, "what the user may do, a `LIST` of list, read, write, delete, "+
		"rename, mkdir")
	quota := flags.String("quota", "", "the most that may be stored below root, a `SIZE` like 10GiB")
	expires := flags.String("expires", "", "the last `DATE` in UTC, like 2027-01-31, or a time of RFC 3339")
	disabled := flags.Bool("disabled", false, "the user may not log in; asks for no password")
	inFile := flags.String("file", "", "the `NAME` of a file, where users_file is a folder of several")
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
		settings = append(settings,
			setting{"expires", *expires}, setting{"root", *root}, setting{"home", *home}, setting{"quota", *quota})
		if flags.Changed("permissions") {
			settings = append(settings, setting{"permissions", *permissions})
		}
		add := func(d *usersfile.Document, hash string) error {
			if d.Has(a.user) {
				return fmt.Errorf("%s is there already", a)
			}
			d.Add(a.user)
			for _, s := range append([]setting{{"password_hash", hash}}, settings...) {
				if s.value == "" {
					continue
				}
				if err := d.Set(a.user, s.key, s.value); err != nil {
					return err
				}
			}
			return nil
		}
		return tell(cmd, a, func(account) (string, error) {
			happened := a.String() + " is added to " + a.file
			if *disabled && !flags.Changed("password-file") {
				return happened, a.change(func(d *usersfile.Document) error { return add(d, "") })
			}
			return happened, a.changeHash(hash, add)
		})
	}
	return cmd
}

func newUsersPasswdCommand() *cobra.Command {
	var hash func() (string, error)
	cmd := newUsersChange("passwd", "Set the password of a user in a users_file",
		"Set the password of a user in a users_file. It is asked for twice on a terminal, or read from standard input. "+
			"The old one is wrong at once;\nsessions go on. A disabled user stays disabled.",
		"  babelftp users passwd alice@acme\n"+
			"  openssl rand -base64 18 | tee password | babelftp users passwd alice@acme",
		func(a account) (string, error) {
			happened := a.String() + " has a new password"
			disabled := false
			err := a.changeHash(hash, func(d *usersfile.Document, hash string) error {
				if file := d.Get(a.user, "password_hash_file"); file != "" {
					return fmt.Errorf("the password of %s is in %s (password_hash_file): write there what `babelftp "+
						"hash-password` prints", a, file)
				}
				disabled = d.Get(a.user, "disabled") == "true"
				return d.Set(a.user, "password_hash", hash)
			})
			if disabled {
				happened += ", and is still disabled: babelftp users enable " + a.String()
			}
			return happened, err
		})
	hash = addPasswordFlag(cmd)
	return cmd
}

func newUsersDisableCommand() *cobra.Command {
	return newUsersChange("disable", "Let a user in a users_file no longer log in",
		"Let a user in a users_file no longer log in. The right password gets 530 with the reason, and sessions of the user "+
			"end when the server\nhas read the file.",
		"  babelftp users disable alice@acme",
		func(a account) (string, error) {
			return a.String() + " is disabled", a.change(func(d *usersfile.Document) error {
				return d.Set(a.user, "disabled", true)
			})
		})
}

func newUsersEnableCommand() *cobra.Command {
	var expires *string
	cmd := newUsersChange("enable", "Let a user in a users_file log in again",
		"Let a user in a users_file log in again: the key disabled goes, and the reason that `babelftp users import` wrote "+
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
					if err := d.Set(a.user, "expires", *expires); err != nil {
						return err
					}
				}
				text := d.Get(a.user, "expires")
				if text != "" && until.UnmarshalText([]byte(text)) == nil && until.Passed(time.Now()) {
					return fmt.Errorf("%s expired on %s: write a later date by --expires, or --expires never", a, text)
				}
				d.WithoutReason(a.user)
				return d.Unset(a.user, "disabled")
			})
		})
	expires = cmd.Flags().String("expires", "", "the new last `DATE` in UTC, a time of RFC 3339, or never")
	return cmd
}

func newUsersRemoveCommand() *cobra.Command {
	return newUsersChange("remove", "Remove a user from a users_file",
		"Remove a user from a users_file. Files in the bucket stay, and so do sessions of the user: babelftp users disable "+
			"ends them first.",
		"  babelftp users disable alice@acme && babelftp users remove alice@acme",
		func(a account) (string, error) {
			return a.String() + " is removed from " + a.file, a.change(func(d *usersfile.Document) error {
				d.Remove(a.user)
				return nil
			})
		})
}
