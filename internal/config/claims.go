package config

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/babelftp/babelftp/internal/config/value"
	"github.com/babelftp/babelftp/internal/config/yamlconf"
)

// A claimKey is something that only one tenant, or one user, can have.
type claimKey struct {
	kind claimKind
	// scope is the result of [scopeOf] for a place, or the tenant of a user.
	scope string
	// name is a host, a prefix, or the name of a user.
	name string
}

// A claimKind is a kind of claims.
type claimKind int8

const (
	hostClaim claimKind = iota
	userClaim
	placeClaim      // the bucket and prefix of a tenant
	folderClaim     // the place of a folder
	quarantineClaim // a prefix for refused files, which no user may see
)

// isPlace reports whether claims of this kind conflict if they overlap.
func (k claimKind) isPlace() bool { return k >= placeClaim }

// A claim is a claim at a path of a spec.
type claim struct {
	claimKey
	path string
}

// A claimant is the owner of claims.
type claimant struct {
	name      string // global name of a tenant, or name of an FTPUser
	namespace string // empty for the files
}

// A claimTable holds the claims that were granted.
type claimTable struct {
	names  map[claimKey]*claimant
	places map[string]*placeIndex // by scope
}

// A placeIndex holds the granted places in a bucket.
type placeIndex struct {
	at    map[string][]granted // by prefix
	below map[string][]granted // by all prefixes that contain the prefix
}

type granted struct {
	claimKey
	by *claimant
}

func newClaimTable() *claimTable {
	return &claimTable{names: map[claimKey]*claimant{}, places: map[string]*placeIndex{}}
}

// grant adds claims, which must not conflict.
func (t *claimTable) grant(by *claimant, claims []claim) {
	for _, c := range claims {
		if !c.kind.isPlace() {
			t.names[c.claimKey] = by
			continue
		}
		index := t.places[c.scope]
		if index == nil {
			index = &placeIndex{map[string][]granted{}, map[string][]granted{}}
			t.places[c.scope] = index
		}
		g := granted{c.claimKey, by}
		if slices.Contains(index.at[c.name], g) {
			continue
		}
		index.at[c.name] = append(index.at[c.name], g)
		for parent := range parents(c.name) {
			index.below[parent] = append(index.below[parent], g)
		}
	}
}

// conflict returns the first claim that conflicts with a granted claim of another owner.
func (t *claimTable) conflict(by *claimant, claims []claim) (c claim, with granted, found bool) {
	for _, c = range claims {
		if !c.kind.isPlace() {
			if other := t.names[c.claimKey]; other != nil && other != by {
				return c, granted{c.claimKey, other}, true
			}
			continue
		}
		index := t.places[c.scope]
		if index == nil {
			continue
		}
		conflicts := func(g granted) bool { return g.by != by && exclude(g.kind, c.kind, g.by, by) }
		candidates := [][]granted{index.at[c.name], index.below[c.name]}
		for parent := range parents(c.name) {
			candidates = append(candidates, index.at[parent])
		}
		for _, list := range candidates {
			if i := slices.IndexFunc(list, conflicts); i >= 0 {
				return c, list[i], true
			}
		}
	}
	return claim{}, granted{}, false
}

// exclude reports whether overlapping places of two tenants conflict. Folders may show places of the same namespace.
// Quarantines may overlap each other, because nobody sees them.
func exclude(a, b claimKind, of, other *claimant) bool {
	switch {
	case a == quarantineClaim || b == quarantineClaim:
		return a != b
	case a == folderClaim || b == folderClaim:
		return of.namespace == "" || of.namespace != other.namespace
	}
	return true
}

// parents yields all prefixes of a prefix that end in a slash, and the empty one, but not the prefix itself.
func parents(prefix string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		if prefix == "" || !yield("") {
			return
		}
		for i := range len(prefix) - 1 {
			if prefix[i] == '/' && !yield(prefix[:i+1]) {
				return
			}
		}
	}
}

// problem returns the problem of a claim that conflicts with a granted one.
func (c claim) problem(with granted) specProblem {
	switch c.kind {
	case hostClaim:
		return specProblem{c.path, ResourceHostTaken,
			fmt.Sprintf("%s is also a host of the tenant %s, which has it already: remove it from one of them", c.name, with.by.name)}
	case userClaim:
		return specProblem{c.path, ResourceNameTaken, fmt.Sprintf(
			"the FTPUser %s/%s has the name %q in the tenant %s already: rename one of them", with.by.namespace, with.by.name,
			c.name, c.scope)}
	}
	bucket, _, _ := strings.Cut(c.scope, scopeSeparator)
	return specProblem{c.path, ResourceBucketTaken, fmt.Sprintf(
		"the prefix %q in the bucket %s overlaps the prefix %q, which the tenant %s has already: write another one",
		c.name, bucket, with.name, with.by.name)}
}

const scopeSeparator = "\x00"

// scopeOf returns the scope of places in a bucket. Places that are used with different credentials do not conflict: S3
// decides what each of them may do, and a tenant with invalid credentials must not keep a bucket from others.
func scopeOf(s S3, bucket string) string {
	endpoint, credentials := "", ""
	if s.AccessKeyID != "" {
		credentials = fmt.Sprintf("%x", sha256.Sum256([]byte(s.AccessKeyID+scopeSeparator+s.SecretAccessKey.Reveal())))
	}
	if u, err := url.Parse(s.Endpoint); err == nil && u.Host != "" {
		endpoint = strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
		if port := u.Port(); port != "" && port != "80" && port != "443" { // with and without TLS
			endpoint += ":" + port
		}
		if strings.HasSuffix(endpoint, ".amazonaws.com") { // names of buckets are global
			endpoint = ""
		}
	}
	return bucket + scopeSeparator + endpoint + scopeSeparator + credentials
}

// claims returns the claims of a tenant. Folders for which inherited returns true claim nothing, because all tenants
// have them.
func (t *Tenant) claims(c *Config, inherited func(folder string) bool) []claim {
	var all []claim
	at := func(kind claimKind, scope, name string, keys ...string) {
		all = append(all, claim{claimKey{kind, scope, name}, strings.Join(append([]string{specRoot}, keys...), ".")})
	}
	for i, host := range t.Hosts {
		at(hostClaim, "", host, "hosts", fmt.Sprint(i))
	}
	scopes := []string{scopeOf(c.StorageOf(t), t.Bucket)}
	at(placeClaim, scopes[0], t.Prefix, "prefix")
	for _, name := range slices.Sorted(maps.Keys(t.Folders)) {
		f := t.Folders[name]
		scope := scopeOf(c.StorageOfFolder(t, f), cmp.Or(f.Bucket, t.Bucket))
		scopes = append(scopes, scope)
		if !inherited(name) {
			at(folderClaim, scope, f.Prefix, "folders", yamlconf.Path{name}.String())
		}
	}
	if q := t.Inspect.Quarantine; q != "" && !isHidden(q) {
		slices.Sort(scopes)
		for _, scope := range slices.Compact(scopes) {
			at(quarantineClaim, scope, q, "inspect", "quarantine")
		}
	}
	return all
}

// isHidden reports whether users never see the keys with a prefix.
func isHidden(prefix string) bool { return slices.Contains(strings.Split(prefix, "/"), value.Reserved) }

// A contender is a resource with versions of its spec, of which the first one is used whose claims nobody else has.
type contender struct {
	claimant
	versions []*specVersion
	accepted []claim // claims in the accepted version of its status, which precede all others
	used     int     // index of the version in use; len(versions) if there is none
	lost     *specProblem
}

// split returns the claims of the version in use that are accepted, and its other claims.
func (c *contender) split() (held, fresh []claim) {
	if c.used == len(c.versions) {
		return nil, nil
	}
	for _, wanted := range c.versions[c.used].claims {
		if containsClaims(c.accepted, []claim{wanted}) {
			held = append(held, wanted)
		} else {
			fresh = append(fresh, wanted)
		}
	}
	return held, fresh
}

// giveUp uses the next version, because a claim of the current one conflicts with another tenant.
func (c *contender) giveUp(lost claim, with granted) {
	if c.lost == nil && c.used == 0 {
		problem := lost.problem(with)
		c.lost = &problem
	}
	c.used++
}

// choose selects the version of each contender, in their order. Claims in status.accepted precede all others, so that
// nobody can take what another one has, even if it is restored with another time of creation. files has the claims of
// the files, which precede those.
func choose(files func(*claimTable), order []*contender) {
	for {
		table := newClaimTable()
		files(table)
		for _, c := range order {
			for c.used < len(c.versions) {
				held, _ := c.split()
				lost, with, conflict := table.conflict(&c.claimant, held)
				if !conflict {
					table.grant(&c.claimant, held)
					break
				}
				c.giveUp(lost, with)
			}
		}
		if chooseFresh(table, order) {
			return
		}
	}
}

// chooseFresh grants the claims that are not accepted yet. It returns false if a contender fell back to a version
// whose claims precede those that were granted.
func chooseFresh(table *claimTable, order []*contender) bool {
	for _, c := range order {
		for c.used < len(c.versions) {
			before, fresh := c.split()
			lost, with, conflict := table.conflict(&c.claimant, fresh)
			if !conflict {
				table.grant(&c.claimant, fresh)
				break
			}
			c.giveUp(lost, with)
			held, _ := c.split()
			if _, _, conflict := table.conflict(&c.claimant, held); conflict || !containsClaims(held, before) {
				return false
			}
			table.grant(&c.claimant, held)
		}
	}
	return true
}

// containsClaims reports whether all has the same claims as some, or more.
func containsClaims(all, some []claim) bool {
	return !slices.ContainsFunc(some, func(c claim) bool {
		return !slices.ContainsFunc(all, func(other claim) bool { return other.claimKey == c.claimKey })
	})
}
