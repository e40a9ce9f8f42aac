package usersfile

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// Users are the users of a tenant, imported from another server.
type Users struct {
	// Warnings has a line for each comment in the YAML.
	Warnings []string

	strip    string   // prefix of home directories on the other server, which becomes the root of the tenant
	comments []string // at the beginning of the file
	users    map[string]*user
}

// A user is an imported user, with the settings in the form of the configuration.
type user struct {
	name             string
	hash, home, root string
	disabled         bool
	comments         []string // why the user is disabled, and what was not imported
	expires          string
	limits           limits
	permissions      []config.Permission // nil for all
	paths            map[string][]config.Permission
	files            files
	overwrite        config.Overwrite
	mustChange       bool
	quota            int64 // bytes, 0 for no limit
}

// Prefixes of the comments above a user.
const (
	disabledComment = "disabled: " // removed by [Document.WithoutReason]
	noteComment     = "note: "
)

func newUsers(strip string) *Users {
	return &Users{strip: path.Clean("/" + strip), users: map[string]*user{}}
}

// note adds a comment about a setting that was not imported or was changed.
func (u *user) note(format string, args ...any) {
	u.comments = append(u.comments, noteComment+printable(fmt.Sprintf(format, args...)))
}

// disable disables the user and adds a comment with the reason.
func (u *user) disable(format string, args ...any) {
	u.disabled = true
	u.comments = append(u.comments, disabledComment+printable(fmt.Sprintf(format, args...)))
}

// note adds a comment at the beginning of the file, once.
func (us *Users) note(format string, args ...any) {
	text := printable(fmt.Sprintf(format, args...))
	if !slices.Contains(us.comments, text) {
		us.comments = append(us.comments, text)
		us.Warnings = append(us.Warnings, text)
	}
}

// add adds a user, or a comment with the reason why the user is left out.
func (us *Users) add(u *user) {
	u.checkHash()
	name := config.NormalizeUser(u.name)
	earlier := us.users[name]
	switch {
	case u.name == "":
		us.note("left out: a user without a name, with the home directory %q", u.root)
	case !utf8.ValidString(u.name), strings.ContainsFunc(u.name, unicode.IsControl):
		us.note("left out: user %q: the name is not UTF-8, or has control characters", u.name)
	case earlier != nil:
		earlier.note("another user %q, with the home directory %q, is left out: names must differ", u.name, u.root)
		us.warn(earlier, earlier.comments[len(earlier.comments)-1])
	case !path.IsAbs(u.root) || strings.ContainsFunc(u.root, unicode.IsControl):
		us.note(
			"left out: user %q: the home directory %q is not an absolute pathname: write a user with a root by hand", u.name,
			u.root)
	case u.permissions != nil && len(u.permissions) == 0 && len(u.paths) == 0:
		us.note("left out: user %q: none of the user's permissions exist in babelftp", u.name)
	case u.problem() != "":
		us.note("left out: user %q: %s", u.name, u.problem())
	default:
		us.users[name] = u
		for _, comment := range u.comments {
			us.warn(u, comment)
		}
	}
}

// warn adds a comment of a user to the warnings.
func (us *Users) warn(u *user, comment string) {
	us.Warnings = append(us.Warnings, fmt.Sprintf("user %q: %s", u.name, strings.TrimPrefix(comment, noteComment)))
}

// checkHash removes a password hash that the server does not support, and disables the user.
func (u *user) checkHash() {
	const anew = "set a new password with `babelftp users passwd`, and enable the user"
	hash := u.hash
	problem := passwordhash.Problem(hash)
	if problem == "" {
		return
	}
	u.hash = ""
	switch {
	case hash == "":
		u.disable("missing password hash: %s", anew)
	case strings.HasPrefix(hash, "!"), strings.HasPrefix(hash, "*"):
		u.disable("the user is locked on the other server: %s", anew)
	case hash == shadowed:
		u.disable("the password hash is in /etc/shadow: copy it from there to password_hash, and enable the user")
	case !strings.HasPrefix(hash, "$"):
		u.disable("the password is not a hash of argon2id, yescrypt, bcrypt, SHA-512 crypt or SHA-256 crypt: %s", anew)
	default:
		u.disable("the password hash cannot be used, because it %s: %s", problem, anew)
	}
}

// problem returns the reason why a configuration would reject the settings of the user, or an empty string.
func (u *user) problem() string {
	text, err := encode(map[string]userYAML{usersKey: u.yaml()})
	if err != nil {
		return err.Error()
	}
	var decoded struct {
		User config.User `yaml:"users"`
	}
	positions, problems := yamlconf.Loader{NoFiles: true}.Decode("", text, &decoded)
	if positions != nil {
		decoded.User.PasswordHash, decoded.User.Overwrite = value.Secret{}, "" // Validate would reject them
		decoded.User.MustChangePassword = false
		problems = append(problems, decoded.User.Validate(yamlconf.Path{usersKey}, positions)...)
	}
	if len(problems) == 0 {
		return ""
	}
	return strings.TrimPrefix(problems[0].Path, usersKey+".") + ": " + problems[0].Message
}

// rootOf returns the root of a user with the home directory dir on the other server.
func (us *Users) rootOf(u *user, dir string) string {
	if !path.IsAbs(dir) {
		return dir
	}
	dir = path.Clean(dir)
	if rest, ok := strings.CutPrefix(dir+"/", strings.TrimSuffix(us.strip, "/")+"/"); ok {
		return path.Clean("/" + rest)
	}
	u.note("the home directory %s is not below %s: root is the full path", dir, us.strip)
	return dir
}

// Count returns the number of imported users.
func (us *Users) Count() int { return len(us.users) }

// YAML returns the content of a users_file.
func (us *Users) YAML() ([]byte, error) {
	var file struct {
		Users map[string]userYAML `yaml:"users"`
	}
	file.Users = make(map[string]userYAML, len(us.users))
	for _, u := range us.users {
		file.Users[u.name] = u.yaml()
	}
	text, err := encode(file)
	if err != nil {
		return nil, fmt.Errorf("write users: %w", err)
	}
	var document yaml.Node
	if err := yaml.Load(text, &document); err != nil {
		return nil, fmt.Errorf("write users: %w", err)
	}
	us.explain(document.Content[0])
	if text, err = encode(&document); err != nil {
		return nil, fmt.Errorf("write users: %w", err)
	}
	return text, nil
}

func encode(v any) ([]byte, error) {
	return yaml.Dump(v, yaml.WithIndent(2), yaml.WithCompactSeqIndent(false), yaml.WithLineWidth(-1),
		yaml.WithQuotePreference(yaml.QuoteDouble))
}

// explain adds the comments at the beginning of the file and above each user.
func (us *Users) explain(top *yaml.Node) {
	comment := func(lines []string) string {
		if len(lines) == 0 {
			return ""
		}
		return "# " + strings.Join(lines, "\n# ")
	}
	top.Content[0].HeadComment = comment(us.comments)
	users := top.Content[1]
	for i := 0; i+1 < len(users.Content); i += 2 {
		users.Content[i].HeadComment = comment(us.users[config.NormalizeUser(users.Content[i].Value)].comments)
	}
}

// printable escapes control characters and line breaks for a comment.
func printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// lines calls each for the lines of a file that are neither blank nor comments. Errors get the line number.
func lines(text []byte, each func(line string) error) error {
	number := 0
	for line := range bytes.Lines(text) {
		number++
		line := strings.TrimRight(string(line), "\r\n")
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := each(line); err != nil {
			return fmt.Errorf("line %d %w", number, err)
		}
	}
	return nil
}

// A userYAML is the YAML form of a user.
type userYAML struct {
	Hash        string                         `yaml:"password_hash,omitempty"`
	MustChange  bool                           `yaml:"must_change_password,omitempty"`
	Disabled    bool                           `yaml:"disabled,omitempty"`
	Expires     string                         `yaml:"expires,omitempty"`
	Root        string                         `yaml:"root,omitempty"`
	Home        string                         `yaml:"home,omitempty"`
	Permissions *[]config.Permission           `yaml:"permissions,omitempty"`
	Paths       map[string][]config.Permission `yaml:"path_permissions,omitempty"`
	Files       files                          `yaml:"files,omitempty"`
	Overwrite   config.Overwrite               `yaml:"overwrite,omitempty"`
	Quota       string                         `yaml:"quota,omitempty"`
	Limits      limits                         `yaml:"limits,omitempty"`
}

func (u *user) yaml() userYAML {
	y := userYAML{Hash: u.hash, Root: u.root, Home: u.home, Paths: u.paths, Files: u.files, Overwrite: u.overwrite,
		Quota: size(u.quota), Disabled: u.disabled, Expires: u.expires, Limits: u.limits}
	y.MustChange = u.mustChange && u.hash != ""
	if y.Root == "/" {
		y.Root = ""
	}
	if y.Home == "/" {
		y.Home = ""
	}
	if u.permissions != nil {
		y.Permissions = &u.permissions
	}
	return y
}
