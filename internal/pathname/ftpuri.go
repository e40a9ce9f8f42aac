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

// ftpPort is the port that the scheme ftp stands for, and ftpsPort that of ftps.
const (
	ftpPort  = 21
	ftpsPort = 990
)

// A URIBase is what the URIs of one session have in common.
type URIBase struct {
	TLS  bool           // from the first byte
	Host string         // empty for the address of the server
	Addr netip.AddrPort // of the server
	User string
	Home string // the directory that a login starts in, absolute; empty means "/"
	// EncodeName writes the name of an entry of a directory.
	EncodeName func(dir, name string) string
}

// URI is the URI by which the user finds a pathname (RFC 1738 3.2), in
// percent-encoded UTF-8 (draft-masinter-url-i18n 2.1, 3.2). Its path begins in
// the directory that a login starts in.
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

// path is a pathname as the path of an ftp URI. A client takes its segments one
// after the other, from the directory in which a login starts. A pathname outside
// of that directory begins with an encoded slash (RFC 1738 3.2.2).
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

// InNormalForm returns how [URIBase.EncodeName] writes the names of a pathname: in the form
// of the tenant's names, which is NFC by default (draft-masinter-url-i18n 2.1). Names of
// a mirror keep their bytes. So do those of a pathname whose normal form names something
// else (section 5 there), which has tells by a nil error.
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

// percentEncode encodes all octets but the unreserved ones (RFC 3986 2.3).
func percentEncode(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// WithFinalSlash gives the URI of a directory the slash at its end.
func WithFinalSlash(uri string, directory bool) string {
	if directory && uri != "" && !strings.HasSuffix(uri, "/") {
		return uri + "/"
	}
	return uri
}

// to8URI makes an 8URI of a URI: characters beyond ASCII stand for themselves
// unless they show ambiguously (draft-masinter-url-i18n 2.2).
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

// escaped is the octets that a URI begins with in percent-encoding, as many as
// one character can have.
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

// showsAsItself says whether a reader could type what is shown: no spaces, no
// control or format characters, no marks without a letter of their own.
func showsAsItself(r rune) bool {
	return unicode.In(r, unicode.L, unicode.N, unicode.P, unicode.S) && !unicode.In(r, unicode.Co)
}

// URILines are URIs as the lines of a reply, or as 8URIs.
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
