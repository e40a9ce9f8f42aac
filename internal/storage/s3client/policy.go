package s3client

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
)

// A Policy is a document of IAM. Write it as JSON.
type Policy struct {
	Version   string
	Statement []Statement
}

// A Statement allows actions on resources.
type Statement struct {
	Effect    string
	Action    []string
	Resource  []string
	Condition Condition `json:",omitempty"`
}

// A Condition has the values of keys by operators.
type Condition map[string]map[string][]string

// An allowance is an action that a policy allows, on what.
type allowance struct {
	Permission
	Prefix string // of the keys that may be listed; empty for all
	Alias  string // of the key of KMS, where the resource does not name it
}

// PolicyFor returns the least policy for what the server does in buckets of one account: what their users may do, and
// what it keeps there itself. That is what a [Probe] needs, which runs dry here and sends no request. For an S3 server
// that is not known yet, the policy allows what any profile needs.
func PolicyFor(ctx context.Context, buckets ...*Bucket) Policy {
	var all []allowance
	for _, b := range buckets {
		p := newProber(b, literal(b.Prefix), &Report{Bucket: b})
		p.dry, p.quarantine = true, literal(p.quarantine)
		p.run(ctx, nil)
		_, alias := p.region.KeyARN(b.Objects.KMSKeyID)
		for need := range p.allowed {
			onKey := strings.HasPrefix(need.Action, "kms:")
			if p.covered(need, func(other Permission) bool { return p.allowed[other] }) ||
				!b.Profile.FullIAM && (onKey || need.Action == PutObjectACL) {
				continue
			}
			a := allowance{Permission: need}
			if lists := need.Action == ListBucket || need.Action == ListBucketVersions; lists && b.Prefix != "" {
				a.Prefix = literal(b.Prefix) + "*"
			}
			if onKey {
				a.Alias = alias
			}
			all = append(all, a)
		}
	}
	return newPolicy(all)
}

// newPolicy makes a policy of allowances, in a fixed order. Actions on the same resources share a statement.
func newPolicy(all []allowance) Policy {
	type scope struct{ resource, prefix, alias string }
	scopes := map[scope][]string{}
	for _, a := range all {
		s := scope{a.Resource, a.Prefix, a.Alias}
		scopes[s] = append(scopes[s], a.Action)
	}
	p := Policy{Version: "2012-10-17"}
	for _, s := range slices.SortedFunc(maps.Keys(scopes), func(a, b scope) int {
		return cmp.Or(
			strings.Compare(a.resource, b.resource), strings.Compare(a.prefix, b.prefix),
			strings.Compare(a.alias, b.alias))
	}) {
		slices.Sort(scopes[s])
		st := Statement{Effect: "Allow", Action: slices.Compact(scopes[s]), Resource: []string{s.resource}}
		if s.prefix != "" {
			st.Condition = Condition{"StringLike": {"s3:prefix": {s.prefix}}}
		}
		if s.alias != "" {
			st.Condition = Condition{"ForAnyValue:StringEquals": {"kms:ResourceAliases": {s.alias}}}
		}
		p.Statement = append(p.Statement, st)
	}
	return p
}

// literal writes a text so that a policy takes it literally. Policies have wildcards and variables.
func literal(text string) string {
	return strings.NewReplacer("*", "${*}", "?", "${?}", "$", "${$}").Replace(text)
}
