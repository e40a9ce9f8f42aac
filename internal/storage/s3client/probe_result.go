package s3client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"github.com/babelftp/babelftp/internal/base/s3error"
)

// try sends a request. It returns true if S3 allowed it, which includes responses with one of these error codes. If
// there are codes, a dry run expects one of them and returns no output.
func try[In, Out any](
	ctx context.Context, p *prober,
	request func(context.Context, *In, ...func(*s3.Options)) (*Out, error), in *In, codes ...string,
) (*Out, bool) {
	if p.ended || ctx.Err() != nil {
		return nil, false
	}
	out, err := send(ctx, p, request, in)
	if p.dry && len(codes) > 0 {
		out = nil
	}
	return out, p.classify(in, err, codes)
}

// send sends a request. In a dry run the output is empty. Canceling ctx does not cancel the request: S3 may perform it
// anyway, and the probe would not know what to delete.
func send[In, Out any](
	ctx context.Context, p *prober,
	request func(context.Context, *In, ...func(*s3.Options)) (*Out, error), in *In,
) (*Out, error) {
	if p.dry {
		p.allow(in)
		return new(Out), nil
	}
	timeout := requestTimeout
	if _, ok := any(in).(*s3.UploadPartInput); ok {
		timeout += time.Duration(p.bucket.partSize/slowestUpload) * time.Second
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	return request(ctx, in)
}

// allow records the permissions of a successful request. A dry run knows nothing about the objects, so it records all
// cases.
func (p *prober) allow(in any) {
	for _, need := range p.needs(p.region.Needs(in), p.dry) {
		p.allowed[need] = true
	}
}

// classify records what the result of a request shows about the policy.
func (p *prober) classify(in any, err error, codes []string) bool {
	api, answered := errors.AsType[smithy.APIError](err)
	denied, isDenied := errors.AsType[*DeniedError](err)
	foreign, isForeign := errors.AsType[*s3error.ForeignError](err)
	switch {
	case err == nil || s3error.HasCode(err, codes...):
		p.allow(in)
		if s3error.HasCode(err, "NoSuchKey") && p.needsLookup() {
			p.allowed[p.lookup()] = true
		}
		return true
	case isDenied:
		p.denied = append(p.denied, p.needs(denied.Needs, true))
	case answered:
		p.problem(
			"S3 refuses %s: %s: %s", s3error.Operation(err), api.ErrorCode(),
			strings.ReplaceAll(api.ErrorMessage(), "\n", " "))
	case isForeign:
		p.problem("%s: %s", s3error.Operation(err), foreign)
	default:
		p.ended = true
		p.problem("%s got no response: %s", s3error.Operation(err), strings.ReplaceAll(err.Error(), "\n", " "))
	}
	return false
}

func (p *prober) problem(format string, args ...any) {
	p.report.Problems = append(p.report.Problems, fmt.Sprintf("%v: %s", p.bucket, fmt.Sprintf(format, args...)))
}

// needs returns the permissions of a request, with patterns instead of the keys of the probe. If cases is set, it
// includes permissions that only some objects need.
func (p *prober) needs(all []Need, cases bool) []Permission {
	o, name := p.bucket.Objects, p.bucket.Name
	var needs []Permission
	for _, need := range all {
		switch {
		case need.Case == Missing && cases && p.needsLookup():
			need.Permission = p.lookup()
		case need.Case == Missing: // the listing of the prefix shows it
			continue
		case need.Case == Tagged && (!cases || len(o.Tags) == 0),
			need.Case == KMS && (!cases || o.KMSKeyID == ""):
			continue
		case need.Case == KMS:
			need.Resource, _ = p.region.KeyARN(o.KMSKeyID)
		case need.Action == GetObjectTagging,
			need.Resource == p.region.objectARN(name, p.users):
			need.Resource = p.all
		case p.quarantine != "" && strings.HasPrefix(need.Resource, p.region.objectARN(name, p.quarantine)):
			need.Resource = p.region.objectARN(name, p.quarantine+"*")
		case strings.HasPrefix(need.Resource, strings.TrimSuffix(p.allOwn, "*")):
			need.Resource = p.allOwn
		}
		needs = append(needs, need.Permission)
	}
	return needs
}

// needsLookup reports whether the server returns 404 for a missing key only if the client has an additional
// permission, which listing the prefix does not include.
func (p *prober) needsLookup() bool {
	return p.bucket.Profile.UnprefixedLookups && p.bucket.Prefix != ""
}

// lookup returns the additional permission; see needsLookup.
func (p *prober) lookup() Permission {
	return Permission{Action: ListBucket, Resource: p.region.bucketARN(p.bucket.Name), Lookup: true}
}

// resolve determines the missing permissions. If a denied request needs several permissions, resolve ignores the
// permissions that other requests proved to be allowed. A permission that is known to be missing explains the denial.
func (p *prober) resolve() {
	var open [][]Permission
	missing := func(need Permission) bool { return slices.Contains(p.report.Missing, need) }
	for _, needs := range p.denied {
		needs = slices.DeleteFunc(slices.Clone(needs), func(need Permission) bool { return p.allowed[need] })
		switch {
		case len(needs) > 1:
			open = append(open, needs)
		case len(needs) == 1 && !missing(needs[0]):
			p.report.Missing = append(p.report.Missing, needs[0])
		case len(needs) == 0: // each permission is allowed for another request
			p.problem(
				"S3 denies a request, although it allows each action elsewhere: check for a Deny in the policies of " +
					"the bucket")
		}
	}
	for _, needs := range open {
		if !slices.ContainsFunc(needs, missing) {
			p.report.Missing = append(p.report.Missing, needs...)
		}
	}
	p.report.Missing = slices.DeleteFunc(p.report.Missing, func(need Permission) bool {
		return p.covered(need, missing)
	})
}

// covered reports whether the same permission for all keys makes this one, for the server's own keys, redundant.
func (p *prober) covered(need Permission, there func(Permission) bool) bool {
	return need.Resource == p.allOwn && there(Permission{Action: need.Action, Resource: p.all})
}
