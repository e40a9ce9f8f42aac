package limit

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/babelftp/babelftp/internal/config/encryption"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// Store is where several replicas share what they count.
type Store struct {
	// Redis or Valkey server by which replicas share bans: `redis://[USER:PASSWORD@]HOST[:PORT][/DATABASE]`, or `rediss://` for TLS.
	StoreURL value.Secret `yaml:"store" default:"none: each replica has bans of its own" since:"0.2.0"`
	// PEM file of the authorities that the certificate of the store may come from.
	StoreCAFile string `yaml:"store_ca_file" default:"those of the system" since:"0.2.0"`
}

// checkStore reports what is wrong with the keys in the section that p leads to. It shows no URL, because that may have a password.
func (s Store) checkStore(p yamlconf.Path, report yamlconf.Report) {
	u, err := url.Parse(s.StoreURL.Reveal())
	switch {
	case s.StoreURL.Empty() && s.StoreCAFile == "":
		return
	case s.StoreURL.Empty():
		report(p.Child("store"), "is missing: it belongs to %s", p.Child("store_ca_file"))
	case err != nil || u.Scheme != "redis" && u.Scheme != "rediss" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "":
		report(p.Child("store"), "is no URL of a Redis server: write it like redis://store.example.com:6379/0, with %%XX for special characters of a password")
	case !isDatabase(strings.Trim(u.Path, "/")):
		report(p.Child("store"), "does not end with the number of a database: write it like redis://store.example.com:6379/0")
	case s.StoreCAFile != "" && u.Scheme != "rediss":
		report(p.Child("store_ca_file"), "needs TLS: write rediss:// in %s", p.Child("store"))
	}
	if _, err := encryption.Authorities(s.StoreCAFile); err != nil {
		report(p.Child("store_ca_file"), "%v", err)
	}
}

// isDatabase tells whether a text is empty or the number of a database.
func isDatabase(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return text == "" || err == nil
}
