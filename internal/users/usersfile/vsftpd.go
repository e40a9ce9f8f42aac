package usersfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/babelftp/babelftp/internal/config"
)

// A VSFTPDConfig is the settings of vsftpd: those of all users, and those that a user has in a file of user_config_dir.
type VSFTPDConfig struct {
	All  []byte                                 // vsftpd.conf
	User func(dir, name string) ([]byte, error) // the file of a user in user_config_dir, nil without one
	Hash func(password string) (string, error)  // of a password
}

var (
	errBerkeleyDB = errors.New("this is a Berkeley DB, which PAM's userdb reads: give the text file that db_load has made " +
		"it from, or the lines that `db_dump -p` prints of it, a name and a password in turn")
	errOddLines = errors.New("the last name has no password: write names and passwords in turn, a line each")
)

// VSFTPD reads the virtual users of vsftpd: lines of names and passwords in turn. local_root, without strip at its
// beginning, becomes the root. The passwords become hashes.
func VSFTPD(text []byte, strip string, cfg VSFTPDConfig) (*Users, error) {
	if bytes.IndexByte(text, 0) >= 0 {
		return nil, errBerkeleyDB
	}
	all, err := readVSFTPD(cfg.All)
	if err != nil {
		return nil, fmt.Errorf("vsftpd.conf: %w", err)
	}
	var found []string
	for line := range bytes.Lines(text) {
		found = append(found, strings.TrimRight(string(line), "\r\n"))
	}
	for len(found) > 0 && found[len(found)-1] == "" {
		found = found[:len(found)-1]
	}
	if len(found)%2 != 0 {
		return nil, errOddLines
	}
	users := newUsers(strip)
	if most := all["max_per_ip"]; most != "" && most != "0" {
		users.Warnings = append(users.Warnings,
			"max_per_ip is a limit of the server: write limits: {address: {sessions: "+most+"}} into its configuration")
	}
	for pair := range slices.Chunk(found, 2) { //nolint:mnd // a name and a password
		name := pair[0]
		own := map[string]string{}
		if cfg.User != nil {
			file, err := cfg.User(all["user_config_dir"], name)
			if err == nil {
				own, err = readVSFTPD(file)
			}
			if err != nil {
				return nil, fmt.Errorf("user %q: %w", name, err)
			}
		}
		u := &user{}
		if pair[1] != "" {
			if u.hash, err = cfg.Hash(pair[1]); err != nil {
				return nil, err
			}
		}
		users.addVSFTPD(name, u, all, own)
	}
	return users, nil
}

// readVSFTPD reads the settings of a vsftpd.conf.
func readVSFTPD(text []byte) (map[string]string, error) {
	settings := map[string]string{}
	return settings, lines(text, func(line string) error {
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return errors.New("is no KEY=VALUE")
		}
		settings[strings.TrimSpace(key)] = strings.TrimSpace(value)
		return nil
	})
}

// What settings of vsftpd are to an import, besides those that are read.
const (
	vsftpdRestricts = " cmds_allowed cmds_denied deny_file hide_file force_dot_files " +
		"userlist_file tcp_wrappers secure_email_list_enable banned_email_file "
	vsftpdHarmless = " guest_username guest_enable chroot_local_user chroot_list_enable allow_writeable_chroot " +
		"passwd_chroot_enable local_umask anon_umask file_open_mode idle_session_timeout data_connection_timeout " +
		"virtual_use_local_privs user_sub_token local_enable banner_file ftpd_banner dirmessage_enable " +
		"anon_world_readable_only local_root write_enable anon_upload_enable anon_mkdir_write_enable " +
		"anon_other_write_enable download_enable dirlist_enable local_max_rate anon_max_rate use_localtime "
)

// vsftpdAdvice is what to write in place of a setting, empty where nothing does the same.
func vsftpdAdvice(key string) string {
	switch key {
	case "cmds_allowed", "cmds_denied":
		return ": write permissions"
	case "deny_file":
		return ": write files.deny, which refuses to store files"
	}
	return ""
}

func (us *Users) addVSFTPD(name string, u *user, all, own map[string]string) {
	settings := maps.Clone(all)
	maps.Copy(settings, own)
	dir := settings["local_root"]
	if token := settings["user_sub_token"]; token != "" {
		dir = strings.ReplaceAll(dir, token, name)
	}
	if dir == "" {
		us.warn(name, "left out: there is no local_root for the user: write it in vsftpd.conf, or the user by hand")
		return
	}
	u.root = us.rootOf(name, dir)
	yes := func(key string, absent bool) bool {
		given, ok := settings[key]
		if !ok {
			return absent
		}
		return slices.Contains([]string{"YES", "TRUE", "1"}, strings.ToUpper(given))
	}
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
	if len(u.permissions) == len(config.AllPermissions()) {
		u.permissions = nil
	}
	if upload && !other {
		u.overwrite = config.DenyOverwrite
	}
	first, second := settings["anon_max_rate"], settings["local_max_rate"]
	if local {
		first, second = second, first
	}
	for _, text := range []string{first, second} {
		n, err := strconv.ParseInt(cmp.Or(text, "0"), 10, 64)
		if err != nil || n < 0 {
			us.disable(name, u, "the rate %q is no number", text)
		} else if u.limits.UploadRate == "" {
			u.limits.UploadRate, u.limits.DownloadRate = size(n), size(n)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		_, isOwn := own[key]
		known := strings.Contains(vsftpdHarmless, " "+key+" ")
		off := slices.Contains([]string{"", "NO", "FALSE", "0"}, strings.ToUpper(settings[key]))
		if strings.Contains(vsftpdRestricts, " "+key+" ") && !off || isOwn && !known {
			us.disable(name, u, "%s cannot be imported%s", key, vsftpdAdvice(key))
		}
	}
	us.add(name, u)
}
