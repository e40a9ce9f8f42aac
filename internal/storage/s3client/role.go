package s3client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/aws-sdk-go-v2/service/sts/types"
	"github.com/aws/smithy-go"

	"github.com/babelftp/babelftp/internal/base/s3error"
	"github.com/babelftp/babelftp/internal/config"
)

// A role is assumed for one tenant (AWS STS, operation AssumeRole). It is the credentials provider of its own cache.
type role struct {
	config.AssumeRole
	cache    *aws.CredentialsCache
	renewed  *renewed // provider of the cache
	provider *stscreds.AssumeRoleProvider
	base     aws.CredentialsProvider // credentials that assume the role
	server   string                  // address of STS, for errors
	keys     configKeys
}

// A roleError says why a role cannot be assumed, with advice if the cause is certain. It unwraps to EAGAIN and not to
// a permission error, because a refusal by STS does not mean that the FTP user lacks a permission.
type roleError struct {
	problem, advice string
}

func (e *roleError) Error() string {
	if e.advice == "" {
		return e.problem
	}
	return e.problem + ": " + e.advice
}
func (e *roleError) Unwrap() error { return syscall.EAGAIN }

// assume returns the role of a bucket. Buckets of one tenant with equal settings share a role; different tenants never
// do. The credentials stay valid for at least presign, so that presigned links do.
func (f *Factory) assume(b *Bucket, assumed config.AssumeRole, presign time.Duration) *role {
	r := &role{AssumeRole: assumed.For(b.Tenant), keys: b.keys}
	r.renewed = &renewed{Provider: r, Before: max(config.RoleRenewBefore, presign),
		Log: f.log.With("tenant", b.Tenant)}
	a := b.account
	id, err := json.Marshal([]any{
		// all values that the request depends on
		b.Tenant, r.AssumeRole, r.renewed.Before, a.endpoint, a.region, a.accessKeyID, a.secretAccessKey,
	})
	if err != nil {
		panic(err) // cannot happen: strings, numbers and a map of strings
	}
	if known := f.roles[string(id)]; known != nil {
		return known
	}
	cfg := f.configOf(a)
	r.base = cfg.Credentials
	cfg.BaseEndpoint = f.base.BaseEndpoint
	if a.endpoint != "" && profileOfEndpoint(a.endpoint, "") != "aws" {
		cfg.BaseEndpoint = &a.endpoint // MinIO and Ceph serve STS at the same address
	}
	client := sts.NewFromConfig(cfg, func(o *sts.Options) {
		if f.observe != nil {
			o.APIOptions = append(o.APIOptions, f.observe)
		}
	})
	r.server = cmp.Or(aws.ToString(client.Options().BaseEndpoint), "AWS") // may come from AWS_ENDPOINT_URL_STS
	r.provider = stscreds.NewAssumeRoleProvider(client, r.RoleARN, func(o *stscreds.AssumeRoleOptions) {
		o.RoleSessionName, o.Duration = r.SessionName, config.RoleDuration(presign)
		if r.ExternalID != "" {
			o.ExternalID = &r.ExternalID
		}
		for _, key := range slices.Sorted(maps.Keys(r.SessionTags)) {
			o.Tags = append(o.Tags, types.Tag{Key: &key, Value: aws.String(r.SessionTags[key])})
		}
	})
	r.cache = aws.NewCredentialsCache(r.renewed)
	f.roles[string(id)] = r
	return r
}

// Retrieve implements [aws.CredentialsProvider].
func (r *role) Retrieve(ctx context.Context) (aws.Credentials, error) {
	ctx, cancel := context.WithTimeout(ctx, stsTimeout)
	defer cancel()
	// Retrieve the credentials first. The error of the request does not tell missing credentials from an unreachable
	// server.
	if _, err := r.base.Retrieve(ctx); err != nil {
		problem, advice := explainCredentials(err, r.keys.credentials)
		return aws.Credentials{}, r.newError(fmt.Sprintf("cannot assume the role %s: %s", r.RoleARN, problem), "%s", advice)
	}
	c, err := r.provider.Retrieve(ctx)
	if err != nil {
		return aws.Credentials{}, r.explain(err)
	}
	return c, nil
}

// explain turns an error of AssumeRole into a roleError.
func (r *role) explain(err error) error {
	if s3error.Status(err) == 0 {
		return r.newError(
			fmt.Sprintf("cannot reach STS at %s for the role %s: %s", r.server, r.RoleARN, reason(err, stsTimeout)),
			"%s", networkAdvice(err, "AWS_ENDPOINT_URL_STS"))
	}
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok || api.ErrorCode() == "UnknownError" { // the SDK found no code in the response
		return r.newError(
			fmt.Sprintf("no STS found at %s for the role %s (HTTP status %d)", r.server, r.RoleARN, s3error.Status(err)),
			"set AWS_ENDPOINT_URL_STS to the URL of STS")
	}
	problem := fmt.Sprintf("STS at %s refuses AssumeRole for the role %s (%s)", r.server, r.RoleARN, describe(err))
	switch api.ErrorCode() {
	case "InvalidClientTokenId", "ExpiredTokenException", "ExpiredToken", "UnrecognizedClientException",
		"InvalidAccessKeyId", "XAdminUserNotFound":
		return r.newError(
			problem, "correct %s.access_key_id and its secret, or the credentials of the AWS SDK", r.keys.credentials)
	case "SignatureDoesNotMatch":
		return r.newError(problem, "compare the secret of %s.access_key_id, or the credentials of the AWS SDK; "+
			"if a proxy is in front of STS, let it pass on the header Host as it is", r.keys.credentials)
	case "AccessDenied":
		return r.newError(
			problem, "allow sts:AssumeRole, and sts:TagSession for session tags, in the trust policy of the role and to "+
				"the credentials that assume it; compare %s.assume_role.external_id and %s.access_key_id",
			r.keys.role, r.keys.credentials)
	case "RegionDisabledException":
		return r.newError(problem, "activate STS in that region, or set another %s.region", r.keys.region)
	case "ValidationError", "PackedPolicyTooLarge", "MalformedPolicyDocument":
		return r.newError(problem, "correct %s.assume_role", r.keys.role)
	}
	return r.newError(problem, "")
}

func (r *role) newError(problem, advice string, args ...any) error {
	return &roleError{problem: problem, advice: fmt.Sprintf(advice, args...)}
}
