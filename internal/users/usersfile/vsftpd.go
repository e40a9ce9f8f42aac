package usersfile

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/babelftp/babelftp/internal/config"
)

// A VSFTPDConfig holds the settings of vsftpd for an import.
type VSFTPDConfig struct {
	All  []byte                                 // vsftpd.conf
	User func(dir, name string) ([]byte, error) // reads the file of a user in user_config_dir; may be nil
	Hash func(password string) (string, error)
}

// VSFTPD imports virtual users of vsftpd. raw has lines with a name and a password in turn, as for PAM's userdb, or
// lines of NAME:HASH, as htpasswd writes them for pam_pwdfile. local_root without the prefix strip becomes the root
// of a user. Passwords are hashed.
func VSFTPD(raw []byte, strip string, cfg VSFTPDConfig) (*Users, error) {
	text, err := readText(raw, htpasswdFile)
	if err != nil {
		return nil, err
	}
	all, err := readVSFTPD(cfg.All)
	if err != nil {
		return nil, fmt.Errorf("vsftpd.conf: %w", err)
	}
	read := readPairs
	if formatOf(text) == htpasswdFile {
		read = readHashes
	}
	found, err := read(text, cfg.Hash)
	if err != nil {
		return nil, err
	}
	users := newUsers(strip)
	if most := all["max_per_ip"]; most != "" && most != "0" {
		users.note("max_per_ip is a limit of the server: add limits: {address: {sessions: %s}} to its configuration", most)
	}
	if rest := serverSettings(all); len(rest) > 0 {
		users.note("settings of the server that are not imported: %s", strings.Join(rest, ", "))
	}
	for _, u := range found {
		own := map[string]string{}
		if cfg.User != nil && u.name != "" {
			file, err := cfg.User(all["user_config_dir"], u.name)
			if err == nil {
				own, err = readVSFTPD(file)
			}
			if err != nil {
				return nil, fmt.Errorf("user %q: %w", u.name, err)
			}
		}
		users.addVSFTPD(u, all, own)
	}
	return users, nil
}

// readPairs parses lines with a name and a password in turn.
func readPairs(text []byte, hash func(string) (string, error)) (found []*user, err error) {
	all := strings.Split(strings.TrimRight(string(text), "\r\n"), "\n")
	if len(all) == 1 && all[0] == "" {
		return nil, nil
	}
	for i, line := range all {
		line = strings.TrimSuffix(line, "\r")
		if i%2 == 1 {
			if line == "" {
				continue // a user without a password
			}
			if found[i/2].hash, err = hash(line); err != nil {
				return nil, err
			}
			continue
		}
		wrong := ""
		switch name, _, colon := strings.Cut(line, ":"); {
		case line == "":
			wrong = "is blank"
		case strings.HasPrefix(line, "#"):
			wrong = "is a comment"
		case colon:
			wrong = fmt.Sprintf("has a colon after %q", name) // do not show the rest, which may be a password
		case i == len(all)-1:
			wrong = "is the last one and has no password after it"
		default:
			found = append(found, &user{name: line})
			continue
		}
		return nil, fmt.Errorf("line %d %s: write names and passwords on alternate lines, or NAME:HASH on each line",
			i+1, wrong)
	}
	return found, nil
}

// readHashes parses lines of NAME:HASH with optional further fields.
func readHashes(text []byte, _ func(string) (string, error)) (found []*user, err error) {
	return found, lines(text, func(line string) error {
		fields := strings.Split(line, ":")
		if len(fields) < htpasswdFields {
			return errors.New("has no colon: write NAME:HASH on each line")
		}
		u := &user{name: fields[0], hash: fields[1]}
		if rest := strings.Join(fields[htpasswdFields:], ":"); strings.Trim(rest, ":") != "" {
			u.note("what follows the password hash is not imported: %q", rest)
		}
		found = append(found, u)
		return nil
	})
}

// readVSFTPD parses a vsftpd.conf.
func readVSFTPD(raw []byte) (map[string]string, error) {
	text, err := readText(raw, vsftpdSettings)
	if err != nil {
		return nil, err
	}
	settings := map[string]string{}
	return settings, lines(text, func(line string) error {
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return errors.New("is not KEY=VALUE")
		}
		settings[strings.TrimSpace(key)] = strings.TrimSpace(value)
		return nil
	})
}

// A vsftpdKind says how a setting of vsftpd is handled.
type vsftpdKind int

const (
	vsftpdUnknown   vsftpdKind = iota // a server setting in vsftpd.conf; in the file of a user, disables the user
	vsftpdImported                    // read by addVSFTPD
	vsftpdRestricts                   // disables users
	vsftpdLost                        // does not restrict users
)

func vsftpdKindOf(key string) vsftpdKind {
	switch key {
	case "local_root", "user_sub_token", "virtual_use_local_privs", "write_enable", "anon_upload_enable",
		"anon_mkdir_write_enable", "anon_other_write_enable", "download_enable", "dirlist_enable", "local_max_rate",
		"anon_max_rate", "max_per_ip", "user_config_dir",
		// confine virtual users to a directory, like root
		"guest_enable", "guest_username", "local_enable", "chroot_local_user", "allow_writeable_chroot",
		"passwd_chroot_enable":
		return vsftpdImported
	case "cmds_allowed", "cmds_denied", "deny_file", "hide_file", "force_dot_files", "userlist_file", "tcp_wrappers",
		"secure_email_list_enable", "banned_email_file":
		return vsftpdRestricts
	case "local_umask", "anon_umask", "file_open_mode", "idle_session_timeout", "data_connection_timeout", "banner_file",
		"ftpd_banner", "dirmessage_enable", "anon_world_readable_only", "use_localtime", "chroot_list_enable":
		return vsftpdLost
	}
	return vsftpdUnknown
}

// serverSettings returns the settings in vsftpd.conf that are not imported and do not restrict users.
func serverSettings(all map[string]string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(key string) bool {
		kind := vsftpdKindOf(key)
		return kind == vsftpdImported || kind == vsftpdRestricts
	})
}

// vsftpdAdvice returns the setting to use instead, or an empty string.
func vsftpdAdvice(key string) string {
	switch key {
	case "cmds_allowed", "cmds_denied":
		return ": write permissions"
	case "deny_file":
		return ": write files.deny, which refuses to store files"
	}
	return ""
}

func (us *Users) addVSFTPD(u *user, all, own map[string]string) {
	settings := maps.Clone(all)
	maps.Copy(settings, own)
	dir := settings["local_root"]
	if token := settings["user_sub_token"]; token != "" {
		dir = strings.ReplaceAll(dir, token, u.name)
	}
	if dir == "" {
		us.note("left out: user %q: missing local_root: add it to vsftpd.conf, or write the user by hand", u.name)
		return
	}
	u.root = us.rootOf(u, dir)
	u.setVSFTPDPermissions(settings)
	first, second := settings["anon_max_rate"], settings["local_max_rate"]
	if isYes(settings, "virtual_use_local_privs", false) {
		first, second = second, first
	}
	for _, text := range []string{first, second} {
		n, err := strconv.ParseInt(cmp.Or(text, "0"), 10, 64)
		if err != nil || n < 0 {
			u.disable("the rate %q is not a number", text)
		} else if u.limits.UploadRate == "" {
			u.limits.UploadRate, u.limits.DownloadRate = size(n), size(n)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		_, isOwn := own[key]
		off := slices.Contains([]string{"", "NO", "FALSE", "0"}, strings.ToUpper(settings[key]))
		switch kind := vsftpdKindOf(key); {
		case kind == vsftpdRestricts && !off, kind == vsftpdUnknown && isOwn:
			u.disable("%s=%s cannot be imported%s", key, settings[key], vsftpdAdvice(key))
		case kind == vsftpdLost && isOwn:
			u.note("%s=%s is not imported", key, settings[key])
		}
	}
	us.add(u)
}

// isYes reports whether a setting is on. absent is the default.
func isYes(settings map[string]string, key string, absent bool) bool {
	given, ok := settings[key]
	if !ok {
		return absent
	}
	return slices.Contains([]string{"YES", "TRUE", "1"}, strings.ToUpper(given))
}

// setVSFTPDPermissions sets the permissions of the user.
func (u *user) setVSFTPDPermissions(settings map[string]string) {
	yes := func(key string, absent bool) bool { return isYes(settings, key, absent) }
	local, writes := yes("virtual_use_local_privs", false), yes("write_enable", false)
	other := writes && (local || yes("anon_other_write_enable", false))
	upload := writes && (local || yes("anon_upload_enable", false))
	u.permissions = []config.Permission{}
	for _, p := range []struct {
		given bool
		is    config.Permission
	}{
		{yes("dirlist_enable", true), config.List}, {yes("download_enable", true), config.Read}, {upload, config.Write},
		{other, config.Delete}, {other, config.Rename},
		{writes && (local || yes("anon_mkdir_write_enable", false)), config.Mkdir},
	} {
		if p.given {
			u.permissions = append(u.permissions, p.is)
		}
	}
	if len(u.permissions) == len(config.FilePermissions()) {
		u.permissions = nil
	}
	if upload && !other {
		u.overwrite = config.DenyOverwrite
	}
}
