package config

import (
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/babelftp/babelftp/internal/base/netaddr"
	"github.com/babelftp/babelftp/internal/config/value"
)

// The patterns of a [Namespace].

// bucketPatternProblem returns the rule that a pattern for buckets violates, or an empty string.
func bucketPatternProblem(pattern string) string {
	name, prefix, _ := strings.Cut(pattern, "/")
	switch {
	case !regexp.MustCompile(`^[a-z0-9.*-]+$`).MatchString(name):
		return "does not begin with a bucket name: write NAME or NAME/PREFIX, in which * matches any characters"
	case value.PrefixProblem(strings.TrimSuffix(prefix, "*")) != "":
		return "has an invalid prefix: " + value.PrefixProblem(strings.TrimSuffix(prefix, "*"))
	}
	return ""
}

// allowsBucket reports whether one of the patterns contains a place.
func allowsBucket(patterns []string, bucket, prefix string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		name, below, hasPrefix := strings.Cut(pattern, "/")
		if !matches(name, bucket, "/") {
			return false
		}
		if !hasPrefix || below == "" {
			return true
		}
		base, open := strings.CutSuffix(below, "*")
		if !open {
			base = withTrailingSlash(base)
		}
		return begins(base, prefix, "/")
	})
}

// arnPatternProblem returns the rule that a pattern for ARNs violates, or an empty string.
func arnPatternProblem(pattern string) string {
	if pattern == "" || strings.ContainsAny(pattern, "{} \t\n") {
		return "is not an ARN: write it like arn:aws:iam::123456789012:role/team-a-*"
	}
	return ""
}

// allowsARN reports whether one of the patterns matches an ARN, or the ID or alias of a KMS key. A placeholder matches
// only *, because it may stand for anything.
func allowsARN(patterns []string, arn string) bool {
	arn = placeholders.ReplaceAllString(arn, "\x00")
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, arn, "") })
}

// hostPatternProblem returns the rule that a pattern for hosts violates, or an empty string.
func hostPatternProblem(pattern string) string {
	if _, err := netip.ParseAddr(pattern); err == nil {
		return ""
	}
	plain := strings.ReplaceAll(pattern, "*", "x")
	if name, ok := netaddr.ParseHost(plain); !ok || name != plain {
		return "is not a pattern for host names: write it like *.example.com"
	}
	return ""
}

// allowsHost reports whether one of the patterns matches a host.
func allowsHost(patterns []string, host string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, host, ".") })
}

// An address is an address that the server calls.
type address struct{ scheme, host, port string }

// addressSchemes returns the schemes of addresses with their default ports.
func addressSchemes() map[string]string {
	return map[string]string{"http": "80", "https": "443", "ldap": "389", "ldaps": "636", "icap": "1344", "tcp": ""}
}

// parseAddress parses an address or a pattern for addresses. The port of a URL without one is the default port. The
// address of a Unix socket has the path as its host.
func parseAddress(text string) (a address, ok bool) {
	if path, isSocket := strings.CutPrefix(text, "unix:"); isSocket {
		return address{scheme: "unix", host: path}, strings.HasPrefix(path, "/")
	}
	scheme, rest, found := strings.Cut(text, ":")
	scheme = strings.ToLower(scheme)
	port, known := addressSchemes()[scheme]
	if !found || !known {
		return address{}, false
	}
	rest, found = strings.CutPrefix(rest, "//")
	if !found {
		return address{}, false
	}
	authority := rest
	if i := strings.IndexAny(rest, `/?#\`); i >= 0 {
		authority = rest[:i]
	}
	var host string
	if h, p, err := net.SplitHostPort(authority); err == nil {
		host, port = h, p
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(authority, "["), "]")
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return address{scheme, host, port}, host != "" && port != "" && !strings.ContainsAny(authority, "@% \t\r\n")
}

// addressPatternProblem returns the rule that a pattern for addresses violates, or an empty string.
func addressPatternProblem(pattern string) string {
	const like = "write it like https://hooks.example.com or ldaps://*.example.com:636"
	a, ok := parseAddress(pattern)
	switch {
	case !ok:
		return "is not an address: " + like
	case a.scheme == "unix":
		return ""
	case strings.ContainsAny(strings.TrimLeft(pattern[len(a.scheme)+1:], "/"), "/?#"):
		return "has a path, but all paths are allowed or none: " + like
	}
	return ""
}

// allowsAddress reports whether one of the patterns matches an address.
func allowsAddress(patterns []string, text string) bool {
	a, ok := parseAddress(text)
	if !ok {
		return false
	}
	if u, err := url.Parse(text); a.scheme != "unix" &&
		(err != nil || strings.TrimSuffix(strings.ToLower(u.Hostname()), ".") != a.host) {
		return false // the client would call another host
	}
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		allowed, ok := parseAddress(pattern)
		if !ok || allowed.scheme != a.scheme {
			return false
		}
		if a.scheme == "unix" {
			return allowed.host == a.host
		}
		return matches(allowed.host, a.host, ".:") && matches(allowed.port, a.port, "")
	})
}

// matches reports whether a pattern matches the whole text. * matches any characters that are not in except.
func matches(pattern, text, except string) bool {
	for end := range prefixesMatching(pattern, text, except) {
		if end == len(text) {
			return true
		}
	}
	return false
}

// begins reports whether a pattern matches the beginning of a text.
func begins(pattern, text, except string) bool {
	for range prefixesMatching(pattern, text, except) {
		return true
	}
	return false
}

// prefixesMatching yields the ends of all beginnings of a text that match the pattern. It takes time proportional to
// the product of the lengths.
func prefixesMatching(pattern, text, except string) func(yield func(end int) bool) {
	return func(yield func(int) bool) {
		reached := make([]bool, len(text)+1) // ends of the text that the pattern has matched so far
		reached[0] = true
		for i := range len(pattern) {
			next := make([]bool, len(text)+1)
			for end, ok := range reached {
				switch {
				case pattern[i] == '*':
					next[end] = ok || end > 0 && next[end-1] && !strings.Contains(except, text[end-1:end])
				case ok && end < len(text) && text[end] == pattern[i]:
					next[end+1] = true
				}
			}
			reached = next
		}
		for end, ok := range reached {
			if ok && !yield(end) {
				return
			}
		}
	}
}
