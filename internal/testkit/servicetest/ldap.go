package servicetest

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-ldap/ldap/v3"

	"github.com/babelftp/babelftp/internal/config"
	"github.com/babelftp/babelftp/internal/testkit/ftptest"
	"github.com/babelftp/babelftp/internal/testkit/must"
)

// Contents of every directory.
const (
	BaseDN            = "dc=acme,dc=example"
	People            = "ou=people," + BaseDN
	Readers           = "cn=Readers,ou=groups," + BaseDN
	Writers           = "cn=writers,ou=groups," + BaseDN
	BindDN            = "cn=babelftp," + BaseDN // allowed to search
	DirectoryPassword = "correct horse"         // password of all users and of BindDN
)

const (
	rootDN       = "cn=root," + BaseDN
	portAttempts = 3
)

// A Directory is a running OpenLDAP slapd (Debian package slapd) with a few entries.
type Directory struct {
	LDAP, LDAPS string // loopback URLs
	CAFile      string // CA certificates for LDAPS
	stop        func()
}

// StartDirectory starts a directory with its entries. It stops at the end of the test. With -short the test is
// skipped.
func StartDirectory(tb testing.TB) *Directory {
	tb.Helper()
	if testing.Short() {
		tb.Skip("-short starts no directory; this test needs slapd")
	}
	var err error
	for range portAttempts { // another process may take the free port first
		var s *Directory
		if s, err = tryDirectory(tb); err == nil {
			return s
		}
	}
	tb.Fatal(err)
	return nil
}

// Stop stops the directory.
func (s *Directory) Stop() { s.stop() }

func tryDirectory(tb testing.TB) (*Directory, error) {
	dir := tb.TempDir()
	cert, key := must.Certificate(
		tb, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true})
	s := &Directory{CAFile: filepath.Join(dir, "cert.pem")}
	for name, text := range map[string]string{s.CAFile: cert, filepath.Join(dir, "key.pem"): key,
		filepath.Join(dir, "slapd.conf"): slapdConfiguration(dir)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
		return nil, err
	}
	addresses := ftptest.FreeAddresses(tb, 2)
	s.LDAP, s.LDAPS = "ldap://"+addresses[0], "ldaps://"+addresses[1]
	program, err := exec.LookPath("slapd")
	// /usr/sbin is not on every user's path
	program = cmp.Or(map[bool]string{true: "/usr/sbin/slapd"}[err != nil], program)
	// The shell kills slapd when its input is closed. This happens even if the test process is killed.
	shell := exec.Command(
		"sh", "-c", `"$@" & read -r end; kill -9 $!; wait`, "sh", program, "-d", "0", "-f",
		filepath.Join(dir, "slapd.conf"), "-h", s.LDAP+" "+s.LDAPS)
	shell.Stdout, shell.Stderr = tb.Output(), tb.Output()
	input, err := shell.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := shell.Start(); err != nil {
		return nil, err
	}
	s.stop = func() {
		_ = input.Close()
		_ = shell.Wait() // the process was killed
	}
	tb.Cleanup(s.stop)
	return s, s.fill()
}

// slapdConfiguration returns a minimal slapd.conf. A bind without a password succeeds as anonymous, which RFC 4513,
// section 5.1.2 warns about. Users and BindDN must bind over TLS.
func slapdConfiguration(dir string) string {
	return strings.ReplaceAll(`
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
attributetype ( 1.3.6.1.4.1.4203.666.1.901 NAME 'ftpRoot' EQUALITY caseExactMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 )
attributetype ( 1.3.6.1.4.1.4203.666.1.902 NAME 'ftpHome' EQUALITY caseExactMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 )
attributetype ( 1.3.6.1.4.1.4203.666.1.903 NAME 'ftpQuota' EQUALITY caseExactMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 )
attributetype ( 1.3.6.1.4.1.4203.666.1.904 NAME 'ftpPermission' EQUALITY caseExactMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 )
attributetype ( 1.3.6.1.4.1.4203.666.1.905 NAME 'ftpDevice' EQUALITY caseExactMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 )
objectclass ( 1.3.6.1.4.1.4203.666.3.901 NAME 'ftpUser' SUP top AUXILIARY MAY ( ftpRoot $ ftpHome $ ftpQuota $ ftpPermission $ ftpDevice ) )
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload memberof
TLSCACertificateFile DIR/cert.pem
TLSCertificateFile DIR/cert.pem
TLSCertificateKeyFile DIR/key.pem
allow bind_anon_cred
security simple_bind=128
database mdb
maxsize 16777216
suffix "`+BaseDN+`"
rootdn "`+rootDN+`"
rootpw "`+DirectoryPassword+`"
directory DIR/data
overlay memberof
access to attrs=userPassword by anonymous auth by * none
access to dn.subtree="`+People+`" by dn.exact="`+BindDN+`" read by self read by anonymous read by * none
access to * by * read
`, "DIR", dir)
}

// users returns the attributes of the users by name. All users have a password.
func users() map[string]map[string][]string {
	return map[string]map[string][]string{
		"alice": {"ftpRoot": {"/teams/alice"}, "ftpHome": {"/in"}, "ftpQuota": {"20"},
			"ftpPermission": {"list", "read", "write"}, "preferredLanguage": {"fr-CA, en;q=0.8"},
			"ftpDevice": {"charset = shift_jis", "ascii=keep"}},
		"bob":   {"preferredLanguage": {"no list;q=?"}, "ou": {"acme"}},
		"carol": {"ftpRoot": {"relative"}},
		"dave":  {"ftpRoot": {"/a", "/b"}, "ou": {"acme", "umbrella"}},
		"erin":  {"employeeType": {"suspended"}, "ou": {"nowhere"}},
		"frank": {"ou": {"umbrella"}, "ftpDevice": {"charset=big5", "charset=gbk"}},
		"grace": {"ftpDevice": {"charset=ebcdic"}},
		// Names with characters that are special in filters or distinguished names.
		"*": {}, "a,ou=b": {}, "(x)": {}, " #+;<>=\"": {}, "été": {}, `back\slash`: {}, "..": {}, "a/b": {},
		// These two entries have the same mail address.
		"twin1": {"mail": {"twin@acme.example"}}, "twin2": {"mail": {"twin@acme.example"}},
	}
}

// fill waits until slapd is ready and adds the entries.
func (s *Directory) fill() error {
	authorities, err := config.Authorities(s.CAFile)
	if err != nil {
		return err
	}
	ended := time.After(startTimeout)
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		conn, err := ldap.DialURL(s.LDAPS, ldap.DialWithTLSConfig(&tls.Config{RootCAs: authorities}))
		if err == nil {
			defer conn.Close()
			return add(conn)
		}
		select {
		case <-ended:
			return fmt.Errorf("slapd is not ready: %w", err)
		case <-ticker.C:
		}
	}
}

func add(conn *ldap.Conn) error {
	if err := conn.Bind(rootDN, DirectoryPassword); err != nil {
		return err
	}
	type entry struct {
		dn         string
		attributes map[string][]string
	}
	entries := []entry{
		{BaseDN, map[string][]string{"objectClass": {"dcObject", "organization"}, "dc": {"acme"}, "o": {"Acme"}}},
		{People, map[string][]string{"objectClass": {"organizationalUnit"}, "ou": {"people"}}},
		{"ou=groups," + BaseDN, map[string][]string{"objectClass": {"organizationalUnit"}, "ou": {"groups"}}},
		{BindDN, map[string][]string{"objectClass": {"applicationProcess", "simpleSecurityObject"}, "cn": {"babelftp"},
			"userPassword": {DirectoryPassword}}},
		{"ou=elsewhere," + People, map[string][]string{"objectClass": {"referral", "extensibleObject"},
			"ou": {"elsewhere"}, "ref": {"ldap://192.0.2.1/" + BaseDN}}},
	}
	for name, attributes := range users() {
		attributes["objectClass"] = []string{"inetOrgPerson", "ftpUser"}
		attributes["uid"], attributes["cn"], attributes["sn"], attributes["userPassword"] = []string{name},
			[]string{name}, []string{name}, []string{DirectoryPassword}
		entries = append(entries, entry{DN(name), attributes})
	}
	entries = append(entries,
		entry{Readers, map[string][]string{"objectClass": {"groupOfNames"}, "cn": {"Readers"},
			"member": {DN("alice"), DN("bob")}}},
		entry{Writers, map[string][]string{"objectClass": {"groupOfNames"}, "cn": {"writers"},
			"member": {DN("alice")}}},
	)
	for _, e := range entries {
		request := ldap.NewAddRequest(e.dn, []ldap.Control{ldap.NewControlManageDsaIT(true)})
		for name, values := range e.attributes {
			request.Attribute(name, values)
		}
		if err := conn.Add(request); err != nil {
			return fmt.Errorf("add %s: %w", e.dn, err)
		}
	}
	return nil
}

// DN returns the distinguished name of a user.
func DN(user string) string { return "uid=" + ldap.EscapeDN(user) + "," + People }

// Bundle returns the name of a file with the CA certificates of several directories.
func Bundle(tb testing.TB, servers ...*Directory) string {
	tb.Helper()
	var all []byte
	for _, s := range servers {
		text, err := os.ReadFile(s.CAFile)
		must.OK(tb, err)
		all = append(all, text...)
	}
	name := filepath.Join(tb.TempDir(), "authorities.pem")
	must.OK(tb, os.WriteFile(name, all, 0o600))
	return name
}
