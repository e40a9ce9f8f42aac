package usersfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/config/value"
)

// A sftpgoUser is a user in a dump of SFTPGo (https://docs.sftpgo.com). Only fields of this type are imported.
// [unread] finds all other fields, and [sftpgoKindOf] decides how they are handled.
type sftpgoUser struct {
	Username       string              `json:"username"`
	Password       string              `json:"password"`
	Status         int                 `json:"status"`          // 1: enabled
	Expiration     int64               `json:"expiration_date"` // Unix time in milliseconds, 0 for never
	PasswordChange int64               `json:"last_password_change"`
	HomeDir        string              `json:"home_dir"`
	Permissions    map[string][]string `json:"permissions"`
	QuotaSize      int64               `json:"quota_size"`
	QuotaFiles     int                 `json:"quota_files"`
	MaxSessions    int                 `json:"max_sessions"`
	UploadSpeed    int64               `json:"upload_bandwidth"` // KiB per second
	DownloadSpeed  int64               `json:"download_bandwidth"`
	UploadData     int64               `json:"upload_data_transfer"` // MB, 0 for no limit
	DownloadData   int64               `json:"download_data_transfer"`
	TotalData      int64               `json:"total_data_transfer"`
	VirtualFolders []sftpgoFolder      `json:"virtual_folders"`
	PublicKeys     []string            `json:"public_keys"`
	Groups         []sftpgoGroup       `json:"groups"`
	Filters        sftpgoFilters       `json:"filters"`
	FileSystem     sftpgoStorage       `json:"filesystem"`
}

// A sftpgoFolder mounts another storage in a directory of a user. Entries in the list of all folders have no
// virtual_path.
type sftpgoFolder struct {
	Name       string        `json:"name"`
	Path       string        `json:"virtual_path"`
	MappedPath string        `json:"mapped_path"`
	QuotaSize  int64         `json:"quota_size"` // -1: included in the quota of the user
	QuotaFiles int           `json:"quota_files"`
	FileSystem sftpgoStorage `json:"filesystem"`
}

// A sftpgoGroup is a group from which a user inherits settings.
type sftpgoGroup struct {
	Name string `json:"name"`
	Type int    `json:"type"`
}

// A sftpgoStorage is the storage of files.
type sftpgoStorage struct {
	Provider int `json:"provider"`
	S3       struct {
		Bucket    string `json:"bucket"`
		KeyPrefix string `json:"key_prefix"`
		Endpoint  string `json:"endpoint"`
	} `json:"s3config"`
}

// A sftpgoPattern restricts the names of files in a directory. SFTPGo ignores case in patterns.
type sftpgoPattern struct {
	Path    string   `json:"path"`
	Allowed []string `json:"allowed_patterns"`
	Denied  []string `json:"denied_patterns"`
}

// sftpgoFilters are settings of a user, some of which restrict logins or files.
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
	FTPSecurity        int      `json:"ftp_security"`        // 1: TLS is required
	PasswordExpiration int      `json:"password_expiration"` // days
	PasswordMustChange bool     `json:"require_password_change"`
	Anonymous          bool     `json:"is_anonymous"`
	Certificates       []string `json:"tls_certs"`
	CertificateName    string   `json:"tls_username"`
}

// A sftpgoKind says how a field that is not imported is handled.
type sftpgoKind int

const (
	sftpgoUnknown sftpgoKind = iota // may be a restriction, so the user is disabled
	sftpgoState                     // counters, times and identifiers: ignored
	sftpgoLost                      // does not restrict users over FTP: noted in a comment
)

// sftpgoKindOf returns the kind of a field by its path.
func sftpgoKindOf(path string) sftpgoKind {
	folder, inFolder := strings.CutPrefix(path, "virtual_folders[].")
	if inFolder {
		path = folder
	}
	switch path {
	case "id", "has_password", "used_quota_size", "used_quota_files", "last_quota_update", "used_upload_data_transfer",
		"used_download_data_transfer", "last_login", "created_at", "updated_at", "first_download", "first_upload",
		"users", "groups", "filters.totp_config.config_name":
		return sftpgoState
	case "uid", "gid", "email", "description", "additional_info", "role", "filters.additional_emails",
		"filters.hooks.external_auth_disabled", "filters.hooks.pre_login_disabled", "filters.hooks.check_password_disabled",
		"filters.disable_fs_checks", "filters.allow_api_key_auth", "filters.user_type",
		"filters.external_auth_cache_time", "filters.web_client", "filters.default_shares_expiration",
		"filters.max_shares_expiration", "filters.password_strength", "filters.recovery_codes",
		"filters.file_patterns[].deny_policy": // which also hides the files
		return sftpgoLost
	}
	switch {
	case strings.HasPrefix(path, "filters.totp_config.secret."):
		return sftpgoState
	case inFolder, strings.HasPrefix(path, "filesystem."), strings.HasPrefix(path, "oidc_custom_fields."):
		return sftpgoLost
	}
	return sftpgoUnknown
}

// sftpgoAdvice returns the setting to use instead of a field, or an empty string.
func sftpgoAdvice(path string) string {
	switch path {
	case "filesystem.s3config.region":
		return ": write s3.region of the tenant"
	case "filesystem.s3config.access_key":
		return ": write s3.access_key_id of the tenant"
	case "filesystem.s3config.role_arn":
		return ": write s3.assume_role of the tenant"
	case "filesystem.s3config.force_path_style":
		return ": write s3.path_style of the tenant"
	case "filesystem.s3config.storage_class":
		return ": write objects.storage_class of the tenant"
	case "filters.web_client", "filters.allow_api_key_auth", "filters.default_shares_expiration",
		"filters.max_shares_expiration":
		return ": there is no web client"
	case "uid", "gid":
		return ": files in S3 have no owner"
	}
	return ""
}

// Storage providers of SFTPGo.
const (
	sftpgoLocal = iota
	sftpgoS3
	sftpgoGCS
	sftpgoAzure
	sftpgoEncrypted
	sftpgoSFTP
	sftpgoHTTP
)

// place describes the storage for a message. local is the directory of a local storage.
func (s *sftpgoStorage) place(local string) string {
	switch s.Provider {
	case sftpgoLocal:
		return local
	case sftpgoS3:
		return "the bucket " + strconv.Quote(s.S3.Bucket)
	case sftpgoGCS:
		return "Google Cloud Storage"
	case sftpgoAzure:
		return "Azure Blob Storage"
	case sftpgoEncrypted:
		return local + ", where SFTPGo encrypts them"
	case sftpgoSFTP:
		return "another SFTP server"
	case sftpgoHTTP:
		return "another HTTP server"
	}
	return "a storage of an unknown kind"
}

// A sftpgoDump holds data that is common to all users of a dump.
type sftpgoDump struct {
	folders map[string]sftpgoFolder
	several bool // the users have files in more than one bucket or server
}

// SFTPGo imports a dump of SFTPGo. For users with files in S3, the key prefix becomes the root. For other users, the
// home directory without the prefix strip becomes the root.
func SFTPGo(raw []byte, strip string) (*Users, error) {
	text, err := readText(raw, sftpgoFormat)
	if err != nil {
		return nil, err
	}
	var parts map[string]json.RawMessage
	err = json.Unmarshal(text, &parts)
	if _, other := errors.AsType[*json.UnmarshalTypeError](err); other || err == nil && parts == nil {
		return nil, fmt.Errorf("this is not a dump of SFTPGo: the JSON is %s, and not an object with the key \"users\": "+
			"use the output of its API /api/v2/dumpdata", kindOfJSON(text))
	}
	if err != nil {
		return nil, fmt.Errorf("this is not a dump of SFTPGo in JSON: %w", err)
	}
	var entries []json.RawMessage
	if err := json.Unmarshal(parts["users"], &entries); err != nil {
		return nil, errors.New(`this is not a dump of SFTPGo: its key "users" is not a list`)
	}
	var folders []sftpgoFolder
	if parts["folders"] != nil {
		if err := json.Unmarshal(parts["folders"], &folders); err != nil {
			return nil, fmt.Errorf("folders: %w", err)
		}
	}
	dump := sftpgoDump{folders: map[string]sftpgoFolder{}}
	for _, folder := range folders {
		dump.folders[folder.Name] = folder
	}
	users, read, places := newUsers(strip), make([]*sftpgoUser, len(entries)), map[string]bool{}
	for i, entry := range entries {
		if read[i], err = readSFTPGoUser(entry); err != nil {
			return nil, fmt.Errorf("users[%d]: %w", i, err)
		}
		places[read[i].bucket()] = true
	}
	users.noteParts(parts)
	dump.several = len(places) > 1
	for i, entry := range entries {
		if err := users.addSFTPGo(read[i], entry, dump); err != nil {
			return nil, err
		}
	}
	return users, nil
}

// kindOfJSON describes a JSON value that is not an object.
func kindOfJSON(text []byte) string {
	switch text = bytes.TrimSpace(text); text[0] {
	case 'n':
		return "null"
	case '"':
		return "a text"
	case '[':
		return "a list"
	case 't', 'f':
		return "true or false"
	}
	return "a number"
}

// readSFTPGoUser decodes a user. It requires the keys that every user of SFTPGo has.
func readSFTPGoUser(entry json.RawMessage) (*sftpgoUser, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(entry, &keys); err != nil {
		return nil, errors.New("a user must be a JSON object")
	}
	for _, key := range []string{"username", "permissions"} {
		if keys[key] == nil {
			return nil, fmt.Errorf("missing key %q, which every user of SFTPGo has: use the output of its API "+
				"/api/v2/dumpdata", key)
		}
	}
	s := &sftpgoUser{}
	if err := json.Unmarshal(entry, s); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return nil, fmt.Errorf("%s: unexpected %s", wrong.Field, wrong.Value)
		}
		return nil, err
	}
	return s, nil
}

// noteParts adds a comment about the parts of a dump that are not imported.
func (us *Users) noteParts(parts map[string]json.RawMessage) {
	var lost []string
	for _, key := range slices.Sorted(maps.Keys(parts)) {
		var v any
		if key == "users" || key == "version" || json.Unmarshal(parts[key], &v) != nil || isZero(v) {
			continue
		}
		if list, ok := v.([]any); ok {
			key = fmt.Sprintf("%s (%d)", key, len(list))
		}
		lost = append(lost, key)
	}
	if len(lost) > 0 {
		us.note("parts of the dump that are not imported: %s", strings.Join(lost, ", "))
	}
}

// bucket returns the endpoint and the bucket of the user, or an empty string if the files are not in S3.
func (s *sftpgoUser) bucket() string {
	if s.FileSystem.Provider != sftpgoS3 {
		return ""
	}
	return s.FileSystem.S3.Endpoint + "/" + s.FileSystem.S3.Bucket
}

// addSFTPGo adds a user. If the dump has several buckets, users with files in S3 are disabled, because in the bucket
// of the tenant they would see files of other users.
func (us *Users) addSFTPGo(s *sftpgoUser, entry json.RawMessage, dump sftpgoDump) error {
	u := &user{name: s.Username, hash: s.Password, quota: max(0, s.QuotaSize), home: s.Filters.StartDirectory}
	u.files.MaxSize = size(s.Filters.MaxUploadSize)
	u.limits = limits{
		Sessions:   max(0, s.MaxSessions),
		UploadRate: size(s.UploadSpeed * kib), DownloadRate: size(s.DownloadSpeed * kib),
	}
	if s.FileSystem.Provider == sftpgoS3 {
		u.root = path.Clean("/" + s.FileSystem.S3.KeyPrefix)
		u.noteBucket(s, dump.several)
	} else {
		u.root = us.rootOf(u, s.HomeDir)
		if s.FileSystem.Provider != sftpgoLocal {
			u.note("the files are in %s: copy them to the bucket", s.FileSystem.place(s.HomeDir))
		}
	}
	u.setExpiry(s)
	u.setPermissions(s.Permissions)
	u.restrict(s)
	for _, folder := range s.VirtualFolders {
		u.noteFolder(folder, dump.folders[folder.Name])
	}
	if len(s.PublicKeys) > 0 {
		u.note("the public keys are not imported: they are for SFTP")
	}
	if len(s.Filters.Certificates) > 0 || s.Filters.CertificateName != "" && s.Filters.CertificateName != "None" {
		u.note("client certificates are not imported: write certificates")
	}
	if err := u.noteUnread(entry); err != nil {
		return err
	}
	us.add(u)
	return nil
}

// noteBucket adds a comment with the bucket that the tenant of the user needs.
func (u *user) noteBucket(s *sftpgoUser, several bool) {
	at := ""
	if endpoint := s.FileSystem.S3.Endpoint; endpoint != "" {
		at = " at " + endpoint
	}
	place := s.FileSystem.place("")
	if several {
		u.disable("the files are in %s%s, but other users have files elsewhere: create a tenant with this bucket and "+
			"without a prefix for the user", place, at)
		return
	}
	u.note("the files are in %s%s: set this bucket for the tenant, without a prefix", place, at)
}

// noteFolder adds a comment about a virtual folder, which is not imported. all is the entry in the list of all
// folders.
func (u *user) noteFolder(folder, all sftpgoFolder) {
	local := cmp.Or(folder.MappedPath, all.MappedPath, "a local directory")
	storage := folder.FileSystem
	if storage.Provider == sftpgoLocal {
		storage = all.FileSystem
	}
	quota := ""
	if folder.QuotaSize > 0 || folder.QuotaFiles > 0 {
		quota = fmt.Sprintf(", with a quota of %d bytes and %d files,", folder.QuotaSize, folder.QuotaFiles)
	}
	u.note("the virtual folder %s%s is not imported: its files are in %s: add %s to folders of the tenant", folder.Path,
		quota, storage.place(local), path.Join("/", u.root, folder.Path))
}

// noteUnread adds a comment for each field that is not imported, and disables the user if the field may be a
// restriction.
func (u *user) noteUnread(entry json.RawMessage) error {
	var v any
	decoder := json.NewDecoder(bytes.NewReader(entry))
	decoder.UseNumber()
	if err := decoder.Decode(&v); err != nil {
		return err
	}
	unread(v, reflect.TypeFor[sftpgoUser](), "", func(path string, v any) {
		switch sftpgoKindOf(path) {
		case sftpgoState:
		case sftpgoLost:
			u.note("%s%s is not imported%s", path, shown(path, v), sftpgoAdvice(path))
		case sftpgoUnknown:
			u.disable("%s%s is unknown to this import: check what it restricts", path, shown(path, v))
		}
	})
	return nil
}

// setExpiry sets the end of the account or of the password, whichever comes first.
func (u *user) setExpiry(s *sftpgoUser) {
	end := s.Expiration
	if days := s.Filters.PasswordExpiration; days > 0 {
		change := time.UnixMilli(s.PasswordChange).AddDate(0, 0, days).UnixMilli()
		if end == 0 || change < end {
			end = change
		}
		u.note("passwords expire after %d days on the other server: expires is set for the current password, "+
			"and later ones do not expire", days)
	}
	if end > 0 {
		u.expires = value.NewExpiry(time.UnixMilli(end)).String()
	}
}

// restrict imports the allowed and denied addresses, and disables users with restrictions that a configuration cannot
// express.
func (u *user) restrict(s *sftpgoUser) {
	if problem := u.limits.networks(s.Filters.AllowedIP, s.Filters.DeniedIP); problem != "" {
		u.disable("%s", problem)
	}
	f := &s.Filters
	var groups []string
	for _, g := range s.Groups {
		groups = append(groups, g.Name)
	}
	for _, lost := range []struct {
		given bool
		what  string
	}{
		{s.Status != 1, "the user is disabled on the other server"},
		{slices.Contains(f.DeniedProtocols, "FTP"), "the user may not use FTP on the other server"},
		{slices.Contains(f.DeniedMethods, "password"), "the user may not log in with a password on the other server"},
		{slices.Contains(f.TwoFactor, "FTP") || f.TOTP.Enabled && slices.Contains(f.TOTP.Protocols, "FTP"),
			"the user needs a second factor on the other server"},
		{f.FTPSecurity != 0, "the user must use TLS on the other server: set tls.required: true"},
		{f.Anonymous,
			"the user is anonymous on the other server: any password is accepted, and the user may only list and download"},
		{s.QuotaFiles > 0,
			fmt.Sprintf("the maximum number of files, %d, cannot be imported: quota limits bytes, not files", s.QuotaFiles)},
		{max(s.UploadData, s.DownloadData, s.TotalData) > 0 || len(f.DataLimits) > 0,
			"limits of the transferred data cannot be imported"},
		{len(f.BandwidthLimits) > 0,
			"bandwidth limits by address cannot be imported: set limits.upload_rate and limits.download_rate"},
		{len(f.AccessTimes) > 0, "the times of day at which the user may log in cannot be imported"},
		{len(groups) > 0, fmt.Sprintf(
			"the settings of the user's groups (%s) cannot be imported: check permissions, root, folders and limits",
			strings.Join(groups, ", "))},
	} {
		if lost.given {
			u.disable("%s", lost.what)
		}
	}
	u.refuseUnknown("denied_protocols", f.DeniedProtocols, "SSH", "FTP", "DAV", "HTTP", "OIDC")
	u.refuseUnknown("two_factor_protocols", f.TwoFactor, "SSH", "FTP", "HTTP")
	u.refuseUnknown("denied_login_methods", f.DeniedMethods, "password", "password-over-SSH", "publickey",
		"keyboard-interactive", "publickey+password", "publickey+keyboard-interactive", "TLSCertificate",
		"TLSCertificate+password", "IDP")
	if f.Anonymous {
		u.permissions, u.paths = []config.Permission{config.List, config.Read}, nil
	}
	u.denyFiles(f.FilePatterns)
	if f.PasswordMustChange {
		u.requireChange()
	}
}

// requireChange lets the user do nothing but change the password, which needs the permission.
func (u *user) requireChange() {
	u.mustChange = true
	if u.permissions == nil {
		u.permissions = config.FilePermissions()
	}
	u.permissions = append(u.permissions, config.Password)
	u.note("the user must change the password with SITE PSWD: permissions has password for it")
}

// refuseUnknown disables the user if a list of restrictions has an unknown value.
func (u *user) refuseUnknown(key string, given []string, known ...string) {
	for _, text := range given {
		if !slices.Contains(known, text) {
			u.disable("filters.%s: %q is unknown to this import: check what it restricts", key, text)
		}
	}
}

// denyFiles imports denied file names. The user is disabled nevertheless, because SFTPGo also refuses to send such
// files.
func (u *user) denyFiles(patterns []sftpgoPattern) {
	for _, of := range patterns {
		if of.Path != "/" {
			u.disable("the patterns of file names in %s cannot be imported: files.deny applies to all directories",
				of.Path)
			continue
		}
		if len(of.Allowed) > 0 {
			u.disable("allowed file names cannot be imported: set files.deny")
		}
		for _, pattern := range of.Denied {
			if strings.ContainsAny(pattern, `[\`) {
				u.disable("the pattern %s of file names cannot be imported: set files.deny", pattern)
				continue
			}
			u.files.Deny = append(u.files.Deny, bothCases(pattern))
		}
		if len(of.Denied) > 0 {
			u.disable("files.deny only refuses to store files with these names; the other server also refuses to send them")
		}
	}
}

// bothCases returns a pattern that ignores the case of letters.
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

// setPermissions converts the permissions of each path. As in a configuration, the permissions of "/" apply
// everywhere, and the permissions of other paths replace them below the path.
func (u *user) setPermissions(byPath map[string][]string) {
	u.permissions = []config.Permission{}
	for _, at := range slices.Sorted(maps.Keys(byPath)) {
		granted := byPath[at]
		permissions := u.translate(at, granted)
		replaces := slices.Contains(granted, "*") || slices.Contains(granted, "overwrite")
		writes := slices.Contains(permissions, config.Write)
		if at != "/" {
			if u.paths == nil {
				u.paths = map[string][]config.Permission{}
			}
			u.paths[at] = permissions
		} else if u.permissions = permissions; len(permissions) == len(config.FilePermissions()) {
			u.permissions = nil
		}
		if writes && !replaces && u.overwrite == "" {
			u.overwrite = config.DenyOverwrite
			u.note("%s: uploads may not overwrite files: overwrite: deny applies to all files of the user", at)
		}
	}
}

// translate converts the SFTPGo permissions of a path.
func (u *user) translate(at string, granted []string) []config.Permission {
	has := func(p string) bool { return slices.Contains(granted, "*") || slices.Contains(granted, p) }
	permissions := []config.Permission{}
	for _, p := range []struct {
		permission config.Permission
		whole      string
		parts      []string // the permissions for files and for directories
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
			u.note("%s: the permission %s is not imported: %s covers files and directories", at, given[0], p.permission)
		}
	}
	writes := slices.Contains(permissions, config.Write)
	var lost []string
	for _, p := range granted {
		switch p {
		case "*", "list", "download", "upload", "overwrite", "delete", "delete_files", "delete_dirs", "rename",
			"rename_files", "rename_dirs", "create_dirs":
		case "chtimes":
			if !writes {
				lost = append(lost, p)
			}
		default:
			lost = append(lost, p)
		}
	}
	if len(lost) > 0 {
		u.note("%s: permissions not imported: %s", at, strings.Join(lost, ", "))
	}
	if writes && !has("chtimes") {
		u.note("%s: the user may not set file times on the other server, but write allows it", at)
	}
	return permissions
}
