package s3client

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Policy is an IAM policy document. Marshal it as JSON.
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

// A Condition maps operators to keys, and keys to values.
type Condition map[string]map[string][]string

// An allowance is a permission that a policy grants if a clause holds.
type allowance struct {
	Permission
	when clause
}

// A clause is a condition with one value. The zero value always holds.
type clause struct{ operator, key, value string }

// PolicyFor returns the minimal policy for buckets of one account, which covers the permissions of their users and the
// server's own objects. It runs a [Probe] without sending requests. If the S3 server is unknown, the policy allows
// what any profile needs, except [driver.Profile.UnprefixedLookups]: on other servers, that statement could allow
// listing the whole bucket.
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
			lists := need.Action == ListBucket || need.Action == ListBucketVersions
			switch {
			case need.Lookup: // Ceph sets s3:max-keys for listings only
				a.when = clause{"Null", "s3:max-keys", "true"}
			case lists && b.Prefix != "":
				a.when = clause{"StringLike", "s3:prefix", literal(b.Prefix) + "*"}
			case onKey && alias != "":
				a.when = clause{"ForAnyValue:StringEquals", "kms:ResourceAliases", alias}
			}
			all = append(all, a)
		}
	}
	return newPolicy(all)
}

// PolicyForState returns the minimal policy for the bucket of the shared state.
func PolicyForState(b *Bucket) Policy {
	region := b.region()
	var all []allowance
	for _, action := range []string{GetObject, PutObject, DeleteObject} {
		all = append(all, allowance{Permission: Permission{
			Action: action, Resource: region.objectARN(b.Name, literal(b.Prefix)+"*"),
		}})
	}
	return newPolicy(append(all, allowance{
		Permission{Action: ListBucket, Resource: region.bucketARN(b.Name)},
		clause{"StringLike", "s3:prefix", literal(b.Prefix) + "*"},
	}))
}

// PolicyNote returns a note for operators about the policy of [PolicyFor] for this bucket, or "".
func (b *Bucket) PolicyNote() string {
	if b.Profile.Name != "" || b.Prefix == "" {
		return ""
	}
	return fmt.Sprintf("the S3 server of bucket %q is not known yet; if it is Ceph, set s3.profile: ceph and print the "+
		"policy again, because Ceph needs one more statement for a prefix", b.Name)
}

// newPolicy returns a policy with a stable order. Actions on the same resource and condition share a statement.
func newPolicy(all []allowance) Policy {
	type scope struct {
		resource string
		when     clause
	}
	scopes := map[scope][]string{}
	for _, a := range all {
		s := scope{a.Resource, a.when}
		scopes[s] = append(scopes[s], a.Action)
	}
	p := Policy{Version: "2012-10-17"}
	for _, s := range slices.SortedFunc(maps.Keys(scopes), func(a, b scope) int {
		return cmp.Or(
			strings.Compare(a.resource, b.resource), strings.Compare(a.when.key, b.when.key),
			strings.Compare(a.when.value, b.when.value))
	}) {
		slices.Sort(scopes[s])
		st := Statement{Effect: "Allow", Action: slices.Compact(scopes[s]), Resource: []string{s.resource}}
		if s.when != (clause{}) {
			st.Condition = Condition{s.when.operator: {s.when.key: {s.when.value}}}
		}
		p.Statement = append(p.Statement, st)
	}
	return p
}

// literal escapes the wildcards and variables of policies in a text.
func literal(text string) string {
	return strings.NewReplacer("*", "${*}", "?", "${?}", "$", "${$}").Replace(text)
}
