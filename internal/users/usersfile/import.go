package usersfile

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"github.com/babelftp/babelftp/internal/base/passwordhash"
	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
)

// Users are the users of a tenant that another server had.
type Users struct {
	// Warnings say what was not carried over, a line each.
	Warnings []string

	strip string // the directory of the other server that is the root of the tenant
	users map[string]*user
}

type user struct {
	hash, home, root string
	closed           []string // why the user is disabled, nil if it is not
	expires          string
	limits           limits
	permissions      []config.Permission // nil for all
	paths            map[string][]config.Permission
	files            files
	overwrite        config.Overwrite
	quota            int64 // bytes, 0 for no limit
}

func newUsers(strip string) *Users {
	return &Users{strip: path.Clean("/" + strip), users: map[string]*user{}}
}

// warn adds a warning about a user.
func (us *Users) warn(name, format string, args ...any) {
	us.Warnings = append(us.Warnings, fmt.Sprintf("user %q: %s", name, fmt.Sprintf(format, args...)))
}

// disable makes a user one who may not log in, and says why.
func (us *Users) disable(name string, u *user, format string, args ...any) {
	why := fmt.Sprintf(format, args...)
	u.closed = append(u.closed, why)
	us.warn(name, "disabled: %s", why)
}

// add adds a user, unless something in it cannot be used.
func (us *Users) add(name string, u *user) {
	const anew = "set a new password with `babelftp users passwd`, and enable the user"
	problem := passwordhash.Problem(u.hash)
	switch {
	case strings.HasPrefix(u.hash, "$y$"), strings.HasPrefix(u.hash, "$gy$"):
		u.hash = ""
		us.disable(name, u, "the password hash is one of yescrypt, which this server cannot compare: %s", anew)
	case !strings.HasPrefix(u.hash, "$"):
		u.hash = ""
		us.disable(name, u, "there is no password hash, or the user is locked: %s", anew)
	case problem != "":
		u.hash = ""
		us.disable(name, u, "the password hash cannot be used, because it %s: %s", problem, anew)
	}
	switch {
	case us.users[name] != nil:
		us.warn(name, "left out: an earlier user has this name")
	case name == "" || strings.ContainsFunc(name, unicode.IsControl):
		us.warn(name, "left out: the name is empty or has control characters")
	case !path.IsAbs(u.root) || strings.ContainsFunc(u.root, unicode.IsControl):
		us.warn(
			name, "left out: the home directory %q is not an absolute pathname: write a user with a root by hand", u.root)
	case u.permissions != nil && len(u.permissions) == 0 && len(u.paths) == 0:
		us.warn(name, "left out: the user may do nothing that this server knows")
	default:
		us.users[name] = u
	}
}

// rootOf is the root of a user whose home directory on the other server is dir.
func (us *Users) rootOf(name, dir string) string {
	if !path.IsAbs(dir) {
		return dir
	}
	dir = path.Clean(dir)
	if rest, ok := strings.CutPrefix(dir+"/", strings.TrimSuffix(us.strip, "/")+"/"); ok {
		return path.Clean("/" + rest)
	}
	us.warn(name, "the home directory %s is not below %s: root is the whole pathname", dir, us.strip)
	return dir
}

// brokenPattern says which path is no pattern of a configuration, and why; it is empty where all are.
func (u *user) brokenPattern() string {
	for _, pattern := range slices.Sorted(maps.Keys(u.paths)) {
		if broken := value.PatternProblem(pattern); broken != "" {
			return pattern + " " + broken
		}
	}
	return ""
}

// Count is the number of users that can be carried over.
func (us *Users) Count() int { return len(us.users) }

// YAML is the key users of a tenant, which users_file can name.
func (us *Users) YAML() ([]byte, error) {
	var file struct {
		Users map[string]userYAML `yaml:"users"`
	}
	file.Users = make(map[string]userYAML, len(us.users))
	for name, u := range us.users {
		file.Users[name] = u.yaml()
	}
	text, err := encode(file)
	if err != nil {
		return nil, fmt.Errorf("write users: %w", err)
	}
	var document yaml.Node
	if err := yaml.Load(text, &document); err != nil {
		return nil, fmt.Errorf("write users: %w", err)
	}
	us.explain(document.Content[0].Content[1])
	if text, err = encode(&document); err != nil {
		return nil, fmt.Errorf("write users: %w", err)
	}
	return text, nil
}

func encode(v any) ([]byte, error) {
	return yaml.Dump(v, yaml.WithIndent(2), yaml.WithCompactSeqIndent(false), yaml.WithLineWidth(-1),
		yaml.WithQuotePreference(yaml.QuoteDouble))
}

// explain writes above each disabled user why.
func (us *Users) explain(users *yaml.Node) {
	for i := 0; i+1 < len(users.Content); i += 2 {
		if why := us.users[users.Content[i].Value].closed; why != nil {
			users.Content[i].HeadComment = "# disabled: " + strings.Join(why, "\n# disabled: ")
		}
	}
}

// lines calls each for the lines of a file that are neither empty nor comments. The error has the number of the line.
func lines(text []byte, each func(line string) error) error {
	number := 0
	for line := range bytes.Lines(text) {
		number++
		line := strings.TrimRight(string(line), "\r\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := each(line); err != nil {
			return fmt.Errorf("line %d %w", number, err)
		}
	}
	return nil
}

// userYAML is a user in the form of the configuration.
type userYAML struct {
	Hash        string                         `yaml:"password_hash,omitempty"`
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
		Quota: size(u.quota), Disabled: u.closed != nil, Expires: u.expires, Limits: u.limits}
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
