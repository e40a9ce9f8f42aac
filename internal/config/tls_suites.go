package config

import (
	"crypto/tls"
	"slices"
	"strings"

	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// A CipherSuite is the name of a suite of TLS 1.2 that Go calls secure, as IANA has it.
type CipherSuite string

// Values implements [yamlconf.Enum].
func (CipherSuite) Values() []string {
	var names []string
	for _, suite := range secureSuites() {
		names = append(names, suite.Name)
	}
	return names
}

// secureSuites are those of TLS 1.2 that Go calls secure.
func secureSuites() []*tls.CipherSuite {
	return slices.DeleteFunc(tls.CipherSuites(), func(s *tls.CipherSuite) bool {
		return !slices.Contains(s.SupportedVersions, tls.VersionTLS12)
	})
}

// SuiteIDs are the suites of TLS 1.2 that the server takes: those that are named, else all that authenticate the data
// as they encrypt it (AEAD). In CBC mode errors have leaked the text. TLS 1.3 has no such suites.
func (t *TLS) SuiteIDs() []uint16 {
	var ids []uint16
	for _, suite := range secureSuites() {
		named := slices.Contains(t.CipherSuites, CipherSuite(suite.Name))
		if named || len(t.CipherSuites) == 0 && !strings.Contains(suite.Name, "_CBC_") {
			ids = append(ids, suite.ID)
		}
	}
	return ids
}

// checkSuites reports what is wrong with the list that p leads to.
func (t *TLS) checkSuites(p yamlconf.Path, report yamlconf.Report) {
	switch {
	case t.CipherSuites == nil:
	case len(t.CipherSuites) == 0:
		report(p, "there are none: write one at least, or remove the key for all secure ones")
	case t.MinVersion == tls.VersionTLS13:
		report(p, "works with TLS 1.2 only: remove it, or min_version")
	}
}
