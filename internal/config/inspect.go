package config

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/babelftp/babelftp/internal/base/inspect"
	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// Inspect scans the content of each file before it becomes visible, with `clamd`, `icap` or `hook`. Refused files
// never appear in the directory.
type Inspect struct {
	// Address of clamd: `unix:/run/clamav/clamd.ctl` or `tcp://HOST:3310`.
	Clamd string `yaml:"clamd" default:"none"`
	// URL of an ICAP service: `icap://HOST:1344/SERVICE`.
	ICAP string `yaml:"icap" default:"none"`
	// HTTP service that receives the content of each file as a POST request, and responds with `{"accept": true}` or
	// a reason.
	Hook Receiver `yaml:"hook"`
	// Files that could not be inspected: `refuse` them with 451, or `accept` them.
	OnFailure OnFailure `yaml:"on_failure" default:"refuse"`
	// How long the inspector may take to respond, or to read more data.
	Timeout time.Duration `yaml:"timeout" default:"1m"`
	// Key prefix under which refused files are stored. It must not be visible to users.
	Quarantine string `yaml:"quarantine" default:"refused files are not stored"`
}

// defaultInspectTimeout is shorter than the time that most clients wait for a reply.
const defaultInspectTimeout = time.Minute

// New returns the configured inspector, or nil. It sends no request.
func (i *Inspect) New() (*inspect.Inspector, error) {
	timeout := cmp.Or(i.Timeout, defaultInspectTimeout)
	switch {
	case i.Clamd != "":
		return inspect.NewClamd(i.Clamd, timeout)
	case i.ICAP != "":
		return inspect.NewICAP(i.ICAP, timeout)
	case i.Hook.URL != "":
		authorities, err := Trusted(i.Hook.CAFile)
		if err != nil {
			return nil, err
		}
		return inspect.NewHook(i.Hook.URL, i.Hook.Secret.Reveal(), authorities, timeout)
	}
	return nil, nil
}

// check validates the section at p of a tenant.
func (i *Inspect) check(v *validator, p yamlconf.Path, t *Tenant) {
	i.Hook.check(v, p.Child("hook"))
	given := 0
	for key, address := range map[string]string{"clamd": i.Clamd, "icap": i.ICAP, "hook": i.Hook.URL} {
		if address == "" {
			continue
		}
		given++
		one := Inspect{}
		switch key {
		case "clamd":
			one.Clamd = address
		case "icap":
			one.ICAP = address
		}
		if _, err := one.New(); err != nil {
			v.report(p.Child(key), "%v", err)
		}
	}
	switch {
	case given > 1:
		v.report(p, "has several inspectors: set only one of clamd, icap and hook")
	case given == 0 && (*i != Inspect{}):
		v.report(p, "has no inspector: set one of clamd, icap and hook")
	}
	if i.Timeout < 0 {
		v.report(p.Child("timeout"), "must be longer than 0")
	}
	if i.Quarantine != "" {
		v.quarantine(p.Child("quarantine"), i.Quarantine, t)
	}
}

// quarantine checks that no user of any tenant can see the prefix in a bucket of the tenant. Keys below .babelftp are
// always hidden by the driver.
func (v *validator) quarantine(p yamlconf.Path, prefix string, t *Tenant) {
	segments := strings.Split(prefix, "/")
	hidden := slices.Contains(segments, value.Reserved)
	shown := slices.DeleteFunc(segments, func(s string) bool { return s == value.Reserved })
	if broken := value.PrefixProblem(strings.Join(shown, "/")); broken != "" {
		v.report(p, "%q is not a prefix of keys: %s", prefix, broken)
		return
	}
	if v.cfg.AbandonedUploads == 0 {
		v.report(p, "requires abandoned_uploads, because large files are copied there by multipart uploads")
	}
	if hidden {
		return
	}
	var buckets []string
	for _, place := range t.places() {
		buckets = append(buckets, place.bucket)
	}
	for _, name := range slices.Sorted(maps.Keys(v.cfg.Tenants)) {
		for _, place := range v.cfg.Tenants[name].places() {
			if slices.Contains(buckets, place.bucket) &&
				(strings.HasPrefix(prefix, place.prefix) || strings.HasPrefix(place.prefix, prefix)) {
				v.report(p, "%q is visible to users of the tenant %s, who have the prefix %q in the bucket %s: "+
					"write another one, such as %s/quarantine", prefix, name, place.prefix, place.bucket, value.Reserved)
				return
			}
		}
	}
}

// A place is a part of a bucket that users see.
type place struct{ bucket, prefix string }

// places returns the parts of buckets that users of the tenant see.
func (t *Tenant) places() []place {
	all := []place{{t.Bucket, t.Prefix}}
	for _, f := range t.Folders {
		all = append(all, place{cmp.Or(f.Bucket, t.Bucket), f.Prefix})
	}
	return all
}
