package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/babelftp/babelftp/internal/charset"
)

// A Size is a number of bytes.
type Size int64

// Multiples of a byte.
const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
	GiB Size = 1 << 30
	TiB Size = 1 << 40
)

// unit is what a number of bytes may be written in.
type unit struct {
	name string
	size Size
}

func units() []unit {
	return []unit{
		{"TiB", TiB}, {"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB},
		{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1}, {"", 1},
	}
}

// UnmarshalText reads a whole number of bytes, or of a unit: 64MiB, 1GB.
func (s *Size) UnmarshalText(text []byte) error {
	digits := strings.TrimRight(string(text), "TGMKkiB ")
	name := strings.TrimLeft(string(text)[len(digits):], " ")
	i := slices.IndexFunc(units(), func(u unit) bool { return u.name == name })
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || i < 0 || n < 0 {
		return fmt.Errorf("%q is no size: write a whole number of bytes, or of KiB, MiB or GiB, like 64MiB", text)
	}
	size := units()[i].size
	if n > math.MaxInt64/int64(size) {
		return fmt.Errorf("%q is too large", text)
	}
	*s = Size(n) * size
	return nil
}

// String is the size in the largest unit that it is a whole number of.
func (s Size) String() string {
	for _, u := range units() {
		if s >= u.size && s%u.size == 0 {
			return strconv.FormatInt(int64(s/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// A PortRange is an inclusive range of TCP ports. The zero value is no range.
type PortRange struct{ First, Last uint16 }

// UnmarshalText reads 30000-30099, or a single port.
func (r *PortRange) UnmarshalText(text []byte) error {
	first, last, isRange := strings.Cut(string(text), "-")
	if !isRange {
		last = first
	}
	a, errFirst := strconv.ParseUint(strings.TrimSpace(first), 10, 16)
	b, errLast := strconv.ParseUint(strings.TrimSpace(last), 10, 16)
	switch {
	case errFirst != nil || errLast != nil || a == 0:
		return fmt.Errorf("%q is no range of ports from 1 to 65535: write it like 30000-30099", text)
	case a > b:
		return fmt.Errorf("the range %q ends before it begins: write %d-%d", text, b, a)
	}
	r.First, r.Last = uint16(a), uint16(b)
	return nil
}

// String is the range as UnmarshalText reads it.
func (r PortRange) String() string {
	if r == (PortRange{}) {
		return ""
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// Contains reports whether port lies in the range.
func (r PortRange) Contains(port uint16) bool { return r.First <= port && port <= r.Last && port != 0 }

// A TLSVersion is a version that crypto/tls knows. The zero value is TLS 1.2.
type TLSVersion uint16

// UnmarshalText reads 1.2 or 1.3. RFC 8996 forbids the versions before.
func (v *TLSVersion) UnmarshalText(text []byte) error {
	switch string(text) {
	case "1.2":
		*v = tls.VersionTLS12
	case "1.3":
		*v = tls.VersionTLS13
	default:
		return fmt.Errorf("%q is no version of TLS that may be used: write 1.2 or 1.3", text)
	}
	return nil
}

// A LogFormat is how a log record is written.
type LogFormat string

// The log formats. The zero value is LogText.
const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// UnmarshalText reads text or json.
func (f *LogFormat) UnmarshalText(text []byte) error {
	switch v := LogFormat(text); v {
	case LogText, LogJSON:
		*f = v
		return nil
	}
	return fmt.Errorf("%q is no log format: write text or json", text)
}

// A Permission is what a user may do.
type Permission string

// The permissions.
const (
	List   Permission = "list"   // see what is in a directory
	Read   Permission = "read"   // download
	Write  Permission = "write"  // upload, append, replace a file, set its time
	Delete Permission = "delete" // remove files and directories
	Rename Permission = "rename" // move files and directories
	Mkdir  Permission = "mkdir"  // make directories
)

// AllPermissions is every permission, in the order of the documentation.
func AllPermissions() []Permission { return []Permission{List, Read, Write, Delete, Rename, Mkdir} }

var errPermission = errors.New("write one of list, read, write, delete, rename, mkdir")

// UnmarshalText reads the name of a permission.
func (p *Permission) UnmarshalText(text []byte) error {
	v := Permission(text)
	if !slices.Contains(AllPermissions(), v) {
		return fmt.Errorf("%q is no permission: %w", text, errPermission)
	}
	*p = v
	return nil
}

// Overwrite is what becomes of a file when one of its name is stored. The zero value stands for what is said elsewhere.
type Overwrite string

// What becomes of it.
const (
	AllowOverwrite   Overwrite = "allow"   // it is replaced
	DenyOverwrite    Overwrite = "deny"    // it stays, and the other is refused
	VersionOverwrite Overwrite = "version" // it is replaced where the bucket keeps it as an older version, and only there
)

// UnmarshalText reads allow, deny or version.
func (o *Overwrite) UnmarshalText(text []byte) error {
	switch v := Overwrite(text); v {
	case AllowOverwrite, DenyOverwrite, VersionOverwrite:
		*o = v
		return nil
	}
	return fmt.Errorf("%q does not say what becomes of a file that is stored anew: write allow, deny or version", text)
}

// UnknownHosts is what becomes of a HOST that no tenant has.
type UnknownHosts string

// What becomes of them. The zero value is RefuseUnknownHosts.
const (
	RefuseUnknownHosts UnknownHosts = "refuse"
	IgnoreUnknownHosts UnknownHosts = "ignore" // it chooses no tenant (RFC 7151, section 3.2)
)

// UnmarshalText reads refuse or ignore.
func (u *UnknownHosts) UnmarshalText(text []byte) error {
	switch v := UnknownHosts(text); v {
	case RefuseUnknownHosts, IgnoreUnknownHosts:
		*u = v
		return nil
	}
	return fmt.Errorf("%q is neither refuse nor ignore", text)
}

// Resume is what becomes of an upload that breaks.
type Resume string

// What becomes of it. The zero value is DiscardBroken.
const (
	DiscardBroken Resume = "discard"
	KeepBroken    Resume = "keep" // for the user who began it, to go on with
)

// UnmarshalText reads discard or keep.
func (r *Resume) UnmarshalText(text []byte) error {
	switch v := Resume(text); v {
	case DiscardBroken, KeepBroken:
		*r = v
		return nil
	}
	return fmt.Errorf("%q is neither keep nor discard", text)
}

// A Profile names what an S3 server can do, see docs/s3-servers.md.
type Profile string

// AutoProfile has the server find out the profile.
const AutoProfile Profile = "auto"

// Profiles are the names that a configuration may have beside AutoProfile.
func Profiles() []Profile {
	return []Profile{"aws", "aws-directory", "minio", "ceph", "r2", "gcs", "versitygw", "strict"}
}

// UnmarshalText reads auto or the name of a profile.
func (p *Profile) UnmarshalText(text []byte) error {
	return setWord(p, text, "profile of an S3 server", append([]Profile{AutoProfile}, Profiles()...)...)
}

// An Encoding is how clients write pathnames. The zero value is UTF-8.
type Encoding struct{ *charset.Encoding }

// UnmarshalText reads utf-8, raw or the label of a charset.
func (e *Encoding) UnmarshalText(text []byte) error {
	parsed, err := charset.Parse(string(text))
	if err != nil {
		return err
	}
	e.Encoding = parsed
	return nil
}
