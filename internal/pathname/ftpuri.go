package pathname

import (
	"net/netip"
	"net/url"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Default ports of the schemes ftp and ftps.
const (
	ftpPort  = 21
	ftpsPort = 990
)

// A URIBase is the common part of a session's URIs.
type URIBase struct {
	TLS  bool           // implicit TLS
	Host string         // if empty, the address of the server is used
	Addr netip.AddrPort // address of the server
	User string
	Home string // absolute start directory of a login; empty means "/"
	// EncodeName encodes the name of a directory entry.
	EncodeName func(dir, name string) string
}

// URI returns the URI with which the user finds a pathname (RFC 1738 section 3.2), in percent-encoded UTF-8
// (draft-masinter-url-i18n sections 2.1 and 3.2). Its path is relative to the start directory of a login.
func (b *URIBase) URI(name string, directory bool) string {
	scheme, port := "ftp", ftpPort
	if b.TLS {
		scheme, port = "ftps", ftpsPort
	}
	host := b.Host
	if host == "" {
		host = b.Addr.Addr().Unmap().WithZone("").String()
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if int(b.Addr.Port()) != port {
		host += ":" + strconv.Itoa(int(b.Addr.Port()))
	}
	return scheme + "://" + percentEncode(b.User) + "@" + host + "/" + WithFinalSlash(b.path(name), directory)
}

// path returns a pathname as the path of an ftp URI. A client changes into its segments one after the other, beginning
// in the start directory of a login. A pathname outside of that directory begins with an encoded slash (RFC 1738
// section 3.2.2).
func (b *URIBase) path(name string) string {
	home := strings.TrimSuffix(path.Clean("/"+b.Home), "/")
	rest, below := strings.CutPrefix(name+"/", home+"/")
	var uri strings.Builder
	dir := home + "/"
	if !below {
		rest, dir = name[len("/"):], "/"
		uri.WriteString("%2F")
	}
	dir = path.Clean(dir)
	for i, segment := range strings.Split(strings.TrimSuffix(rest, "/"), "/") {
		if i > 0 {
			uri.WriteByte('/')
		}
		uri.WriteString(percentEncode(b.EncodeName(dir, segment)))
		dir = path.Join(dir, segment)
	}
	return uri.String()
}

// InNormalForm returns a function for [URIBase.EncodeName] that encodes the names of a pathname in the form of the
// tenant's names, which is NFC by default (draft-masinter-url-i18n section 2.1). Raw names keep their bytes. The names
// of a pathname also stay unchanged if its normal form is another existing pathname (section 5 of the draft), for
// which has returns nil.
func InNormalForm(rules Rules, name string, has func(name string) error) func(dir, name string) string {
	normal, dir := "/", "/"
	for segment := range strings.SplitSeq(name[len("/"):], "/") {
		normal = path.Join(normal, rules.NormalForm(dir, segment))
		dir = path.Join(dir, segment)
	}
	if normal != name && has(normal) == nil {
		return func(_, name string) string { return name }
	}
	return func(dir, name string) string {
		if encoding := rules.EncodingOf(dir); encoding.Raw() {
			name, _ = encoding.Encode(name)
			return name
		}
		return rules.NormalForm(dir, name)
	}
}

// percentEncode encodes all octets except the unreserved ones (RFC 3986 section 2.3).
func percentEncode(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// WithFinalSlash appends a slash to the URI of a directory.
func WithFinalSlash(uri string, directory bool) string {
	if directory && uri != "" && !strings.HasSuffix(uri, "/") {
		return uri + "/"
	}
	return uri
}

// to8URI converts a URI to an 8URI: non-ASCII characters are not encoded unless they look ambiguous
// (draft-masinter-url-i18n section 2.2).
func to8URI(uri string) string {
	var b strings.Builder
	for uri != "" {
		octets := escaped(uri)
		r, size := utf8.DecodeRuneInString(octets)
		if octets == "" || r < utf8.RuneSelf || r == utf8.RuneError || !showsAsItself(r) {
			b.WriteString(uri[:1])
			uri = uri[1:]
			continue
		}
		b.WriteRune(r)
		uri = uri[len("%HH")*size:]
	}
	return b.String()
}

// escaped returns the percent-encoded octets at the start of a URI, up to the maximum length of a character.
func escaped(uri string) string {
	var octets []byte
	for len(uri) >= len("%HH") && uri[0] == '%' && len(octets) < utf8.UTFMax {
		octet, err := strconv.ParseUint(uri[1:3], 16, 8)
		if err != nil {
			break
		}
		octets = append(octets, byte(octet))
		uri = uri[len("%HH"):]
	}
	return string(octets)
}

// showsAsItself reports whether a reader could type a character after seeing it. This excludes spaces, control and
// format characters, and marks without their own letter.
func showsAsItself(r rune) bool {
	return unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S) && !unicode.In(r, unicode.Co)
}

// URILines returns URIs or 8URIs as the lines of a reply.
func URILines(uris []string, eightBit bool) []string {
	var lines []string
	for _, uri := range uris {
		if eightBit {
			uri = to8URI(uri)
		}
		lines = append(lines, " "+uri)
	}
	return lines
}
