package userimport

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/babelftp/babelftp/internal/config"
)

// A dump is what SFTPGo writes with `dumpdata` (https://docs.sftpgo.com). It has more keys than these.
type dump struct {
	Users []sftpgoUser `json:"users"`
}

type sftpgoUser struct {
	Username       string              `json:"username"`
	Password       string              `json:"password"`
	Status         int                 `json:"status"`          // 1: enabled
	Expiration     int64               `json:"expiration_date"` // milliseconds of Unix time, 0 for none
	HomeDir        string              `json:"home_dir"`
	Permissions    map[string][]string `json:"permissions"`
	QuotaSize      int64               `json:"quota_size"`
	QuotaFiles     int                 `json:"quota_files"`
	MaxSessions    int                 `json:"max_sessions"`
	UploadSpeed    int64               `json:"upload_bandwidth"`
	DownloadSpeed  int64               `json:"download_bandwidth"`
	VirtualFolders []json.RawMessage   `json:"virtual_folders"`
	PublicKeys     []string            `json:"public_keys"`
	Groups         []json.RawMessage   `json:"groups"`
	Filters        sftpgoFilters       `json:"filters"`
	FileSystem     struct {
		Provider int `json:"provider"`
		S3       struct {
			Bucket    string `json:"bucket"`
			KeyPrefix string `json:"key_prefix"`
		} `json:"s3config"`
	} `json:"filesystem"`
}

// sftpgoFilters are settings of a user of SFTPGo, some of which refuse logins or files.
type sftpgoFilters struct {
	StartDirectory  string            `json:"start_directory"`
	AllowedIP       []string          `json:"allowed_ip"`
	DeniedIP        []string          `json:"denied_ip"`
	DeniedProtocols []string          `json:"denied_protocols"`
	DeniedMethods   []string          `json:"denied_login_methods"`
	FilePatterns    []json.RawMessage `json:"file_patterns"`
	MaxUploadSize   int64             `json:"max_upload_file_size"`
}

// Providers of SFTPGo, where a user's files are.
const (
	sftpgoLocal = 0
	sftpgoS3    = 1
)

// SFTPGo reads a dump. A user whose files were in S3 gets the prefix of the keys as root. Any other user gets the
// home directory, without strip at its beginning.
func SFTPGo(text []byte, strip string) (*Users, error) {
	var d dump
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("this is not a dump of SFTPGo in JSON: %w", err)
	}
	if d.Users == nil {
		return nil, errors.New(`this is not a dump of SFTPGo: it lacks the key "users"`)
	}
	users := newUsers(strip)
	for i := range d.Users {
		users.addSFTPGo(&d.Users[i])
	}
	return users, nil
}

func (us *Users) addSFTPGo(s *sftpgoUser) {
	name := s.Username
	switch {
	case s.Status != 1:
		us.warn(name, "left out: the user is disabled")
		return
	case s.Expiration != 0 && time.UnixMilli(s.Expiration).Before(time.Now()):
		us.warn(name, "left out: the user has expired")
		return
	case slices.Contains(s.Filters.DeniedProtocols, "FTP"):
		us.warn(name, "left out: the user may not use FTP")
		return
	case slices.Contains(s.Filters.DeniedMethods, "password"):
		us.warn(name, "left out: the user may not log in with a password")
		return
	}
	u := &user{hash: s.Password, quota: max(0, s.QuotaSize), home: s.Filters.StartDirectory}
	switch s.FileSystem.Provider {
	case sftpgoS3:
		u.root = path.Clean("/" + s.FileSystem.S3.KeyPrefix)
		us.warn(
			name, "the files are in the bucket %q: the tenant needs this bucket, and no prefix", s.FileSystem.S3.Bucket)
	case sftpgoLocal:
		u.root = us.rootOf(name, s.HomeDir)
	default:
		u.root = us.rootOf(name, s.HomeDir)
		us.warn(name, "the files are neither on a local disk nor in S3: copy them to the bucket")
	}
	us.setPermissions(name, u, s.Permissions)
	if broken := u.brokenPattern(); broken != "" {
		us.warn(name, "left out: the permissions of %s", broken)
		return
	}
	us.add(name, u)
	us.warnLost(name, s)
}

// warnLost warns of settings that a user of a configuration has not.
func (us *Users) warnLost(name string, s *sftpgoUser) {
	for _, lost := range []struct {
		given bool
		what  string
	}{
		{s.Expiration != 0, "the date of expiration is lost: remove the user in time"},
		{s.QuotaFiles != 0, "the largest number of files is lost: quota bounds bytes"},
		{s.MaxSessions != 0, "max_sessions is lost: write limits.user.sessions in the tenant"},
		{s.UploadSpeed != 0 || s.DownloadSpeed != 0, "the bandwidth is no longer bounded"},
		{len(s.VirtualFolders) > 0, "the virtual folders are lost: write them as folders of the tenant"},
		{len(s.Groups) > 0, "the settings of the user's groups are lost: check permissions, root and quota"},
		{len(s.PublicKeys) > 0, "the public keys are lost: they are for SFTP"},
		{len(s.Filters.AllowedIP)+len(s.Filters.DeniedIP) > 0,
			"the user may log in from any address: filter addresses in front of the server"},
		{len(s.Filters.FilePatterns) > 0,
			"the allowed and denied names of files are lost: write them as path_permissions"},
		{s.Filters.MaxUploadSize != 0, "the largest size of an upload is lost"},
	} {
		if lost.given {
			us.warn(name, "%s", lost.what)
		}
	}
}

// setPermissions translates the permissions of each path. Those of "/" are everywhere, and others replace them below
// their paths, as in a configuration.
func (us *Users) setPermissions(name string, u *user, byPath map[string][]string) {
	u.permissions = []config.Permission{}
	for _, at := range slices.Sorted(maps.Keys(byPath)) {
		granted := byPath[at]
		permissions := us.translate(name, at, granted)
		replaces := slices.Contains(granted, "*") || slices.Contains(granted, "overwrite")
		writes := slices.Contains(permissions, config.Write)
		if at != "/" {
			if u.paths == nil {
				u.paths = map[string][]config.Permission{}
			}
			u.paths[at] = permissions
		} else if u.permissions = permissions; len(permissions) == len(config.AllPermissions()) {
			u.permissions = nil
		}
		if writes && !replaces && u.overwrite == "" {
			u.overwrite = config.DenyOverwrite
			us.warn(
				name, "%s: uploads may not overwrite files there: overwrite: deny holds for all files of the user", at)
		}
	}
}

// translate returns the permissions that a list of SFTPGo's grants at a path.
func (us *Users) translate(name, at string, granted []string) []config.Permission {
	has := func(p string) bool { return slices.Contains(granted, "*") || slices.Contains(granted, p) }
	permissions := []config.Permission{}
	for _, p := range []struct {
		permission config.Permission
		whole      string
		parts      []string // of files and of directories
	}{
		{config.List, "list", nil},
		{config.Read, "download", nil},
		{config.Write, "upload", nil},
		{config.Delete, "delete", []string{"delete_files", "delete_dirs"}},
		{config.Rename, "rename", []string{"rename_files", "rename_dirs"}},
		{config.Mkdir, "create_dirs", nil},
	} {
		given := slices.DeleteFunc(p.parts, func(part string) bool { return !has(part) })
		switch {
		case has(p.whole), len(given) == 2:
			permissions = append(permissions, p.permission)
		case len(given) == 1:
			us.warn(name, "%s: the permission %s is lost: %s covers files and directories", at, given[0], p.permission)
		}
	}
	return permissions
}
