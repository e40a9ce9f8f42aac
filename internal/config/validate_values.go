package config

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"

	"github.com/babelftp/babelftp/i18n"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// certificate validates cert_file and key_file of the section at p. At least one is set.
func (v *validator) certificate(p yamlconf.Path, cert, key string) {
	readable := true
	for _, f := range []struct{ key, name, other string }{
		{"cert_file", cert, "key_file"},
		{"key_file", key, "cert_file"},
	} {
		if f.name == "" {
			v.report(p.Child(f.key), "is missing: it must be set together with %s", p.Child(f.other))
			readable = false
		} else if _, err := os.ReadFile(f.name); err != nil {
			v.report(p.Child(f.key), "cannot read %s: %v", f.name, yamlconf.WithoutPath(err))
			readable = false
		}
	}
	if !readable {
		return
	}
	if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
		v.report(p.Child("cert_file"), "cannot use the certificate in %s with the key in %s: %v", cert, key, err)
	}
}

// Authorities reads CA certificates from a PEM file. It returns nil, which means the CA certificates of the system,
// if name is empty.
func Authorities(name string) (*x509.CertPool, error) {
	if name == "" {
		return nil, nil
	}
	return withAuthorities(x509.NewCertPool(), name)
}

// Trusted returns the CA certificates of the system and of a PEM file. It returns nil, which means the CA
// certificates of the system, if name is empty.
func Trusted(name string) (*x509.CertPool, error) {
	if name == "" {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	return withAuthorities(pool, name)
}

// withAuthorities adds the certificates in a PEM file.
func withAuthorities(pool *x509.CertPool, name string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, yamlconf.WithoutPath(err))
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s contains no PEM certificate: name a file with CA certificates", name)
	}
	return pool, nil
}

// authorities validates ca_file of the section at p.
func (v *validator) authorities(p yamlconf.Path, name string) {
	if _, err := Authorities(name); err != nil {
		v.report(p.Child("ca_file"), "%v", err)
	}
}

// isURL reports whether text is a URL with one of the schemes, with a host and without credentials.
func isURL(text string, schemes ...string) bool {
	u, err := url.Parse(text)
	return err == nil && slices.Contains(schemes, u.Scheme) && u.Hostname() != "" && u.User == nil
}

// serverURL validates the URL of an S3 server. It may be empty.
func (v *validator) serverURL(p yamlconf.Path, text string) {
	if text == "" {
		return
	}
	if strings.Contains(text, "@") { // the value is not shown, because it may contain a password
		v.report(p, "contains credentials: set access_key_id and secret_access_key instead")
		return
	}
	if u, err := url.Parse(text); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" ||
		u.RawQuery != "" {
		v.report(p, "%q is not the URL of an S3 server: write it like https://s3.example.com", text)
	}
}

// notNegative validates the numbers in a section of limits. Sizes cannot be negative.
func notNegative(v *validator, p yamlconf.Path, section any) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(section)) {
		if key := f.Tag.Get("yaml"); key != "" && f.Type.Kind() == reflect.Int &&
			reflect.ValueOf(section).FieldByIndex(f.Index).Int() < 0 {
			v.report(p.Child(key), "must be at least 0, which means no limit")
		}
	}
}

// language reports a language that is not available, even as a related language. It returns false in this case.
func (v *validator) language(p yamlconf.Path, tag language.Tag) bool {
	if v.bundle == nil {
		return true // unknown
	}
	if _, err := v.bundle.Negotiate(tag.String()); err == nil {
		return true
	}
	v.report(p,
		"unknown language %s: write one that `babelftp languages` lists, or add a catalog in locales_dir",
		tag)
	return false
}

// oneOf validates a language of a tenant, which must be among the languages that the tenant offers.
func (v *validator) oneOf(p yamlconf.Path, tag language.Tag, offered *i18n.Bundle) {
	if tag == language.Und || !v.language(p, tag) || offered == nil {
		return
	}
	if _, ok := offered.Match(tag); !ok {
		v.report(p, "%s is not one of the tenant's languages: add it, or write one of them", tag)
	}
}

// texts validates a greeting or welcome.
func (v *validator) texts(p yamlconf.Path, texts map[language.Tag]string) {
	for tag, text := range texts {
		at := p.Child(tag.String())
		v.language(at, tag)
		for _, problem := range value.GreetingProblems(text) {
			v.report(at, "%s", problem)
		}
	}
}

// permissions validates the permissions in the section at p, a tenant or a user.
func (v *validator) permissions(p yamlconf.Path, everywhere []Permission, byPath map[string][]Permission) {
	all, paths := p.Child("permissions"), p.Child("path_permissions")
	if everywhere != nil && len(everywhere) == 0 && len(byPath) == 0 {
		v.report(all,
			"is empty: write at least one of %s, or remove the key to allow all",
			yamlconf.OneOf(yamlconf.EnumValues(FilePermissions()...)))
	}
	v.checkDuplicates(all, everywhere)
	seen := map[string]bool{}
	for _, pattern := range slices.Sorted(maps.Keys(byPath)) {
		at := paths.Child(pattern)
		v.sameName(at, seen, pattern)
		if broken := value.PatternProblem(pattern); broken != "" {
			v.report(at, "%s", broken)
		}
		v.checkDuplicates(at, byPath[pattern])
		v.rejectPassword(at, byPath[pattern])
	}
}

// rejectPassword reports the permission to change the password in permissions for some files.
func (v *validator) rejectPassword(p yamlconf.Path, permissions []Permission) {
	if slices.Contains(permissions, Password) {
		v.report(p, "%s is a permission of the user, not for paths: write it in permissions of the user or the tenant", Password)
	}
}

// sameName reports the key at p if a key that differs only in its Unicode normalization was seen before.
func (v *validator) sameName(p yamlconf.Path, seen map[string]bool, name string) {
	composed := norm.NFC.String(name)
	if seen[composed] {
		v.report(p, "differs only in Unicode normalization from another one: remove one")
	}
	seen[composed] = true
}

// fileNames validates patterns of file names.
func (v *validator) fileNames(p yamlconf.Path, patterns []string) {
	seen := map[string]bool{} // in NFC
	for i, pattern := range patterns {
		at, composed := p.Child(strconv.Itoa(i)), norm.NFC.String(pattern)
		if broken := value.FileNameProblem(pattern); broken != "" {
			v.report(at, "%q %s", pattern, broken)
		} else if seen[composed] {
			v.report(at, "%q is written twice: remove one", pattern)
		}
		seen[composed] = true
	}
}

// checkDuplicates reports permissions that a list contains twice.
func (v *validator) checkDuplicates(p yamlconf.Path, permissions []Permission) {
	for i, permission := range permissions {
		if permission != "" && slices.Contains(permissions[:i], permission) {
			v.report(p, "%s is written twice: remove one", permission)
		}
	}
}

// bucketAndPrefix validates the bucket, which may be empty, and the prefix of the section at p, a tenant or a folder.
func (v *validator) bucketAndPrefix(p yamlconf.Path, bucket, prefix string) {
	if bucket != "" {
		if broken := value.BucketProblem(bucket); broken != "" {
			v.report(p.Child("bucket"), "%q is not a valid bucket name: %s", bucket, broken)
		}
	}
	if broken := value.PrefixProblem(prefix); broken != "" {
		v.report(p.Child("prefix"), "%q is not a prefix of keys: %s", prefix, broken)
	}
}
