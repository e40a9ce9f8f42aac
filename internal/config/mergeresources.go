package config

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A resourceKey identifies a resource of a kind.
type resourceKey struct{ namespace, name string }

// A resourceState holds the data about a resource that a merge passes on to the next one. It is immutable.
type resourceState struct {
	resource *Resource
	current  *specVersion // the current spec, which may be invalid
	good     *specVersion // the last version that was in use; nil if there was none
	accepted *specVersion // the version in status.accepted, if it is valid, or nil
	outcome  *ResourceOutcome
}

// A ResourceMerge is the result of adding resources to a configuration. It is immutable.
type ResourceMerge struct {
	Outcomes []*ResourceOutcome // sorted by kind, namespace and name

	files, merged  *Config // the configurations without and with the resources
	tenants, users map[resourceKey]*resourceState
	bases          map[string]*Tenant // tenants without users, by global name
	secretFiles    map[string]bool
	types          *specTypes
	kept           map[*Resource]*specVersion // see keep
}

// MergeResources returns a configuration that also has the tenants and users of custom resources, and what became of
// each resource. before is the last result that was applied, or nil. A tenant that did not change is the same pointer,
// and so is the configuration if nothing changed. It must not be called concurrently with the same before.
//
// A broken resource does not affect another one: each replica uses the current version of a spec if it is valid, and
// otherwise the last version that it has used, or the version in status.accepted. A version that is in use keeps the
// content of its Secrets until another version replaces it, also after a restart with the same kubernetes.folder.
//
// The server adds the users in the shared state after the resources, to tenants with users_store. Tenants of resources
// have none.
func (c *Config) MergeResources(r *Resources, before *ResourceMerge) (*Config, *ResourceMerge) {
	if before == nil {
		before = &ResourceMerge{types: newSpecTypes()}
	}
	m := &resourceMerger{
		cfg: c, resources: r, before: before, changed: before.files != c, decoder: newSpecDecoder(c, r, before.types),
		newDefaultFiles: before.files != nil && before.files.loaded.defaultFiles != c.loaded.defaultFiles,
		chosen:          map[resourceKey]*specVersion{}, tenantNames: map[string]bool{},
		namesOfTenants: make(map[resourceKey]string, len(r.Tenants)),
		next: &ResourceMerge{
			files: c, tenants: make(map[resourceKey]*resourceState, len(r.Tenants)),
			users: make(map[resourceKey]*resourceState, len(r.Users)), bases: make(map[string]*Tenant, len(r.Tenants)),
			secretFiles: map[string]bool{}, types: before.types,
		},
	}
	if m.isUnchanged() {
		return before.merged, before
	}
	if before.files == nil {
		m.kept = readKept(c.Kubernetes.Folder)
	}
	m.mergeTenants()
	m.mergeUsers()
	m.keep()
	m.next.merged = m.build()
	m.next.Outcomes = m.outcomes()
	if !maps.Equal(m.next.secretFiles, before.secretFiles) || before.files == nil {
		removeUnusedFiles(c.Kubernetes.Folder, m.next.secretFiles, before.secretFiles)
	}
	return m.next.merged, m.next
}

// A resourceMerger adds resources to a configuration.
type resourceMerger struct {
	cfg       *Config
	resources *Resources
	before    *ResourceMerge
	changed   bool // the configuration of the files is another one
	// newDefaultFiles reports whether the content of a file in tenant_defaults has changed.
	newDefaultFiles bool
	decoder         *specDecoder
	next            *ResourceMerge
	kept            map[keptID]*keptVersion // at the start

	chosen      map[resourceKey]*specVersion // versions of tenants in use
	tenantNames map[string]bool              // names of all tenants, also of those that are not in use
	// namesOfTenants are the global names of resources.
	namesOfTenants map[resourceKey]string
	users          map[string][]*contender // users in use, by tenant
}

// isUnchanged reports whether the configuration, all resources and everything that they refer to are the same as
// before.
func (m *resourceMerger) isUnchanged() bool {
	same := func(resources []*Resource, states map[resourceKey]*resourceState) bool {
		return len(resources) == len(states) && !slices.ContainsFunc(resources, func(r *Resource) bool {
			s, now := states[resourceKey{r.Namespace, r.Name}], m.resources.References
			return s == nil || s.resource != r || changed(s.current.used, r.Namespace, now) ||
				s.accepted != nil && s.accepted != s.current && changed(s.accepted.used, r.Namespace, now)
		})
	}
	return !m.changed && same(m.resources.Tenants, m.before.tenants) && same(m.resources.Users, m.before.users)
}

// A candidate is a resource with its state before its version is chosen.
type candidate struct {
	contender
	resource *Resource
	state    resourceState
	before   *resourceState // nil if the resource is new
	problem  *specProblem   // of the current version
	few      [3]*specVersion
}

// candidates returns the resources of a kind.
func (m *resourceMerger) candidates(resources []*Resource, before map[resourceKey]*resourceState) []*candidate {
	all, space := make([]*candidate, 0, len(resources)), make([]candidate, len(resources))
	for i, r := range resources {
		c := &space[i]
		c.resource, c.name, c.namespace = r, r.Name, r.Namespace
		c.versions = c.few[:0]
		if old := before[resourceKey{r.Namespace, r.Name}]; old != nil && old.resource.UID == r.UID {
			c.before, c.state = old, *old
		} else if kept := m.kept[keptIDOf(r)]; kept != nil {
			c.state.good = m.decoder.decode(r, &kept.Version, kept.Held, nil)
		}
		c.state.resource = r
		m.decode(c)
		all = append(all, c)
	}
	return all
}

// byAge compares resources by the order in which they claim what nobody has: the older ones first.
func byAge(a, b *candidate) int {
	return cmp.Or(a.resource.Created.Compare(b.resource.Created), strings.Compare(a.namespace, b.namespace),
		strings.Compare(a.resource.Name, b.resource.Name))
}

// decode decodes the versions of a resource that have changed.
func (m *resourceMerger) decode(c *candidate) {
	r, s := c.resource, &c.state
	again := m.changed && r.Kind == TenantResource // users do not depend on the configuration of the files
	old := s.current
	switch {
	case old == nil, again, !bytes.Equal(old.spec.Spec, r.Spec), changed(old.used, r.Namespace, m.resources.References):
		same := m.sameSpec(r.Spec, s.good, old)
		if m.newDefaultFiles {
			same = nil
		}
		s.current = m.decoder.decode(r, &AcceptedSpec{r.Generation, r.Spec}, nil, same)
	case old.spec.Generation != r.Generation:
		same := *old
		same.spec = &AcceptedSpec{r.Generation, r.Spec}
		s.current = &same
	}
	switch same := m.sameSpec(r.Spec, s.current); {
	case s.good == nil || !again:
	case same != nil && bytes.Equal(s.good.spec.Spec, r.Spec):
		s.good = same
	default:
		s.good = m.decoder.decode(r, s.good.spec, heldBy(s.good), s.good)
	}
	s.accepted = m.accepted(r, s, again)
}

// sameSpec returns the first of the versions that has this spec and is valid.
func (m *resourceMerger) sameSpec(spec []byte, versions ...*specVersion) *specVersion {
	for _, v := range versions {
		if v != nil && v.problem == nil && bytes.Equal(v.spec.Spec, spec) {
			return v
		}
	}
	return nil
}

// heldBy returns the references that a version holds.
func heldBy(v *specVersion) *held {
	if v.held == nil {
		return &held{}
	}
	return v.held
}

// accepted returns the version in status.accepted, or nil if it is not valid.
func (m *resourceMerger) accepted(r *Resource, s *resourceState, again bool) *specVersion {
	if r.Accepted == nil {
		return nil
	}
	if same := m.sameSpec(r.Accepted.Spec, s.current, s.good); same != nil {
		return same
	}
	old := s.accepted
	if old == nil || again || !bytes.Equal(old.spec.Spec, r.Accepted.Spec) ||
		changed(old.used, r.Namespace, m.resources.References) {
		old = m.decoder.decode(r, r.Accepted, nil, nil)
	}
	return old
}

// isValid reports whether a version is valid. v may be nil.
func isValid(v *specVersion) bool { return v != nil && v.problem == nil }

// replace replaces a version by the same version after another check.
func (s *resourceState) replace(v, checked *specVersion) {
	for _, version := range []**specVersion{&s.current, &s.good, &s.accepted} {
		if *version == v {
			*version = checked
		}
	}
}

// enter enters a candidate into the choice, with its valid versions in the order in which they are preferred. usable
// returns a version after it was checked together with others, or nil if it cannot be used.
func (c *candidate) enter(usable func(*specVersion) (*specVersion, *specProblem)) {
	s := &c.state
	c.problem = s.current.problem
	for _, v := range []*specVersion{s.current, s.good, s.accepted} {
		if !isValid(v) || slices.Contains(c.versions, v) {
			continue
		}
		checked, problem := usable(v)
		if v == s.current {
			c.problem = problem
		}
		if s.replace(v, checked); problem == nil && !slices.Contains(c.versions, checked) {
			c.versions = append(c.versions, checked)
		}
	}
	if isValid(s.accepted) {
		c.accepted = s.accepted.claims
	}
}

// leave records which version is in use.
func (c *candidate) leave() *specVersion {
	var v *specVersion
	if c.used < len(c.versions) {
		v = c.versions[c.used]
		c.state.good = v
	}
	if c.problem == nil && c.lost != nil {
		c.problem = c.lost
	}
	return v
}

// mergeTenants chooses the versions of the tenants.
func (m *resourceMerger) mergeTenants() {
	order := m.candidates(m.resources.Tenants, m.before.tenants)
	slices.SortFunc(order, byAge)
	contenders := make([]*contender, len(order))
	for i, c := range order {
		name := globalName(c.namespace, c.resource.Name)
		c.name = name
		c.enter(func(v *specVersion) (*specVersion, *specProblem) {
			if m.cfg.Tenants[name] != nil {
				return v, &specProblem{specRoot, ResourceNameTaken,
					fmt.Sprintf("the configuration of the server has a tenant %s too, which takes precedence: rename one of them", name)}
			}
			return v, nil
		})
		m.tenantNames[name], m.namesOfTenants[resourceKey{c.namespace, c.resource.Name}] = true, name
		contenders[i] = &c.contender
	}
	choose(m.claimsOfFiles(), contenders)
	for _, c := range order {
		key := resourceKey{c.namespace, c.resource.Name}
		v := c.leave()
		if v != nil {
			m.chosen[key], m.next.bases[c.name] = v, v.tenant
		}
		m.finish(m.next.tenants, key, c, v, ResourceOutcome{Tenant: c.name})
	}
	for name := range m.cfg.Tenants {
		m.tenantNames[name] = true
	}
}

// claimsOfFiles returns a function that grants the claims of the tenants in the files.
func (m *resourceMerger) claimsOfFiles() func(*claimTable) {
	claims := make(map[string][]claim, len(m.cfg.Tenants))
	for name, t := range m.cfg.Tenants {
		claims[name] = t.claims(m.cfg, func(string) bool { return false })
	}
	return func(table *claimTable) {
		for name, list := range claims {
			table.grant(&claimant{name: name}, list)
		}
	}
}

// finish stores the state and the outcome of a resource.
func (m *resourceMerger) finish(
	states map[resourceKey]*resourceState, key resourceKey, c *candidate, used *specVersion, o ResourceOutcome,
) {
	o.Resource, o.Reason = c.resource, ResourceAccepted
	if c.problem != nil {
		o.Reason, o.Message = c.problem.reason, strings.TrimPrefix(c.problem.path+": "+c.problem.message, ": ")
	} else if used != nil {
		o.Message = used.warning
	}
	if used != nil {
		o.Used = used.spec
	}
	for _, v := range []*specVersion{c.state.current, c.state.good, c.state.accepted} {
		if v != nil && v.held != nil {
			for file := range v.held.files {
				m.next.secretFiles[file] = true
			}
		}
	}
	if c.before != nil && *c.before.outcome == o {
		c.state.outcome = c.before.outcome
	} else {
		changed := o
		c.state.outcome = &changed
	}
	if c.before != nil && *c.before == c.state {
		states[key] = c.before
		return
	}
	next := c.state // a copy, so that the candidates can be freed
	states[key] = &next
}

// build returns the configuration with the tenants and users in use.
func (m *resourceMerger) build() *Config {
	next := *m.cfg
	next.Tenants = make(map[string]*Tenant, len(m.cfg.Tenants)+len(m.next.bases))
	maps.Copy(next.Tenants, m.cfg.Tenants)
	for name, base := range m.next.bases {
		next.Tenants[name] = m.withUsers(name, base)
	}
	if !m.changed && m.before.merged != nil && maps.Equal(next.Tenants, m.before.merged.Tenants) {
		return m.before.merged
	}
	return &next
}

// withUsers returns a tenant with its users.
func (m *resourceMerger) withUsers(name string, base *Tenant) *Tenant {
	users := m.users[name]
	if m.before.bases[name] == base {
		old := m.before.merged.Tenants[name]
		if len(old.Users) == len(users) && !slices.ContainsFunc(users, func(c *contender) bool {
			v := c.versions[c.used]
			return old.Users[v.userName] != v.user
		}) {
			return old
		}
	}
	t := *base
	t.Users = make(map[string]*User, len(users))
	for _, c := range users {
		v := c.versions[c.used]
		t.Users[v.userName] = v.user
	}
	return &t
}

// outcomes returns the outcomes of all resources, sorted.
func (m *resourceMerger) outcomes() []*ResourceOutcome {
	all := make([]*ResourceOutcome, 0, len(m.next.tenants)+len(m.next.users))
	for _, of := range []struct {
		resources []*Resource
		states    map[resourceKey]*resourceState
	}{{m.resources.Tenants, m.next.tenants}, {m.resources.Users, m.next.users}} {
		begin := len(all)
		for _, r := range of.resources {
			all = append(all, of.states[resourceKey{r.Namespace, r.Name}].outcome)
		}
		byName := func(a, b *ResourceOutcome) int {
			return cmp.Or(strings.Compare(a.Resource.Namespace, b.Resource.Namespace),
				strings.Compare(a.Resource.Name, b.Resource.Name))
		}
		if list := all[begin:]; !slices.IsSortedFunc(list, byName) {
			slices.SortFunc(list, byName)
		}
	}
	return all
}
