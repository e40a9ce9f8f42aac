package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// mergeUsers chooses the versions of the users.
func (m *resourceMerger) mergeUsers() {
	order := m.candidates(m.resources.Users, m.before.users)
	m.checkOnServer(order)
	mailNames := m.mailNames()
	for _, c := range order {
		c.enter(func(v *specVersion) (*specVersion, *specProblem) { return m.usable(c.namespace, v, mailNames) })
	}
	chooseUsers(order)
	m.users = make(map[string][]*contender, len(m.next.bases))
	for _, c := range order {
		v := c.leave()
		o := ResourceOutcome{User: c.state.current.userName}
		tenant := c.state.current.userTenant
		if v != nil {
			o.User, o.Disabled, tenant = v.userName, v.user.Disabled, v.userTenant
		}
		if o.User == "" { // the spec cannot be read
			o.User = c.resource.Name
		}
		if o.Tenant = m.namesOfTenants[resourceKey{c.namespace, tenant}]; o.Tenant == "" { // it does not exist
			o.Tenant = globalName(c.namespace, tenant)
		}
		if v != nil {
			m.users[o.Tenant] = append(m.users[o.Tenant], &c.contender)
		}
		m.finish(m.next.users, resourceKey{c.namespace, c.resource.Name}, c, v, o)
	}
}

// tenantOf returns the tenant of a version of a user, and its global name.
func (m *resourceMerger) tenantOf(namespace string, v *specVersion) (name string, t *Tenant) {
	key := resourceKey{namespace, v.userTenant}
	if tenant := m.chosen[key]; tenant != nil {
		return m.namesOfTenants[key], tenant.tenant
	}
	return "", nil
}

// usable checks a version of a user in its tenant. mailNames has the names of users in files that contain @.
func (m *resourceMerger) usable(namespace string, v *specVersion, mailNames map[string]owner) (*specVersion, *specProblem) {
	tenant, t := m.tenantOf(namespace, v)
	switch {
	case m.next.tenants[resourceKey{namespace, v.userTenant}] == nil:
		return v, &specProblem{specRoot + ".tenant", ResourceTenantNotFound,
			fmt.Sprintf("the FTPTenant %q does not exist in the namespace %s: create it, or correct the name", v.userTenant, namespace)}
	case t == nil:
		return v, &specProblem{specRoot + ".tenant", ResourceTenantNotAccepted,
			fmt.Sprintf("the FTPTenant %q is not in use: see its condition Accepted", v.userTenant)}
	}
	if v = m.decoder.checkUser(v, tenant, t, m.changed && m.before.files != nil); v.checked != nil {
		return v, v.checked
	}
	if v.servedIn == t && v.served != nil {
		return v, v.served
	}
	name := NormalizeUser(v.userName)
	if at := strings.LastIndexByte(name, '@'); at >= 0 && m.tenantNames[name[at+1:]] {
		return v, &specProblem{specRoot + ".name", ResourceNameTaken,
			fmt.Sprintf("%s is the login name of users of the tenant %s: write a name that does not end in @ and the name of a tenant",
				v.userName, name[at+1:])}
	}
	if other, taken := mailNames[name+"@"+tenant]; taken {
		return v, &specProblem{specRoot + ".name", ResourceNameTaken,
			fmt.Sprintf("%s@%s is also the name of a user of the tenant %s: rename one of them", v.userName, tenant, other.tenant)}
	}
	return v, nil
}

// mailNames returns the names of users in the files that contain @, which could be the login name of another user.
func (m *resourceMerger) mailNames() map[string]owner {
	names := map[string]owner{}
	for tenant, t := range m.cfg.Tenants {
		for user := range t.Users {
			if strings.Contains(user, "@") {
				names[NormalizeUser(user)] = owner{tenant, user}
			}
		}
	}
	return names
}

// chooseUsers selects the version of each user. Two users of a tenant cannot have the same name.
func chooseUsers(order []*candidate) {
	first := make(map[claimKey]*candidate, len(order))
	contested := map[string]bool{} // tenants
	for _, c := range order {
		for _, v := range c.versions {
			key := v.claims[0].claimKey
			if other := first[key]; other != nil && other != c {
				contested[key.scope] = true
			}
			first[key] = c
		}
	}
	if len(contested) == 0 {
		return
	}
	slices.SortFunc(order, byAge)
	var contenders []*contender
	for _, c := range order {
		if slices.ContainsFunc(c.versions, func(v *specVersion) bool { return contested[v.claims[0].scope] }) {
			contenders = append(contenders, &c.contender)
		}
	}
	choose(func(*claimTable) {}, contenders)
}

// checkOnServer lets the server check the users that are new or in another tenant. It checks the users of a
// tenant together, and one at a time only if that fails.
func (m *resourceMerger) checkOnServer(order []*candidate) {
	if m.decoder.check == nil {
		return
	}
	unchecked := map[string][]*candidate{}
	for _, c := range order {
		v := c.state.current
		if !isValid(v) {
			continue
		}
		if name, t := m.tenantOf(c.namespace, v); t != nil && v.servedIn != t {
			unchecked[name] = append(unchecked[name], c)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unchecked)) {
		m.checkUsersOnServer(name, unchecked[name])
	}
}

func (m *resourceMerger) checkUsersOnServer(name string, list []*candidate) {
	check := func(some []*candidate) error {
		next, t := *m.cfg, *m.next.bases[name]
		t.Users = make(map[string]*User, len(some))
		for _, c := range some {
			t.Users[c.state.current.userName] = c.state.current.user
		}
		next.Tenants = map[string]*Tenant{name: &t}
		return m.decoder.check(&next)
	}
	base := m.next.bases[name]
	valid := slices.DeleteFunc(slices.Clone(list), func(c *candidate) bool {
		return m.decoder.checkUser(c.state.current, name, base, true).checked != nil
	})
	all := check(valid)
	for _, c := range valid {
		err := all
		if err != nil {
			err = check([]*candidate{c})
		}
		next := *c.state.current
		next.servedIn, next.served = base, nil
		if err != nil {
			next.served = joinProblems([]specProblem{{specRoot, ResourceInvalid, err.Error()}}, next.held)
		}
		c.state.replace(c.state.current, &next)
	}
}
