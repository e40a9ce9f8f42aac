package control

import (
	"net"
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

// ftpURI is the URI by which the user finds a pathname here (RFC 1738 3.2), in
// percent-encoded UTF-8 (draft-masinter-url-i18n 2.1, 3.2). Its path begins in
// the directory that a login starts in.
func (s *session) ftpURI(name string, directory bool, form func(dir, name string) string) string {
	scheme, port := "ftp", ftpPort
	if s.implicit {
		scheme, port = "ftps", ftpsPort
	}
	host := s.hostname
	if host == "" {
		host = s.conn.Local().String()
	}
	if local, ok := s.conn.LocalAddr().(*net.TCPAddr); ok && local.Port != port {
		host = net.JoinHostPort(host, strconv.Itoa(local.Port))
	} else if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return scheme + "://" + percentEncode(s.name) + "@" + host + "/" + withFinalSlash(s.uriPath(name, form), directory)
}

// uriPath is a pathname as the path of an ftp URI, whose segments are taken one
// after the other from the directory that a login starts in. What is not below
// that begins with an encoded slash (RFC 1738 3.2.2).
func (s *session) uriPath(name string, form func(dir, name string) string) string {
	home := strings.TrimSuffix(path.Clean("/"+s.login.Home), "/")
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
		uri.WriteString(percentEncode(form(dir, segment)))
		dir = path.Join(dir, segment)
	}
	return uri.String()
}

// uriForm is how the names of a pathname are written in its URI: in the form that
// the tenant's names have, NFC unless told otherwise (draft-masinter-url-i18n
// 2.1), but not where that is the name of something else (section 5 there).
func (s *session) uriForm(name string) func(dir, name string) string {
	rules := s.nameRules()
	form := func(dir, name string) string {
		if encoding := rules.EncodingOf(dir); encoding.Raw() {
			name, _ = encoding.Encode(name) // the bytes of a mirror
			return name
		}
		return rules.NormalForm(dir, name)
	}
	formed, dir := "/", "/"
	for segment := range strings.SplitSeq(name[len("/"):], "/") {
		formed = path.Join(formed, rules.NormalForm(dir, segment))
		dir = path.Join(dir, segment)
	}
	if formed != name {
		if _, err := s.op.Storage.Stat(formed); err == nil {
			return func(_, name string) string { return name }
		}
	}
	return form
}

// percentEncode encodes all octets but the unreserved ones (RFC 3986 2.3).
func percentEncode(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

func withFinalSlash(uri string, directory bool) string {
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
