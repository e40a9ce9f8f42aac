package usersfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
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
	PasswordChange int64               `json:"last_password_change"`
	HomeDir        string              `json:"home_dir"`
	Permissions    map[string][]string `json:"permissions"`
	QuotaSize      int64               `json:"quota_size"`
	QuotaFiles     int                 `json:"quota_files"`
	MaxSessions    int                 `json:"max_sessions"`
	UploadSpeed    int64               `json:"upload_bandwidth"` // KiB a second
	DownloadSpeed  int64               `json:"download_bandwidth"`
	UploadData     int64               `json:"upload_data_transfer"` // MB, 0 for no limit
	DownloadData   int64               `json:"download_data_transfer"`
	TotalData      int64               `json:"total_data_transfer"`
	VirtualFolders []sftpgoFolder      `json:"virtual_folders"`
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

// A sftpgoFolder shows another place as a directory of a user.
type sftpgoFolder struct {
	Path string `json:"virtual_path"`
}

// A sftpgoPattern says which names files may have below a directory. Upper and lower case are equal to it.
type sftpgoPattern struct {
	Path    string   `json:"path"`
	Allowed []string `json:"allowed_patterns"`
	Denied  []string `json:"denied_patterns"`
}

// sftpgoFilters are settings of a user of SFTPGo, some of which refuse logins or files.
type sftpgoFilters struct {
	StartDirectory  string            `json:"start_directory"`
	AllowedIP       []string          `json:"allowed_ip"`
	DeniedIP        []string          `json:"denied_ip"`
	DeniedProtocols []string          `json:"denied_protocols"`
	DeniedMethods   []string          `json:"denied_login_methods"`
	FilePatterns    []sftpgoPattern   `json:"file_patterns"`
	MaxUploadSize   int64             `json:"max_upload_file_size"`
	BandwidthLimits []json.RawMessage `json:"bandwidth_limits"` // by address
	DataLimits      []json.RawMessage `json:"data_transfer_limits"`
	AccessTimes     []json.RawMessage `json:"access_time"`
	TwoFactor       []string          `json:"two_factor_protocols"`
	TOTP            struct {
		Enabled   bool     `json:"enabled"`
		Protocols []string `json:"protocols"`
	} `json:"totp_config"`
	FTPSecurity        int `json:"ftp_security"`        // 1: TLS is required
	PasswordExpiration int `json:"password_expiration"` // days
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
	users, places := newUsers(strip), map[string]bool{}
	for i := range d.Users {
		places[d.Users[i].bucket()] = true
	}
	for i := range d.Users {
		users.addSFTPGo(&d.Users[i], len(places) > 1)
	}
	return users, nil
}

// bucket is where the files of a user are, empty for the local disk.
func (s *sftpgoUser) bucket() string {
	if s.FileSystem.Provider != sftpgoS3 {
		return ""
	}
	return s.FileSystem.S3.Bucket
}

// addSFTPGo adds a user. Where the users have files in several buckets, those of one that is in S3 may not log in: in
// the bucket of the tenant they would see files of others.
func (us *Users) addSFTPGo(s *sftpgoUser, several bool) {
	name := s.Username
	u := &user{hash: s.Password, quota: max(0, s.QuotaSize), home: s.Filters.StartDirectory, expires: s.expires()}
	u.files.MaxSize = size(s.Filters.MaxUploadSize)
	u.limits = limits{
		Sessions:   max(0, s.MaxSessions),
		UploadRate: size(s.UploadSpeed * kib), DownloadRate: size(s.DownloadSpeed * kib),
	}
	switch s.FileSystem.Provider {
	case sftpgoS3:
		u.root = path.Clean("/" + s.FileSystem.S3.KeyPrefix)
		if several {
			us.disable(name, u, "the files are in the bucket %q, and those of other users are not: give the user a tenant "+
				"with this bucket, and no prefix", s.bucket())
		} else {
			us.warn(name, "the files are in the bucket %q: the tenant needs this bucket, and no prefix", s.bucket())
		}
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
	us.restrict(name, u, s)
	us.add(name, u)
	for _, folder := range s.VirtualFolders {
		us.warn(name, "the virtual folder %s is lost: write %s into folders of the tenant", folder.Path,
			path.Join("/", u.root, folder.Path))
	}
	if len(s.PublicKeys) > 0 {
		us.warn(name, "the public keys are lost: they are for SFTP")
	}
}

// expires is when the user or the password expires, empty for never.
func (s *sftpgoUser) expires() string {
	end := s.Expiration
	if days := s.Filters.PasswordExpiration; days > 0 && s.PasswordChange > 0 {
		change := time.UnixMilli(s.PasswordChange).AddDate(0, 0, days).UnixMilli()
		if end == 0 || change < end {
			end = change
		}
	}
	if end <= 0 {
		return ""
	}
	return value.NewExpiry(time.UnixMilli(end)).String()
}

// restrict imports from which addresses the user may log in, and disables a user with other restrictions, which a
// configuration cannot express.
func (us *Users) restrict(name string, u *user, s *sftpgoUser) {
	if problem := u.limits.networks(s.Filters.AllowedIP, s.Filters.DeniedIP); problem != "" {
		us.disable(name, u, "%s", problem)
	}
	f := &s.Filters
	for _, lost := range []struct {
		given bool
		what  string
	}{
		{s.Status != 1, "the user is disabled there"},
		{slices.Contains(f.DeniedProtocols, "FTP"), "the user may not use FTP there"},
		{slices.Contains(f.DeniedMethods, "password"), "the user may not log in with a password there"},
		{slices.Contains(f.TwoFactor, "FTP") || f.TOTP.Enabled && slices.Contains(f.TOTP.Protocols, "FTP"),
			"the user needs a second factor there"},
		{f.FTPSecurity == 1, "the user must use TLS there: write tls.required: true"},
		{s.QuotaFiles > 0, "the largest number of files cannot be imported: quota bounds bytes"},
		{max(s.UploadData, s.DownloadData, s.TotalData) > 0 || len(f.DataLimits) > 0,
			"the most bytes that the user may transfer cannot be imported"},
		{len(f.BandwidthLimits) > 0, "bandwidth by address cannot be imported: write limits.upload_rate and download_rate"},
		{len(f.AccessTimes) > 0, "the times of day at which the user may log in cannot be imported"},
		{len(s.Groups) > 0, "the settings of the user's groups cannot be imported: check permissions, root and limits"},
	} {
		if lost.given {
			us.disable(name, u, "%s", lost.what)
		}
	}
	us.denyFiles(name, u, f.FilePatterns)
}

// denyFiles imports which names files may not have. The user is disabled all the same, as SFTPGo also refuses to
// send such files.
func (us *Users) denyFiles(name string, u *user, patterns []sftpgoPattern) {
	for _, of := range patterns {
		if of.Path != "/" {
			us.disable(name, u, "the patterns of file names in %s cannot be imported: files.deny counts in all directories",
				of.Path)
			continue
		}
		if len(of.Allowed) > 0 {
			us.disable(name, u, "the file names that are allowed cannot be imported: write files.deny")
		}
		for _, pattern := range of.Denied {
			if strings.ContainsAny(pattern, `[\`) {
				us.disable(name, u, "the pattern %s of file names cannot be imported: write files.deny", pattern)
				continue
			}
			u.files.Deny = append(u.files.Deny, bothCases(pattern))
		}
		if len(of.Denied) > 0 {
			us.disable(name, u, "files.deny refuses to store files of these names, and not to send them, as that server does")
		}
	}
}

// bothCases is a pattern that takes upper and lower case of its letters as equal.
func bothCases(pattern string) string {
	var b strings.Builder
	for _, r := range pattern {
		if lower, upper := unicode.ToLower(r), unicode.ToUpper(r); lower != upper {
			b.WriteString("[" + string(lower) + string(upper) + "]")
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
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
